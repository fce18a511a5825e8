// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The iteration space of an operation, and the tiles of it that can be computed separately. Private
// to the library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_TILINGSPACE_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_TILINGSPACE_H

#include "fp8/Dialect/FP8/IR/ElementRegion.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Interfaces/TilingInterface.h"
#include <optional>
#include <string>

namespace fp8::detail {

/// The iteration space of one operation and its tiles, for TilingInterface.
class TilingSpace {
public:
  explicit TilingSpace(mlir::Operation *op);

  unsigned getNumDims() { return maps.front().getNumDims(); }
  /// Returns whether dimension `dim` is in `rows` and so cannot be tiled.
  bool isInRow(unsigned dim) {
    std::optional<ElementRegion> element = ElementRegion::of(op);
    return element && llvm::is_contained(element->rows, dim);
  }
  /// Returns the number of a result that is reduced over dimension `dim`, if there is one.
  std::optional<unsigned> getReducedResult(unsigned dim);
  /// Returns the size of dimension `dim`.
  mlir::OpFoldResult getSize(mlir::OpBuilder &builder, unsigned dim);

  /// Returns why the tile cannot be computed separately, or "" if it can. Creates no IR. A null
  /// size stands for the whole dimension.
  std::string findObstacle(llvm::ArrayRef<mlir::OpFoldResult> offsets,
                           llvm::ArrayRef<mlir::OpFoldResult> sizes);
  /// Finds the tile of the iteration space that computes a tile of a result, with null offsets and
  /// sizes for whole dimensions. Fails if no such tile can be computed separately.
  mlir::LogicalResult getTileOfResult(unsigned result, llvm::ArrayRef<mlir::OpFoldResult> resultOffsets,
                                      llvm::ArrayRef<mlir::OpFoldResult> resultSizes,
                                      llvm::SmallVectorImpl<mlir::OpFoldResult> &offsets,
                                      llvm::SmallVectorImpl<mlir::OpFoldResult> &sizes);
  /// Replaces null offsets and sizes by those of the whole dimension.
  void fillInWhole(mlir::OpBuilder &builder, llvm::SmallVectorImpl<mlir::OpFoldResult> &offsets,
                   llvm::SmallVectorImpl<mlir::OpFoldResult> &sizes);

  mlir::linalg::SliceParameters getSlice(mlir::OpBuilder &builder, mlir::OpOperand &operand,
                                         llvm::ArrayRef<mlir::OpFoldResult> offsets,
                                         llvm::ArrayRef<mlir::OpFoldResult> sizes);
  mlir::OpOperand &getInit(unsigned result) { return *op.getDpsInitOperand(result); }
  mlir::TilingResult tile(mlir::OpBuilder &builder, llvm::ArrayRef<mlir::OpFoldResult> offsets,
                          llvm::ArrayRef<mlir::OpFoldResult> sizes);

private:
  /// Returns the dimensions of operands that iteration dimension `dim` indexes.
  llvm::SmallVector<std::pair<mlir::Value, int64_t>> getOperandDims(unsigned dim);
  bool isWhole(unsigned dim, mlir::OpFoldResult size);

  mlir::DestinationStyleOpInterface op;
  llvm::SmallVector<mlir::AffineMap> maps;
};

} // namespace fp8::detail

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_TILINGSPACE_H
