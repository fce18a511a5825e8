// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loop of a persistent kernel over the tiles of a matmul: block b computes tiles b, b + blocks, and so
// on. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_WIDE_MATMULLOOP_H
#define FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_WIDE_MATMULLOOP_H

#include "../GroupedMatmul.h"

namespace fp8 {

/// Where a tile of the result begins, and the numbers of its rows and of its columns of tiles among those of
/// all batches, all i32. `batch` may be a group.
struct TileOrigin {
  Expr batch, row, column, rowBlock, columnBlock;
  Expr endRow;          ///< the row after the last that the tile may have
  Expr depth, numSteps; ///< where it begins along K, and the steps of ResultTiles::stepDepth from there
};

/// The tiles of a result of [batches, rows, columns], whose sizes are known at run time (i32), as is the
/// depth, the elements along K.
struct ResultTiles {
  Expr batches, rows, columns, depth;
  int64_t tileRows, tileColumns, stepDepth;
  /// The groups of a grouped matmul, or null: a tile has rows of one group, or sums over those of one, which
  /// begin at a multiple of `stepDepth`.
  const GroupArguments *groups = nullptr;

  /// Builds the loop of a block over its tiles, with carried values; `body` returns their next values.
  /// Threads of a block may run loops of their own over the same tiles.
  llvm::SmallVector<mlir::Value>
  buildLoop(KernelBuilder &b, mlir::ValueRange inits,
            llvm::function_ref<llvm::SmallVector<mlir::Value>(const TileOrigin &, mlir::ValueRange carried)>
                body) const;

private:
  void moveToGroup(KernelBuilder &b, TileOrigin &tile, Expr blockOfRows) const;
  void sumGroup(KernelBuilder &b, TileOrigin &tile) const;
};

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_WIDE_MATMULLOOP_H
