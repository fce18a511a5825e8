// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives tasks, iterations that run on one thread each, such as the heads of attention, to workers: a thread
// takes one after the other.

#include "Tasks.h"
#include "fp8/Conversion/Kernel.h"
#include "fp8/Conversion/TakingLoop.h"
#include "fp8/Target/CPU/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace fp8 {
#define GEN_PASS_DEF_PARALLELIZETASKS
#include "fp8/Target/CPU/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// Replaces a loop over tasks by one over workers, each of which takes tasks while there are any.
static LogicalResult giveToWorkers(RewriterBase &rewriter, scf::ForallOp tasks) {
  bool isKnown = llvm::all_of(tasks.getMixedUpperBound(),
                              [](OpFoldResult size) { return getConstantIntValue(size).has_value(); });
  if (!tasks.isNormalized() || !isKnown || tasks.getNumResults() != 0)
    return tasks.emitError("a loop over tasks must run from 0 to known numbers by 1, and have no results");
  Location loc = tasks.getLoc();
  rewriter.setInsertionPoint(tasks);
  int64_t count = 1;
  for (OpFoldResult size : tasks.getMixedUpperBound())
    count *= *getConstantIntValue(size);
  Value taken = allocateTaken(rewriter, loc);
  Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0),
        one = arith::ConstantIndexOp::create(rewriter, loc, 1);
  Value all = arith::ConstantIndexOp::create(rewriter, loc, count);
  Value workers = arith::ConstantIndexOp::create(rewriter, loc, std::min(count, kMostWorkers));
  resetTaken(rewriter, loc, taken);
  auto parallel = scf::ParallelOp::create(rewriter, loc, zero, workers, one);
  parallel->setAttr(kTasksAttrName, rewriter.getUnitAttr());
  parallel->setAttr(kKernelAttrName, rewriter.getUnitAttr());
  if (Attribute computes = tasks->getAttr(kComputesAttrName))
    parallel->setAttr(kComputesAttrName, computes);
  OpBuilder inside = OpBuilder::atBlockTerminator(parallel.getBody());
  buildTakingLoop(inside, loc, taken, all, [&](OpBuilder &b, Value task) {
    auto indices = affine::AffineDelinearizeIndexOp::create(b, loc, task, tasks.getMixedUpperBound());
    tasks.getTerminator()->erase();
    rewriter.inlineBlockBefore(tasks.getBody(), b.getInsertionBlock(), b.getInsertionPoint(),
                               indices.getResults());
  });
  rewriter.eraseOp(tasks);
  return success();
}

namespace {
struct ParallelizeTasksPass : public fp8::impl::ParallelizeTasksBase<ParallelizeTasksPass> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    for (scf::ForallOp tasks : findTasks<scf::ForallOp>(getOperation()))
      if (failed(giveToWorkers(rewriter, tasks)))
        return signalPassFailure();
  }
};
} // namespace
