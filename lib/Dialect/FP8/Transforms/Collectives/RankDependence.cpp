// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the values of a step that differ from rank to rank, in one pass over the function's body.

#include "RankDependence.h"
#include "fp8/Dialect/FP8/IR/Boundary.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace fp8;

RankDependence::RankDependence(func::FuncOp function, int64_t axis)
    : body(function.getBody().front()), axis(axis) {
  for (BlockArgument argument : function.getArguments())
    if (function.getArgAttr(argument.getArgNumber(), kBatchAttrName))
      varying.insert(argument);
  for (Operation &op : body) {
    SmallVector<Value> &read = reads[&op];
    read.assign(op.operand_begin(), op.operand_end());
    if (op.getNumRegions() != 0) {
      llvm::SetVector<Value> used;
      getUsedValuesDefinedAbove(op.getRegions(), used);
      read.append(used.begin(), used.end());
    }
    if (isVarying(&op))
      varying.insert(op.result_begin(), op.result_end());
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

void RankDependence::makeEqual(Value value) {
  varying.erase(value);
  SmallVector<Value> worklist{value};
  while (!worklist.empty())
    for (Operation *user : worklist.pop_back_val().getUsers()) {
      Operation *op = body.findAncestorOpInBlock(*user);
      if (!op || op->getNumResults() == 0 || !varies(op->getResult(0)) || isVarying(op))
        continue;
      for (Value result : op->getResults()) {
        varying.erase(result);
        worklist.push_back(result);
      }
    }
}
