// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Upstream's control flow sinking, restricted to branches of the program. Upstream's pass also sinks
// into branches inside linalg bodies, where a tensor would be computed once per element.

#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/ControlFlowSinkUtils.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_SINKINTOBRANCHES
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

class SinkIntoBranches : public impl::SinkIntoBranchesBase<SinkIntoBranches> {
public:
  void runOnOperation() final {
    auto &dominance = getAnalysis<DominanceInfo>();
    getOperation()->walk([&](RegionBranchOpInterface branch) {
      if (branch->getParentOfType<linalg::LinalgOp>() || isa<linalg::LinalgOp>(branch.getOperation()))
        return;
      SmallVector<Region *> regions;
      getSinglyExecutedRegionsToSink(branch, regions);
      // All ranks take part in a collective, whichever branch they take.
      auto mayMove = [](Operation *op, Region *) {
        return isMemoryEffectFree(op) && !isa<CollectiveOpInterface>(op);
      };
      controlFlowSink(regions, dominance, mayMove, [](Operation *op, Region *region) {
        op->moveBefore(&region->front(), region->front().begin());
      });
    });
  }
};

} // namespace
} // namespace fp8
