// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Moves what loops compute anew in every iteration from one and the same tensor out of them,
// as far as it is a cast, a transpose or a reshape: so that a weight is quantized once. What
// loops and branches only hand on is the same tensor.

#include "fp8/Analysis/Rearrangement.h"
#include "fp8/Analysis/RegionFlow.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_HOISTCASTS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// Same elements, once each: nothing that makes a tensor larger than the one it is made of.
bool isView(Operation *op) {
  if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp>(op))
    return true;
  std::optional<Rearrangement> view = matchRearrangement(op);
  return view && view->map.isPermutation();
}

/// Destinations go with what is written into them, and nowhere alone.
bool isDestination(Operation *op) { return isa<tensor::EmptyOp>(op) && llvm::all_of(op->getUsers(), isView); }

/// Values that loops and branches only hand on are read where they come from.
void readOrigins(ValueRange values) {
  for (Value value : values) {
    SmallVector<Value> origins = getOrigins(value);
    if (origins.size() == 1 && origins.front() != value && origins.front().getType() == value.getType() &&
        origins.front().getParentRegion()->isAncestor(value.getParentRegion()))
      value.replaceAllUsesWith(origins.front());
  }
}

class HoistCasts : public impl::HoistCastsBase<HoistCasts> {
public:
  void runOnOperation() final {
    getOperation()->walk([](RegionBranchOpInterface op) {
      if (isa<scf::ForallOp>(op)) // writes to what it was handed
        return;
      for (Region &region : op->getRegions())
        readOrigins(region.getArguments());
      readOrigins(op->getResults());
    });
    // Inner loops first, so that what leaves one can leave the next as well.
    getOperation()->walk([](LoopLikeOpInterface loop) {
      moveLoopInvariantCode(
          loop.getLoopRegions(), [&](Value value, Region *) { return loop.isDefinedOutsideOfLoop(value); },
          [&](Operation *op, Region *) {
            return isMemoryEffectFree(op) && isSpeculatable(op) && (isView(op) || isDestination(op));
          },
          [&](Operation *op, Region *) { loop.moveOutOfLoop(op); });
    });
  }
};

} // namespace
} // namespace fp8
