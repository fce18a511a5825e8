// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Allocates stack buffers of a parallel loop once per thread instead of once per iteration, and removes
// the memref.alloca_scope that upstream puts around an iteration: branches inside one have no lowering.

#include "fp8/Target/CPU/Passes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/OpenMP/OpenMPDialect.h"

namespace fp8 {
#define GEN_PASS_DEF_HOISTSTACKBUFFERS
#include "fp8/Target/CPU/Passes.h.inc"
} // namespace fp8

using namespace mlir;

/// Replaces `scope` by its body if that allocates nothing. Upstream's pattern keeps a scope with calls,
/// although what a function allocates ends with the call.
static void inlineScope(memref::AllocaScopeOp scope) {
  WalkResult allocates = scope.walk([](memref::AllocaOp) { return WalkResult::interrupt(); });
  if (allocates.wasInterrupted() || !scope.getBodyRegion().hasOneBlock())
    return;
  Block &body = scope.getBodyRegion().front();
  Operation *end = body.getTerminator();
  scope->replaceAllUsesWith(end->getOperands());
  end->erase();
  scope->getBlock()->getOperations().splice(scope->getIterator(), body.getOperations());
  scope->erase();
}

namespace {
struct HoistStackBuffersPass : public fp8::impl::HoistStackBuffersBase<HoistStackBuffersPass> {
  void runOnOperation() override {
    getOperation().walk([](memref::AllocaOp alloca) {
      auto threads = alloca->getParentOfType<omp::ParallelOp>();
      if (threads && alloca.getType().hasStaticShape())
        alloca->moveBefore(&threads.getRegion().front(), threads.getRegion().front().begin());
    });
    getOperation().walk(inlineScope);
  }
};
} // namespace
