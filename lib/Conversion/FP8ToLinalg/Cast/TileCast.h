// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loops of fp8.quantize_blocks over tiles. A tile holds whole blocks of every direction: its elements
// are computed once, with the amaxes of its blocks; scales and bytes follow while it is in the cache.
// Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOLINALG_CAST_TILECAST_H
#define FP8_LIB_CONVERSION_FP8TOLINALG_CAST_TILECAST_H

#include "ElementLoops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace fp8 {

/// One direction of the cast within a tile.
struct Direction {
  unsigned number;
  llvm::ArrayRef<int64_t> block;
  mlir::Value data, scaleInv;
  llvm::ArrayRef<int64_t> transposition; ///< empty: the layout of the tensor
  mlir::Value amaxes, scales;            ///< buffers of the tile: i32 bits of amaxes, plus 1; and f32

  /// Returns whether neighbours in memory share a scale.
  bool spans() const { return block.back() != 1; }
};

/// Emits the loops over the tiles of some directions.
class TileCast {
public:
  /// `source` is the buffer of the tensor, or null: then the elements are computed.
  TileCast(mlir::OpBuilder &builder, QuantizeBlocksOp op, ElementLoops &loops, mlir::Value source,
           llvm::ArrayRef<unsigned> directions);

  /// Returns whether tiles in the order of run() have the elements of each sum in the order of the tensor:
  /// those of a column, or, of a sum over all dimensions, all.
  bool keepsOrder() const;
  void run();

private:
  using Body = llvm::function_ref<void(mlir::OpBuilder &, mlir::ValueRange)>;

  mlir::Value index(mlir::OpBuilder &b, int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, loc, value);
  }
  unsigned last() const { return sizes.size() - 1; }
  /// Returns whether something is summed over all dimensions.
  bool sumsAll() const;
  /// Returns whether the size of `dim` is known to be a multiple of `extent`.
  bool isWhole(unsigned dim, int64_t extent) const {
    std::optional<int64_t> size = mlir::getConstantIntValue(sizes[dim]);
    return size && *size % extent == 0;
  }
  int64_t chunkOf() const;
  mlir::Value countTiles(mlir::OpBuilder &b, unsigned dim);
  void runTiles(mlir::ValueRange numbers, mlir::OpBuilder &b);
  void runTile(mlir::OpBuilder &b, llvm::ArrayRef<mlir::Value> numbers);
  void clearAmaxes(mlir::OpBuilder &b);
  void forEachBlock(mlir::OpBuilder &b, const Direction &direction, Body body);
  void forEachChunk(mlir::OpBuilder &b, Body body);
  llvm::SmallVector<mlir::Value> blockOf(mlir::OpBuilder &b, const Direction &direction,
                                         mlir::ValueRange indices);
  mlir::Value measureElement(mlir::OpBuilder &b, mlir::ValueRange indices);
  void raiseAmax(mlir::OpBuilder &b, const Direction &direction, mlir::ValueRange block, mlir::Value bits);
  void measure(mlir::OpBuilder &b);
  void measureShortChunks(mlir::OpBuilder &b, int64_t chunk);
  void computeScales(mlir::OpBuilder &b, const Direction &direction);
  void castElements(mlir::OpBuilder &b);
  mlir::Value loadElement(mlir::OpBuilder &b, mlir::ValueRange indices);
  llvm::SmallVector<mlir::Value> inTile(mlir::OpBuilder &b, mlir::ValueRange indices);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  QuantizeBlocksOp op;
  ElementLoops &loops;
  ElementRegion region;
  llvm::ArrayRef<mlir::Value> sizes;
  mlir::Value source;
  CastEncoder encoder;
  llvm::SmallVector<Direction> directions;
  llvm::SmallVector<int64_t> tile;             ///< extents; 0: the whole dimension
  llvm::SmallVector<mlir::Value> lower, upper; ///< the bounds of the tile that is being built
  mlir::Value values;                          ///< the elements of the tile, if they are computed
};

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOLINALG_CAST_TILECAST_H
