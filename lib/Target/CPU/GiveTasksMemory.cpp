// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives each worker its own part of the memory that tasks need: a thread has one part for all of its tasks,
// which stays in the caches of its core.

#include "Tasks.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Target/CPU/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace fp8 {
#define GEN_PASS_DEF_GIVETASKSMEMORY
#include "fp8/Target/CPU/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// Allocates the buffers of tasks before the loop over workers, one part for each. A part is a `memref.view`
/// of bytes with the type that the buffer had.
static LogicalResult giveMemory(RewriterBase &rewriter, scf::ParallelOp workers) {
  SmallVector<memref::AllocOp> allocs;
  workers.walk([&](memref::AllocOp alloc) { allocs.push_back(alloc); });
  std::optional<int64_t> count = getConstantIntValue(workers.getUpperBound().front());
  Location loc = workers.getLoc();
  IntegerAttr alignment = rewriter.getI64IntegerAttr(fp8::getTarget(workers).getBufferAlignment());
  for (memref::AllocOp alloc : allocs) {
    MemRefType type = alloc.getType();
    if (!type.hasStaticShape() || !count)
      return alloc.emitError("memory ") << type << " of a task must be of known size";
    int64_t bytes = llvm::alignTo(type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8),
                                  alignment.getInt());
    rewriter.setInsertionPoint(workers);
    Value all = memref::AllocOp::create(rewriter, loc,
                                        MemRefType::get({*count * bytes}, rewriter.getI8Type()), alignment);
    rewriter.setInsertionPoint(alloc);
    Value size = arith::ConstantIndexOp::create(rewriter, loc, bytes);
    Value begin = arith::MulIOp::create(rewriter, loc, workers.getInductionVars().front(), size);
    rewriter.replaceOpWithNewOp<memref::ViewOp>(alloc, type, all, begin, ValueRange());
  }
  return success();
}

namespace {
struct GiveTasksMemoryPass : public fp8::impl::GiveTasksMemoryBase<GiveTasksMemoryPass> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    for (scf::ParallelOp workers : findTasks<scf::ParallelOp>(getOperation()))
      if (failed(giveMemory(rewriter, workers)))
        return signalPassFailure();
  }
};
} // namespace
