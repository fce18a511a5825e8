// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds a cast or an amax on rows from one on elements and a cluster of its producers. Private to
// the library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_ROWBUILDER_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_ROWBUILDER_H

#include "RowCluster.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace fp8::detail {

/// Builds a cast or an amax on rows beside the original one.
class RowBuilder {
public:
  RowBuilder(mlir::RewriterBase &rewriter, mlir::Operation *op, llvm::ArrayRef<int64_t> rows,
             const RowCluster &cluster)
      : rewriter(rewriter), op(op), old(*ElementRegion::of(op)), rows(rows), cluster(cluster),
        loc(op->getLoc()) {}

  /// Creates the operation on rows before `op`, and does not replace `op`.
  mlir::Operation *build();
  /// The results of members that become extra results, in order, after those of `op`.
  llvm::SetVector<mlir::Value> stored;

private:
  mlir::Value partOf(mlir::Value value, mlir::AffineMap map);
  mlir::AffineMap dropOuterLoops(mlir::AffineMap map, mlir::AffineMap loops);
  mlir::Value indexOf(mlir::AffineExpr place);
  mlir::Value elementIndex(mlir::OpBuilder &b, int64_t dim);
  mlir::IRMapping cloneBody(mlir::OpBuilder &b, mlir::linalg::GenericOp generic, mlir::AffineMap loops,
                            mlir::IRMapping mapping);
  void inlineMember(mlir::linalg::GenericOp generic, mlir::AffineMap loops);
  void addScalar(mlir::linalg::GenericOp generic, mlir::AffineMap loops);
  void addRow(mlir::linalg::GenericOp generic, mlir::AffineMap loops);
  llvm::SmallVector<mlir::Value> addElements();
  void store(llvm::SmallVectorImpl<mlir::Value> &yielded, llvm::SmallVectorImpl<mlir::Value> &outs,
             llvm::SmallVectorImpl<mlir::AffineMap> &extraMaps);

  mlir::RewriterBase &rewriter;
  mlir::Operation *op;
  ElementRegion old;
  llvm::SmallVector<int64_t> rows;
  const RowCluster &cluster;
  mlir::Location loc;
  mlir::Block *body = nullptr;
  llvm::SmallVector<mlir::Value> inputs;
  llvm::SmallVector<mlir::AffineMap> inputMaps;
  llvm::DenseMap<mlir::Value, mlir::Value> parts; ///< values in the region for results of members
};

} // namespace fp8::detail

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_ROWBUILDER_H
