// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the values that control flow forwards.

#include "fp8/Analysis/RegionFlow.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

/// Returns the op with control flow that forwards values to `value`, if any.
static RegionBranchOpInterface getForwardingOp(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner()->isEntryBlock()
               ? dyn_cast_if_present<RegionBranchOpInterface>(argument.getOwner()->getParentOp())
               : RegionBranchOpInterface();
  return dyn_cast<RegionBranchOpInterface>(value.getDefiningOp());
}

SmallVector<Value> fp8::getForwardedValues(Value value) {
  SmallVector<Value> forwarded;
  RegionBranchOpInterface op = getForwardingOp(value);
  if (!op)
    return forwarded;
  auto collect = [&](RegionBranchPoint point, auto getOperands) {
    SmallVector<RegionSuccessor> successors;
    op.getSuccessorRegions(point, successors);
    for (RegionSuccessor successor : successors) {
      ValueRange inputs = successor.getSuccessorInputs();
      auto position = llvm::find(inputs, value);
      if (position != inputs.end())
        forwarded.push_back(getOperands(successor)[position - inputs.begin()]);
    }
  };
  collect(RegionBranchPoint::parent(),
          [&](RegionSuccessor successor) { return op.getEntrySuccessorOperands(successor); });
  for (Region &region : op->getRegions())
    for (Block &block : region)
      if (auto terminator = dyn_cast<RegionBranchTerminatorOpInterface>(block.back()))
        collect(terminator,
                [&](RegionSuccessor successor) { return terminator.getSuccessorOperands(successor); });
  return forwarded;
}

SmallVector<Value> fp8::getOrigins(Value value) {
  llvm::SetVector<Value> seen;
  SmallVector<Value> origins;
  seen.insert(value);
  for (size_t i = 0; i < seen.size(); ++i) {
    SmallVector<Value> forwarded = getForwardedValues(seen[i]);
    // Poison is never read, so it is no origin.
    if (forwarded.empty() && !seen[i].getDefiningOp<ub::PoisonOp>())
      origins.push_back(seen[i]);
    seen.insert(forwarded.begin(), forwarded.end());
  }
  return origins;
}

Value fp8::getOnlyOrigin(Value value) {
  SmallVector<Value> origins = getOrigins(value);
  bool isOther = origins.size() == 1 && origins.front() != value;
  return isOther && origins.front().getType() == value.getType() ? origins.front() : Value();
}
