// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the operations before a cast that can be computed row by row together with it. Private to
// the library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_ROWCLUSTER_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_ROWCLUSTER_H

#include "RegionFusion.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace fp8::detail {

/// Operations that compute the inputs of `op`, an fp8.amax or fp8.quantize, and that can be computed
/// row by row. All are in its block, and none of them reaches `op` through an operation that is not
/// a member.
class RowCluster {
public:
  RowCluster(mlir::Operation *op, llvm::ArrayRef<int64_t> rows) : op(op), rows(rows) {}

  /// Finds the members. Fails if none of them reduces over a row, or if an input or a summed extra
  /// result of `op` cannot be read or computed row by row.
  mlir::LogicalResult find();

  /// Returns why `writer`, whose results `op` reads, is no member; why there are no members, if that is the
  /// reason; empty for a member of a cluster that was found.
  Reason explain(mlir::Operation *writer) const;

  /// The members in order: linalg.generic, and reshapes that add or drop dimensions of size 1.
  llvm::SmallVector<mlir::Operation *> members;
  /// The map of each member from the dimensions of the tensor to its loops (a dimension, or 0 for a
  /// loop with one iteration); for a reshape, to the dimensions of its operand.
  llvm::DenseMap<mlir::Operation *, mlir::AffineMap> loops;
  /// The map of each result of a member in the dimensions of the tensor.
  llvm::DenseMap<mlir::Value, mlir::AffineMap> placements;

  bool isMember(mlir::Operation *other) const { return other && loops.contains(other); }
  /// Returns whether `value`, the result of a member, has readers outside of the cluster.
  bool isReadOutside(mlir::Value value) const;
  llvm::SmallVector<int64_t> rowSizes() const;
  /// Returns whether the map has every dimension outside of a row, so that each row has a value of
  /// its own.
  bool differsByRow(mlir::AffineMap map) const;

private:
  bool isSliceable(mlir::AffineMap map) const;
  void addRead(mlir::Value value, mlir::AffineMap map);
  bool canReadAndSum(const ElementRegion &region);
  bool add(mlir::Operation *candidate);
  bool addGeneric(mlir::linalg::GenericOp generic);
  bool addReshape(mlir::Operation *reshape);
  mlir::AffineMap findLoops(mlir::linalg::GenericOp generic);
  bool fitsRows(mlir::linalg::GenericOp generic, mlir::AffineMap map);
  int64_t countRowBytes(mlir::Type element, llvm::ArrayRef<int64_t> dims) const;
  bool hasRoomFor(mlir::linalg::GenericOp generic, mlir::AffineMap map);

  mlir::Operation *op;
  llvm::SmallVector<int64_t> rows;
  llvm::SmallVector<int64_t> sizes;                  ///< sizes of the tensor's dimensions
  llvm::SmallPtrSet<mlir::Operation *, 16> pending;  ///< producers of values that members read
  llvm::DenseSet<mlir::Value> reads;                 ///< inputs of the cluster so far
  llvm::DenseSet<mlir::Value> clashing;              ///< values that are read at two different maps
  llvm::DenseMap<mlir::Operation *, Reason> reasons; ///< of producers that are no members
  Reason why;                                        ///< of the last check that failed
  int64_t rowBytes = 0;
  bool reduces = false;
};

/// Returns the scalar that `init` is filled with; null if `init` is not a fill.
mlir::Value getFillValue(mlir::Value init);

/// Returns a tensor.empty of the type of `init`; null if the type is dynamic and `init` is neither
/// a tensor.empty nor a fill of one.
mlir::Value getUnusedDestination(mlir::OpBuilder &builder, mlir::Value init);

} // namespace fp8::detail

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_ROWCLUSTER_H
