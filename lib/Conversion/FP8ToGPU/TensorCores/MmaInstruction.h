// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The instructions of kernels that multiply by mma.sync: loads of matrices from shared memory, and matmuls of
// operands that are not FP8. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_TENSORCORES_MMAINSTRUCTION_H
#define FP8_LIB_CONVERSION_FP8TOGPU_TENSORCORES_MMAINSTRUCTION_H

#include "../Kernel/KernelBuilder.h"

namespace fp8 {

/// Returns the type's name in PTX.
llvm::StringRef getNameInPTX(mlir::Type type);

/// Loads four matrices of 8 rows of 16 bytes (`ldmatrix.x4`): lane l gives the address of row l % 8 of matrix
/// l / 8. Matrices of 16-bit elements are transposed with `transposes`.
llvm::SmallVector<mlir::Value> loadMatrices(KernelBuilder &b, mlir::Value address, bool transposes);

/// Returns lhs · rhs + sums for lhs of 16 rows and rhs of 8 columns of `type`, bf16, f16 or f32 (as TF32),
/// and 32 bytes of K. Operands are words as PTX has them ("Matrix fragments for mma.m16n8k16"): four, two,
/// and four f32.
llvm::SmallVector<mlir::Value> multiplyMatrices(KernelBuilder &b, mlir::Type type,
                                                llvm::ArrayRef<mlir::Value> lhs,
                                                llvm::ArrayRef<mlir::Value> rhs,
                                                llvm::ArrayRef<mlir::Value> sums);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_TENSORCORES_MMAINSTRUCTION_H
