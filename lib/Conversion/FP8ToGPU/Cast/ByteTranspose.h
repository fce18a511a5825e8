// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Permutes the dimensions of tensors of bytes. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_CAST_BYTETRANSPOSE_H
#define FP8_LIB_CONVERSION_FP8TOGPU_CAST_BYTETRANSPOSE_H

#include "../Kernel/LoweringContext.h"

namespace fp8 {

/// Returns whether launchByteTranspose() has a kernel for these: the size of the last dimension of
/// `source` is known.
bool canTransposeBytes(mlir::Value source, mlir::Value target, llvm::ArrayRef<int64_t> permutation);

/// Launches a kernel that writes the bytes of `source` to `target`, both memrefs of FP8: dimension d of
/// `target` is dimension permutation[d] of `source`.
void launchByteTranspose(mlir::OpBuilder &builder, LoweringContext &context, mlir::Location loc,
                         mlir::Value source, mlir::Value target, llvm::ArrayRef<int64_t> permutation);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_CAST_BYTETRANSPOSE_H
