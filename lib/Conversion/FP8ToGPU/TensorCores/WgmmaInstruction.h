// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The instructions of kernels that multiply by wgmma.mma_async (sm_90a), on rows of 128 bytes in shared
// memory with the 128-byte swizzle. Four warps multiply 64 rows together: a warp has 16 of them, in the
// layout of mma.sync's sums. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_TENSORCORES_WGMMAINSTRUCTION_H
#define FP8_LIB_CONVERSION_FP8TOGPU_TENSORCORES_WGMMAINSTRUCTION_H

#include "../Kernel/KernelBuilder.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace fp8 {

mlir::NVVM::WGMMATypes toWgmmaType(mlir::Type type);

/// Returns the descriptor (i64) of a matrix at `address` in shared memory: groups of 8 rows follow each
/// other; of a transposed matrix, whose rows are along K, the next 64 columns are `columnsDistance` bytes
/// behind.
Expr describeMatrix(KernelBuilder &b, mlir::Value address, int64_t columnsDistance = 0);

/// Orders what registers and shared memory hold before the instructions that follow; to be called before the
/// first.
void fenceGroup(KernelBuilder &b);
/// Returns values, f32 or words, that no instruction moves before waitForGroup(): to be called before the
/// fence, of all that addProduct() takes. Registers of a product that has been started must not be touched,
/// not even to read a constant that is in one of them.
llvm::SmallVector<mlir::Value> holdInRegisters(KernelBuilder &b, mlir::ValueRange values);
/// Starts the matmul of 64 rows and `columns` columns of `type`, bf16 or f16, from zero: for each pair of
/// descriptors 16 elements along K, which are contiguous in both. Returns the sums as one value, which
/// waitForGroup() makes known.
mlir::Value startProduct(KernelBuilder &b, mlir::Type type, int64_t columns,
                         llvm::ArrayRef<std::pair<Expr, Expr>> descriptors);
/// Starts sums += lhs · rhs: `lhs` is four words of 16 elements along K, as mma.sync has them, `rhs` the
/// descriptor of a transposed matrix. Returns the sums, which waitForGroup() makes known.
llvm::SmallVector<mlir::Value> addProduct(KernelBuilder &b, mlir::Type type, llvm::ArrayRef<mlir::Value> lhs,
                                          Expr rhs, mlir::ValueRange sums);
/// Waits for all that has been started.
void waitForGroup(KernelBuilder &b);
/// Nothing in the IR ties sums to the wait for them; an empty statement that changes all of them does.
/// Returns them.
llvm::SmallVector<mlir::Value> tieToWait(KernelBuilder &b, mlir::ValueRange sums);
/// Returns the members of a struct of sums.
llvm::SmallVector<mlir::Value> unpackSums(KernelBuilder &b, mlir::Value sums);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_TENSORCORES_WGMMAINSTRUCTION_H
