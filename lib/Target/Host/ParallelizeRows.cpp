// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns each bufferized loop over rows into one kernel: a parallel loop with the temporaries of a
// row on the stack, if it is large enough for threads, else sequential loops.

#include "fp8/Conversion/Kernel.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "fp8/Target/Host/HostCode.h"
#include "fp8/Target/Host/Passes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace fp8 {
#define GEN_PASS_DEF_PARALLELIZEROWS
#include "fp8/Target/Host/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// Loops over fewer elements run on one thread: starting another takes longer. Rows are norms and softmaxes,
/// which take several nanoseconds per element.
static constexpr int64_t kParallelThreshold = 8192;

/// Returns whether all rows together have enough elements; true if their number is dynamic.
static bool isParallel(scf::ForallOp loop, int64_t rowElements) {
  if (getTarget(loop).hasManyThreads())
    return true;
  int64_t count = rowElements;
  for (OpFoldResult size : loop.getMixedUpperBound()) {
    std::optional<int64_t> known = getConstantIntValue(size);
    if (!known)
      return true;
    count *= *known;
  }
  return count >= kParallelThreshold;
}

/// Returns the temporaries of the body; emits an error if one has a dynamic size.
static FailureOr<SmallVector<memref::AllocOp>> findTemporaries(Operation *loop) {
  SmallVector<memref::AllocOp> allocs;
  loop->walk([&](memref::AllocOp alloc) { allocs.push_back(alloc); });
  for (memref::AllocOp alloc : allocs)
    if (!alloc.getType().hasStaticShape())
      return alloc.emitError("temporary ") << alloc.getType() << " of a row must be of known size";
  return allocs;
}

/// Turns the loop into sequential loops, in which all rows share one set of temporaries.
static FailureOr<Operation *> serialize(RewriterBase &rewriter, scf::ForallOp loop,
                                        ArrayRef<memref::AllocOp> temporaries) {
  for (memref::AllocOp alloc : temporaries)
    rewriter.moveOpBefore(alloc, loop);
  SmallVector<Operation *> nest;
  if (failed(scf::forallToForLoop(rewriter, loop, &nest)))
    return failure();
  return nest.front();
}

/// Turns the loop into a parallel one, in which every row has its own temporaries on the stack.
static FailureOr<Operation *> parallelize(RewriterBase &rewriter, scf::ForallOp loop,
                                          ArrayRef<memref::AllocOp> temporaries) {
  for (memref::AllocOp alloc : temporaries) {
    rewriter.setInsertionPoint(alloc);
    rewriter.replaceOpWithNewOp<memref::AllocaOp>(
        alloc, alloc.getType(), rewriter.getI64IntegerAttr(fp8::getTarget(loop).getBufferAlignment()));
  }
  rewriter.setInsertionPoint(loop);
  scf::ParallelOp parallel;
  if (failed(scf::forallToParallelLoop(rewriter, loop, &parallel)))
    return failure();
  return parallel.getOperation();
}

static LogicalResult convert(RewriterBase &rewriter, scf::ForallOp loop) {
  FailureOr<SmallVector<memref::AllocOp>> temporaries = findTemporaries(loop);
  if (failed(temporaries))
    return failure();
  int64_t rowElements = loop->getAttrOfType<IntegerAttr>(kRowElementsAttrName).getInt();
  rewriter.setInsertionPoint(loop);
  FailureOr<Operation *> kernel = isParallel(loop, rowElements) ? parallelize(rewriter, loop, *temporaries)
                                                                : serialize(rewriter, loop, *temporaries);
  if (failed(kernel))
    return failure();
  (*kernel)->setAttr(kKernelAttrName, rewriter.getUnitAttr());
  (*kernel)->setAttr(kRowElementsAttrName, rewriter.getI64IntegerAttr(rowElements));
  return success();
}

namespace {
struct ParallelizeRowsPass : public fp8::impl::ParallelizeRowsBase<ParallelizeRowsPass> {
  void runOnOperation() override {
    SmallVector<scf::ForallOp> loops;
    getOperation().walk([&](scf::ForallOp loop) {
      if (loop->hasAttr(kRowElementsAttrName))
        loops.push_back(loop);
    });
    IRRewriter rewriter(&getContext());
    for (scf::ForallOp loop : loops)
      if (failed(convert(rewriter, loop)))
        return signalPassFailure();
  }
};
} // namespace
