// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives every iteration of a kernel's parallel loop, such as a row of a norm or the sum of a row, to the
// lanes of a warp, or of a block of warps where iterations are long and few: lane i of 32 runs iterations i,
// i + 32, … of the loops inside. Sums, maxima and selections of such a loop are combined by the lanes, in an
// order that depends on nothing but the number of iterations. A kernel without a parallel loop, such as a sum
// of all elements, is a loop of one iteration.

#include "LaneLoop.h"
#include "ThreadLoop.h"
#include "fp8/Conversion/FP8ToGPU/Kernels.h"
#include "fp8/Conversion/Kernel.h"
#include "fp8/Target/PTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace fp8 {
#define GEN_PASS_DEF_MAPREDUCTIONS
#include "fp8/Target/PTX/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// Shares the iterations of a kernel among lanes, if they can: those of its parallel loop, or all of its
/// code.
static void share(func::FuncOp func) {
  if (func.getNumResults() != 0 || !llvm::hasSingleElement(func.getBody()))
    return;
  if (scf::ParallelOp loop = findParallelLoop(func); loop && !hasHostBounds(loop))
    return;                                      // one thread runs it; shuffles need all lanes
  OwningOpRef<func::FuncOp> copy = func.clone(); // which is dropped if they cannot
  NestIndices nests;
  scf::ParallelOp loop = findParallelLoop(*copy);
  if (loop)
    joinNests(*loop.getBody(), nests);
  else
    loop = wrapInLoop(*copy, nests);
  LaneLoop lanes(loop, nests);
  if (!lanes.analyze())
    return;
  lanes.rewrite();
  func.getBody().takeBody(copy->getBody());
  if (lanes.getLanes() > kWarpLanes) // a block for each iteration
    func->setAttr(kThreadsAttrName, Builder(func.getContext()).getI32IntegerAttr(lanes.getLanes()));
}

namespace {
struct MapReductionsPass : public fp8::impl::MapReductionsBase<MapReductionsPass> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal() || func.isPublic() || hasModuleAttr(func, kProgramOrderAttrName))
      return;
    if (func.walk([](scf::ForOp) { return WalkResult::interrupt(); }).wasInterrupted())
      share(func);
  }
};
} // namespace
