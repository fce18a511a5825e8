// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which operations before a cast can compute a row at a time together with it. Private to the
// library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_ROWCLUSTER_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_ROWCLUSTER_H

#include "fp8/Dialect/FP8/IR/ElementRegion.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace fp8::detail {

/// Operations that compute what `op`, an fp8.amax or fp8.quantize, reads, and that can compute it
/// by rows. All are in its block; no way leads from one of them to `op` around the others.
class RowCluster {
public:
  RowCluster(mlir::Operation *op, llvm::ArrayRef<int64_t> rows) : op(op), rows(rows) {}

  /// Finds the members. Fails where none of them reduces over a row, or where something that
  /// `op` reads or sums does not come in rows.
  mlir::LogicalResult find();

  /// In their order: linalg.generic, and reshapes that add or drop dimensions of one element.
  llvm::SmallVector<mlir::Operation *> members;
  /// From the dimensions of the tensor to the loops of a member: a dimension, or 0 for a loop
  /// with one iteration. Of a reshape: to the dimensions of what it reads.
  llvm::DenseMap<mlir::Operation *, mlir::AffineMap> loops;
  /// Where the results of members lie in the dimensions of the tensor.
  llvm::DenseMap<mlir::Value, mlir::AffineMap> placements;

  bool isMember(mlir::Operation *other) const { return other && loops.contains(other); }
  /// Whether `value`, the result of a member, has readers outside of the cluster.
  bool isReadOutside(mlir::Value value) const;
  llvm::SmallVector<int64_t> rowSizes() const;
  /// Whether the map has every dimension outside of a row, so that each row has its own.
  bool differsByRow(mlir::AffineMap map) const;

private:
  bool isSliceable(mlir::AffineMap map) const;
  void want(mlir::Value value, mlir::AffineMap map);
  bool add(mlir::Operation *candidate);
  bool addGeneric(mlir::linalg::GenericOp generic);
  bool addReshape(mlir::Operation *reshape);
  mlir::AffineMap findLoops(mlir::linalg::GenericOp generic);
  bool fitsRows(mlir::linalg::GenericOp generic, mlir::AffineMap map);
  int64_t countRowBytes(mlir::Type element, llvm::ArrayRef<int64_t> dims) const;
  bool hasRoomFor(mlir::linalg::GenericOp generic, mlir::AffineMap map);

  mlir::Operation *op;
  llvm::SmallVector<int64_t> rows;
  llvm::SmallVector<int64_t> sizes;                 ///< of the tensor's dimensions
  llvm::SmallPtrSet<mlir::Operation *, 16> pending; ///< what computes a value that is wanted
  llvm::DenseSet<mlir::Value> reads;                ///< by the members, if nothing more is added
  llvm::DenseSet<mlir::Value> clashing;             ///< wanted at two places
  int64_t rowBytes = 0;
  bool reduces = false;
};

/// The scalar that fills `init` before it is added to; null where it is anything else.
mlir::Value getFillValue(mlir::Value init);

/// A tensor like `init` that nothing has written yet; null where its size is not known and `init`
/// is not one, or a fill of one, itself.
mlir::Value getUnusedDestination(mlir::OpBuilder &builder, mlir::Value init);

} // namespace fp8::detail

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_ROWCLUSTER_H
