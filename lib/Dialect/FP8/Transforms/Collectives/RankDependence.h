// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The values of a step that differ from rank to rank. Private to the room.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_COLLECTIVES_RANKDEPENDENCE_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_COLLECTIVES_RANKDEPENDENCE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace fp8 {

/// The values of a function that depend on an argument marked `fp8.batch`, or on the number of the rank. An
/// operation with regions depends on all that its regions read, and the arguments of its blocks do. A value
/// that a collective along the axis gives every rank does not depend on it. Bodies of linalg ops are not
/// looked at.
class RankDependence {
public:
  RankDependence(mlir::func::FuncOp function, int64_t axis);

  bool varies(mlir::Value value) const { return varying.contains(value); }
  /// Returns the values that `op` reads: its operands, and what its regions use.
  llvm::ArrayRef<mlir::Value> getReads(mlir::Operation *op) const;

private:
  void visit(mlir::Block &block);
  bool isVarying(mlir::Operation *op) const;

  int64_t axis;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value>> reads;
  llvm::DenseSet<mlir::Value> varying;
};

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_COLLECTIVES_RANKDEPENDENCE_H
