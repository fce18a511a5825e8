// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives of upstream's shard dialect as those of the fp8 dialect. Private to the library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_COLLECTIVES_SHARDCONVERTER_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_COLLECTIVES_SHARDCONVERTER_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/Builders.h"

namespace fp8 {

/// Converts the operations of a program on one grid.
class ShardConverter {
public:
  ShardConverter(mlir::ModuleOp module, llvm::ArrayRef<int64_t> grid)
      : grid(grid), builder(module.getContext()), gridAttr(builder.getDenseI64ArrayAttr(grid)) {}

  /// Replaces `op`, of the shard dialect; an error at it where that cannot be.
  llvm::LogicalResult convert(mlir::Operation *op);

private:
  /// Sets the axes of the current operation, in which its group lies.
  llvm::LogicalResult setAxes(mlir::Operation *op, llvm::ArrayRef<mlir::shard::GridAxis> gridAxes,
                              bool ordered = true);
  /// Sets the number of ranks of the group, which must be known.
  llvm::LogicalResult setGroupSize(mlir::Operation *op);
  mlir::FailureOr<int64_t> getRoot(mlir::Operation *op, llvm::ArrayRef<int64_t> root,
                                   mlir::ValueRange dynamic);
  mlir::FailureOr<ReduceKind> getReduction(mlir::Operation *op, mlir::shard::ReductionKind kind);
  /// Returns `input` with the elements of `type`.
  mlir::FailureOr<mlir::Value> convertElements(mlir::Operation *op, mlir::Value input, mlir::Type type);
  mlir::Value empty(mlir::Value like, std::optional<unsigned> dim = {}, int64_t times = 1, int64_t parts = 1);
  mlir::Value coordinate(int64_t axis);
  mlir::Value positionInGroup();
  mlir::Value index(int64_t value) { return mlir::arith::ConstantIndexOp::create(builder, loc, value); }

  llvm::LogicalResult reduce(mlir::Operation *op, mlir::Value input, mlir::shard::ReductionKind kind);
  llvm::LogicalResult gather(mlir::Operation *op, mlir::Value input, int64_t dim);
  llvm::LogicalResult reduceScatter(mlir::shard::ReduceScatterOp op);
  llvm::LogicalResult broadcast(mlir::Operation *op, mlir::Value input, llvm::ArrayRef<int64_t> root,
                                mlir::ValueRange dynamic);
  llvm::LogicalResult scatter(mlir::shard::ScatterOp op);
  llvm::LogicalResult shift(mlir::shard::ShiftOp op);
  llvm::LogicalResult allToAll(mlir::shard::AllToAllOp op);
  mlir::FailureOr<mlir::Value> slice(mlir::Operation *op, mlir::Value input, int64_t dim);
  llvm::LogicalResult replace(mlir::Operation *op, mlir::ValueRange values);

  llvm::ArrayRef<int64_t> grid;
  mlir::OpBuilder builder;
  mlir::DenseI64ArrayAttr gridAttr, axes;
  mlir::Location loc = builder.getUnknownLoc();
  int64_t ranks = 0;
};

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_COLLECTIVES_SHARDCONVERTER_H
