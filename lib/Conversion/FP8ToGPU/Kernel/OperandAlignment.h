// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Used by kernels that read 16 bytes at a time, and by the passes that arrange memory for them: what is known
// of the alignment of a memref and its rows. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_OPERANDALIGNMENT_H
#define FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_OPERANDALIGNMENT_H

#include "mlir/IR/Value.h"

namespace fp8 {

/// The alignment of operands, their rows and batches, in bytes, that cp.async, TMA and 16-byte loads need.
inline constexpr int64_t kOperandAlignment = 16;

/// Returns the pitch in elements of a matrix that fp8-pad-rows has given rows of a multiple of 16 bytes,
/// whose size only the call knows; null for others.
mlir::Value findPaddedPitch(mlir::Value memref);

/// Returns whether the first element of `memref` is known to be at a multiple of kOperandAlignment.
bool isOperandAligned(mlir::Value memref);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_OPERANDALIGNMENT_H
