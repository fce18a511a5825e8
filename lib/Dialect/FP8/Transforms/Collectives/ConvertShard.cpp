// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the grid of a program, and converts what is of the shard dialect on it.

#include "ShardConverter.h"
#include "fp8/Dialect/FP8/IR/Boundary.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_CONVERTSHARD
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// Returns the grid of the program, which its collectives share; empty for a program of one rank.
FailureOr<DenseI64ArrayAttr> findGrid(ModuleOp module) {
  auto grid = module->getAttrOfType<DenseI64ArrayAttr>(kGridAttrName);
  auto note = [&](Operation *op, DenseI64ArrayAttr own) {
    grid = grid ? grid : own;
    return grid == own ? WalkResult::advance()
                       : WalkResult(op->emitError() << "is on another grid: a program has one");
  };
  WalkResult walked = module.walk([&](Operation *op) {
    if (auto declared = dyn_cast<shard::GridOp>(op))
      return note(op, declared.getShapeAttr());
    auto collective = dyn_cast<CollectiveOpInterface>(op);
    return collective ? note(op, collective.getGridAttr()) : WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  return grid;
}

class ConvertShard : public impl::ConvertShardBase<ConvertShard> {
public:
  void runOnOperation() final {
    ModuleOp module = getOperation();
    FailureOr<DenseI64ArrayAttr> grid = findGrid(module);
    if (failed(grid))
      return signalPassFailure();
    SmallVector<Operation *> ops;
    module.walk([&](Operation *op) {
      if (isa_and_nonnull<shard::ShardDialect>(op->getDialect()) && !isa<shard::GridOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      if (!*grid) {
        op->emitError("is on a grid that the module does not declare with shard.grid");
        return signalPassFailure();
      }
      if (failed(ShardConverter(module, *grid).convert(op)))
        return signalPassFailure();
    }
    for (auto declared : llvm::make_early_inc_range(module.getOps<shard::GridOp>()))
      declared.erase();
    if (*grid)
      module->setAttr(kGridAttrName, *grid);
  }
};

} // namespace
} // namespace fp8
