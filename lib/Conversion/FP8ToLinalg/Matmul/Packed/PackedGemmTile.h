// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The micro-kernel's tile: a register tile of sums, vectors of B times one element of A per fused
// multiply-add, K in increasing order; or dot products of pairs of bf16 elements. The sums of a block of K
// may have scales of their own. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_PACKED_PACKEDGEMMTILE_H
#define FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_PACKED_PACKEDGEMMTILE_H

#include "PackedGemmDetail.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace fp8 {

/// Emits the sums of register tiles, those at one panel of B, for one block of K.
class TileBuilder {
public:
  TileBuilder(mlir::Location loc, mlir::ValueRange operands, const BlockPanels &blocks,
              const PackedGemmTile &tile, const PackedMatmulOptions &options)
      : loc(loc), a(operands[0]), b(operands[1]), c(operands[2]), before(operands[3]), blocks(blocks),
        tile(tile), part(partLength(blocks, options)), bf16Dots(options.hasPairs()),
        lanes(bf16Dots ? options.registers.lanes : tile.columns) {}

  /// Goes to panel `column` of B and the block [begin, end) of K, which begins with a part where parts are
  /// summed from zero.
  void start(mlir::OpBuilder &builder, mlir::Value column, mlir::Value begin, mlir::Value end);
  /// The tile at panel `row` of A.
  void build(mlir::OpBuilder &builder, mlir::Value row);

private:
  mlir::Value index(mlir::OpBuilder &builder, int64_t value) {
    return mlir::arith::ConstantIndexOp::create(builder, loc, value);
  }
  mlir::Value sum(mlir::OpBuilder &builder, mlir::Value x, mlir::Value y) {
    return mlir::arith::AddIOp::create(builder, loc, x, y);
  }
  mlir::Value product(mlir::OpBuilder &builder, mlir::Value x, int64_t factor) {
    return mlir::arith::MulIOp::create(builder, loc, x, index(builder, factor));
  }
  llvm::SmallVector<mlir::Value> zeros(mlir::OpBuilder &builder);
  /// The sums of the blocks before, zeros for the first block. Prefetches the sums that come next.
  llvm::SmallVector<mlir::Value> loadSums(mlir::OpBuilder &builder, mlir::Value isFirst);
  /// The vectors of one row of a tile that begins at column `first` of `matrix`.
  llvm::SmallVector<mlir::Value> loadVectors(mlir::OpBuilder &builder, mlir::Value matrix,
                                             mlir::Value position, mlir::Value first);
  mlir::Value multiplyAdd(mlir::OpBuilder &builder, mlir::Value left, mlir::Value right, mlir::Value sum);
  /// Adds the products at one index of K, which begins at element `ofA` of the panel of A, `ofB` of that of
  /// B.
  llvm::SmallVector<mlir::Value> addProducts(mlir::OpBuilder &builder, mlir::Value ofA, mlir::Value ofB,
                                             mlir::ValueRange sums);
  /// Adds the products at `count` indices of K; prefetches from element `next` of B on, unless that is null.
  llvm::SmallVector<mlir::Value> addTogether(mlir::OpBuilder &builder, int64_t count, mlir::Value ofA,
                                             mlir::Value ofB, mlir::Value next, mlir::ValueRange sums);
  llvm::SmallVector<mlir::Value> accumulate(mlir::OpBuilder &builder, mlir::Value begin, mlir::Value end,
                                            mlir::ValueRange sums);
  void findAhead(mlir::OpBuilder &builder);
  /// Divides the block of B that comes next, from element `first` of its panel on, among the panels of A.
  void divideAhead(mlir::OpBuilder &builder, mlir::Value first);
  /// Elements of B between two prefetches: the tiles of a block of the least rows prefetch all that comes
  /// next, and an iteration has one at least.
  int64_t prefetchInterval() const;
  /// Adds `sums`, row `i` of those of a part, to the sums `before` of the parts before it.
  llvm::SmallVector<mlir::Value> addBlock(mlir::OpBuilder &builder, int64_t i, mlir::ValueRange before,
                                          mlir::ValueRange sums);
  void storeSums(mlir::OpBuilder &builder, mlir::Value isFirst, mlir::ValueRange sums);
  /// Sums the parts of the block from zero, one after the other, and adds each to the sums.
  void buildParts(mlir::OpBuilder &builder);
  /// Prefetches the sums of the tile that comes next, which the tile of the next row is, or of the next
  /// column.
  void prefetchNext(mlir::OpBuilder &builder);
  /// Whether the products from index `begin` of K on are the first of their sums.
  mlir::Value buildIsFirst(mlir::OpBuilder &builder, mlir::Value begin);

  mlir::Location loc;
  mlir::Value a, b, c, before;
  BlockPanels blocks; ///< their parameters in the function
  PackedGemmTile tile;
  int64_t part; ///< as of partLength
  bool bf16Dots;
  int64_t lanes; ///< of each vector of sums
  /// The elements of B that come after this panel: they are in memory or the L3 cache the first time. A tile
  /// prefetches from element first + row · perTile of `panel` on, `step` elements at a time.
  struct {
    mlir::Value panel, first, perTile, step;
  } ahead;
  mlir::Value begin, end; ///< of the block of K
  mlir::Value row, column, block, firstRow, firstColumn, rows;
  mlir::Value panelA, panelB; ///< as rows of elements
};

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_PACKED_PACKEDGEMMTILE_H
