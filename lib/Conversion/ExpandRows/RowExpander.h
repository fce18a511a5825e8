// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A cast or amax with rows as loops over the rows. Private to the library.

#ifndef FP8_LIB_CONVERSION_EXPANDROWS_ROWEXPANDER_H
#define FP8_LIB_CONVERSION_EXPANDROWS_ROWEXPANDER_H

#include "fp8/Dialect/FP8/IR/ElementRegion.h"

namespace fp8 {

/// A slice of a tensor, of a rank reduced by the dimensions in which it has a single index.
struct RowSlice {
  llvm::SmallVector<mlir::OpFoldResult> offsets, sizes, strides;
  mlir::RankedTensorType type;
};

/// Expands one cast or amax with rows.
class RowExpander {
public:
  RowExpander(mlir::RewriterBase &rewriter, mlir::Operation *op)
      : rewriter(rewriter), loc(op->getLoc()), op(op), quantize(llvm::dyn_cast<QuantizeOp>(op)),
        region(*ElementRegion::of(op)), outer(region.outerDims()) {}

  void expand();

private:
  /// A tensor that the loops write, with the map to a row's part of it.
  struct Target {
    mlir::AffineMap map;
    int64_t result; ///< number of the operation's result; -1 for the amaxes of the rows
  };

  mlir::OpFoldResult sizeOf(unsigned dim);
  RowSlice sliceAt(mlir::OpBuilder &b, mlir::Value tensor, mlir::AffineMap map,
                   llvm::ArrayRef<mlir::OpFoldResult> indices);
  mlir::Value readPart(mlir::OpBuilder &b, mlir::Value tensor, mlir::AffineMap map,
                       llvm::ArrayRef<mlir::OpFoldResult> indices);

  void findTargets(llvm::SmallVectorImpl<mlir::Value> &tensors);
  llvm::SmallVector<mlir::Value> runRow(mlir::OpBuilder &b, llvm::ArrayRef<mlir::OpFoldResult> indices,
                                        mlir::ValueRange tensors, llvm::SmallVectorImpl<RowSlice> &slices,
                                        llvm::SmallVectorImpl<mlir::Value> &addends);
  mlir::Value castRow(mlir::OpBuilder &b, mlir::Value row, llvm::ArrayRef<mlir::Value> outs);
  llvm::SmallVector<mlir::Value>
  runRows(mlir::OpBuilder &b, llvm::ArrayRef<mlir::OpFoldResult> counts, mlir::ValueRange tensors,
          mlir::ValueRange buffers,
          llvm::function_ref<llvm::SmallVector<mlir::OpFoldResult>(mlir::OpBuilder &, mlir::ValueRange)>
              findIndices);
  llvm::SmallVector<mlir::Value> runChunks(llvm::SmallVector<mlir::Value> tensors);
  llvm::SmallVector<int64_t> chooseChunk();
  mlir::Value sumChunk(mlir::OpBuilder &b, mlir::Value buffer, llvm::ArrayRef<mlir::OpFoldResult> counts,
                       mlir::Value sum);
  mlir::Value invertScale();
  mlir::Value randomOfRow(mlir::OpBuilder &b, llvm::ArrayRef<mlir::OpFoldResult> indices);
  int64_t countRowElements();

  mlir::RewriterBase &rewriter;
  mlir::Location loc;
  mlir::Operation *op;
  QuantizeOp quantize;
  ElementRegion region;
  llvm::SmallVector<unsigned> outer;
  llvm::SmallVector<Target> targets;
  llvm::SmallVector<unsigned> sums; ///< the extra results that are sums
};

} // namespace fp8

#endif // FP8_LIB_CONVERSION_EXPANDROWS_ROWEXPANDER_H
