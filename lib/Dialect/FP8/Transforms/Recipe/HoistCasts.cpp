// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Moves casts, transposes and reshapes of loop-invariant tensors out of loops, so that a weight is
// quantized once. A tensor that loops and branches forward unchanged is loop-invariant.

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

/// Returns whether `op` is a cast, a transpose or a reshape: its result has the elements of its
/// operand, each once. Broadcasts are not moved, because their results are larger.
bool isView(Operation *op) {
  if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp>(op))
    return true;
  std::optional<Rearrangement> view = matchRearrangement(op);
  return view && view->map.isPermutation();
}

/// Returns whether `op` is the destination of such operations only, and so moves with them.
bool isDestination(Operation *op) { return isa<tensor::EmptyOp>(op) && llvm::all_of(op->getUsers(), isView); }

/// Replaces values that loops and branches forward unchanged by their origins.
void readOrigins(ValueRange values) {
  for (Value value : values) {
    Value origin = getOnlyOrigin(value);
    if (origin && origin.getParentRegion()->isAncestor(value.getParentRegion()))
      value.replaceAllUsesWith(origin);
  }
}

class HoistCasts : public impl::HoistCastsBase<HoistCasts> {
public:
  void runOnOperation() final {
    getOperation()->walk([](RegionBranchOpInterface op) {
      if (isa<scf::ForallOp>(op)) // its region arguments are written to
        return;
      for (Region &region : op->getRegions())
        readOrigins(region.getArguments());
      readOrigins(op->getResults());
    });
    // Inner loops first, so that an operation can leave several loops.
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
