// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The micro-kernel's tile on AMX: up to 2 x 2 tile registers of 16 x 16 sums. Private to the library.
//
// A panel of A has, for every 16 pairs along K, its rows one after the other: 16 pairs each. A panel of B
// has the pairs at one index of K side by side, as for dot products. Tile registers hold the sums during 8
// instructions along K; between, the sums lie in memory, in the L1 cache.

#ifndef FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_PACKED_PACKEDGEMMAMX_H
#define FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_PACKED_PACKEDGEMMAMX_H

#include "PackedGemmDetail.h"

namespace fp8 {

/// Emits the sums of tiles, those at one panel of B, for one block of K. As TileBuilder.
class AMXTileBuilder {
public:
  /// Allocates memory for one tile at `builder`, which is outside of the loops.
  AMXTileBuilder(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange operands,
                 const BlockPanels &blocks, const PackedGemmTile &tile, const PackedMatmulOptions &options);

  /// Goes to panel `column` of B and the block [begin, end) of K, in elements of a panel.
  void start(mlir::OpBuilder &builder, mlir::Value column, mlir::Value begin, mlir::Value end);
  /// The tile at panel `row` of A.
  void build(mlir::OpBuilder &builder, mlir::Value row);

private:
  mlir::Value index(mlir::OpBuilder &builder, int64_t value);
  mlir::Value sum(mlir::OpBuilder &builder, mlir::Value x, mlir::Value y);
  mlir::Value product(mlir::OpBuilder &builder, mlir::Value x, int64_t factor);
  /// Whether the products from index `from` of K on are the first of their sums.
  mlir::Value buildIsFirst(mlir::OpBuilder &builder, mlir::Value from);
  /// Returns the number of rows of the tile that `c` has.
  mlir::Value countRows(mlir::OpBuilder &builder);

  /// Writes zeros to the tile `sums`.
  void clear(mlir::OpBuilder &builder, mlir::Value sums);
  /// Adds the products at [from, to) of K to the tile `sums`.
  void accumulate(mlir::OpBuilder &builder, mlir::Value sums, mlir::Value from, mlir::Value to);
  /// Adds those of `count` instructions, from index `k` on.
  void addSteps(mlir::OpBuilder &builder, mlir::Value sums, mlir::Value k, int64_t count);
  /// Returns where the sums of a tile of which `c` has all rows are: in `c`, else in `scratch`, which gets
  /// those of `c` unless `isFirst`.
  mlir::Value findSums(mlir::OpBuilder &builder, mlir::Value isWhole, mlir::Value isFirst);
  /// Emits a loop over the rows of the tile that `c` has, and `build` for each vector of a row: the row of
  /// the tile, the first column, and the place in `c`.
  void forEachVector(
      mlir::OpBuilder &builder,
      llvm::function_ref<void(mlir::OpBuilder &, mlir::Value, int64_t, mlir::ArrayRef<mlir::Value>)> build);
  /// Copies the rows that `c` has, from `scratch` to `c` or back.
  void copyRows(mlir::OpBuilder &builder, bool toC);
  /// Sums the parts of the block from zero, one after the other, and adds each to the sums in `c`.
  void buildParts(mlir::OpBuilder &builder);
  void addPart(mlir::OpBuilder &builder, mlir::Value isFirst);
  /// Returns `before` plus the vector `added` of a part's sums, at column `lane` of row `i` of the tile.
  mlir::Value addScaled(mlir::OpBuilder &builder, mlir::Value i, int64_t lane, mlir::Value added,
                        mlir::Value before);

  mlir::Location loc;
  mlir::Value a, b, c, before;
  BlockPanels blocks; ///< their parameters in the function
  PackedGemmTile tile;
  int64_t part;           ///< as of partLength
  mlir::Value scratch;    ///< a tile of sums
  mlir::Value begin, end; ///< of the block of K
  mlir::Value row, column, block, firstRow, firstColumn, rows;
  mlir::Value panelA, panelB; ///< as rows of elements
};

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_PACKED_PACKEDGEMMAMX_H
