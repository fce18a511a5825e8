// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The iteration space of an operation, tiles of it, and which of them can be computed on their
// own. Private to the library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_TILINGSPACE_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_TILINGSPACE_H

#include "fp8/Dialect/FP8/IR/ElementRegion.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Interfaces/TilingInterface.h"
#include <optional>
#include <string>

namespace fp8::detail {

/// What upstream asks about, for one operation: its iteration space and a tile of it.
class TilingSpace {
public:
  explicit TilingSpace(mlir::Operation *op);

  unsigned getNumDims() { return maps.front().getNumDims(); }
  /// Whether dimension `dim` belongs to rows, which are computed whole.
  bool isInRow(unsigned dim) {
    std::optional<ElementRegion> element = ElementRegion::of(op);
    return element && llvm::is_contained(element->rows, dim);
  }
  /// The result that dimension `dim` is reduced into, if there is one.
  std::optional<unsigned> getReducedResult(unsigned dim);
  /// Number of iterations of dimension `dim`.
  mlir::OpFoldResult getSize(mlir::OpBuilder &builder, unsigned dim);

  /// Why the tile cannot be computed on its own, empty where it can. No IR is made. A null
  /// size stands for the whole dimension.
  std::string findObstacle(llvm::ArrayRef<mlir::OpFoldResult> offsets,
                           llvm::ArrayRef<mlir::OpFoldResult> sizes);
  /// The tile of the iteration space that computes a tile of a result; null offsets and sizes
  /// for dimensions that stay whole. Fails where no such tile can be computed on its own.
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
  /// Operand dimensions that run through iteration dimension `dim`.
  llvm::SmallVector<std::pair<mlir::Value, int64_t>> getOperandDims(unsigned dim);
  bool isWhole(unsigned dim, mlir::OpFoldResult size);

  mlir::DestinationStyleOpInterface op;
  llvm::SmallVector<mlir::AffineMap> maps;
};

} // namespace fp8::detail

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_TILINGSPACE_H
