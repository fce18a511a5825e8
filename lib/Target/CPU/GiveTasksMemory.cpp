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
#include <numeric>

namespace fp8 {
#define GEN_PASS_DEF_GIVETASKSMEMORY
#include "fp8/Target/CPU/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// Memory of all workers beyond which there are fewer of them, and the least that there are then. A worker
/// without a task does not touch its memory, so that this is about addresses.
static constexpr int64_t kMostBytes = int64_t(1) << 30, kLeastWorkers = 16;

/// Allocates the buffers of tasks before the loop over workers, one part for each. A part is a `memref.view`
/// of bytes with the type that the buffer had.
static LogicalResult giveMemory(RewriterBase &rewriter, scf::ParallelOp workers) {
  SmallVector<memref::AllocOp> allocs;
  workers.walk([&](memref::AllocOp alloc) { allocs.push_back(alloc); });
  Location loc = workers.getLoc();
  IntegerAttr alignment = rewriter.getI64IntegerAttr(fp8::getTarget(workers).getBufferAlignment());
  SmallVector<int64_t> sizes;
  for (memref::AllocOp alloc : allocs) {
    MemRefType type = alloc.getType();
    if (!type.hasStaticShape())
      return alloc.emitError("memory ") << type << " of a task must be of known size";
    int64_t bytes = type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    sizes.push_back(llvm::alignTo(bytes, alignment.getInt()));
  }
  int64_t count = *getConstantIntValue(workers.getUpperBound().front());
  int64_t ofWorker = std::max<int64_t>(std::accumulate(sizes.begin(), sizes.end(), int64_t(0)), 1);
  count = std::min(count, std::max(kLeastWorkers, kMostBytes / ofWorker));
  rewriter.setInsertionPoint(workers);
  workers.getUpperBoundMutable()[0].set(arith::ConstantIndexOp::create(rewriter, loc, count));
  for (auto [alloc, bytes] : llvm::zip_equal(allocs, sizes)) {
    rewriter.setInsertionPoint(workers);
    Value all = memref::AllocOp::create(rewriter, loc, MemRefType::get({count * bytes}, rewriter.getI8Type()),
                                        alignment);
    rewriter.setInsertionPoint(alloc);
    Value size = arith::ConstantIndexOp::create(rewriter, loc, bytes);
    Value begin = arith::MulIOp::create(rewriter, loc, workers.getInductionVars().front(), size);
    rewriter.replaceOpWithNewOp<memref::ViewOp>(alloc, alloc.getType(), all, begin, ValueRange());
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
