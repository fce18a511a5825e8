// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums over rows, such as bias gradients, in a fixed order: within a tile, then over the tiles. Private to
// the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_COLUMNSUMS_H
#define FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_COLUMNSUMS_H

#include "LoweringContext.h"

namespace fp8 {

/// Adds the sums of all threads of a block of 256: `sums` are those of the thread's 8 columns, which begin at
/// (thread % 16) * 8. Calls `store` in the threads that have the sum of a column of the tile.
void storeColumnSums(KernelBuilder &b, llvm::ArrayRef<mlir::Value> sums,
                     llvm::function_ref<void(Expr column, Expr sum)> store);

/// Launches a kernel that writes the sums of the columns of `rows`, a dense memref<MxNxf32> of which M may be
/// dynamic, to `sums`, a dense memref of N f32.
void launchSumOfRows(mlir::OpBuilder &builder, LoweringContext &context, mlir::Location loc, mlir::Value rows,
                     mlir::Value sums);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_COLUMNSUMS_H
