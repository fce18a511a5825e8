// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the values of a step that differ from rank to rank, in one pass over the function's body.

#include "RankDependence.h"
#include "fp8/Dialect/FP8/IR/Boundary.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace fp8;

RankDependence::RankDependence(func::FuncOp function, int64_t axis) : axis(axis) {
  for (BlockArgument argument : function.getArguments())
    if (function.getArgAttr(argument.getArgNumber(), kBatchAttrName))
      varying.insert(argument);
  visit(function.getBody().front());
}

void RankDependence::visit(Block &block) {
  for (Operation &op : block) {
    SmallVector<Value> &read = reads[&op];
    read.assign(op.operand_begin(), op.operand_end());
    if (op.getNumRegions() != 0) {
      llvm::SetVector<Value> used;
      getUsedValuesDefinedAbove(op.getRegions(), used);
      read.append(used.begin(), used.end());
    }
    bool isOfRank = isVarying(&op);
    if (isOfRank)
      varying.insert(op.result_begin(), op.result_end());
    if (isa<linalg::LinalgOp>(op))
      continue;
    for (Region &region : op.getRegions())
      for (Block &inner : region) {
        if (isOfRank)
          varying.insert(inner.args_begin(), inner.args_end());
        visit(inner);
      }
  }
}

ArrayRef<Value> RankDependence::getReads(Operation *op) const {
  auto found = reads.find(op);
  return found == reads.end() ? ArrayRef<Value>() : ArrayRef<Value>(found->second);
}

bool RankDependence::isVarying(Operation *op) const {
  if (auto collective = dyn_cast<CollectiveOpInterface>(op))
    if (llvm::is_contained(collective.getAxesAttr().asArrayRef(), axis) &&
        isa<AllReduceOp, AllGatherOp, BroadcastOp>(op))
      return false;
  bool asksForRank = op->walk([](RankOp) { return WalkResult::interrupt(); }).wasInterrupted();
  return asksForRank || llvm::any_of(getReads(op), [&](Value value) { return varies(value); });
}
