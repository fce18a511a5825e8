// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the parallel loops within a task on its thread.

#include "Tasks.h"
#include "fp8/Target/CPU/Passes.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"

namespace fp8 {
#define GEN_PASS_DEF_SERIALIZETASKS
#include "fp8/Target/CPU/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

namespace {
struct SerializeTasksPass : public fp8::impl::SerializeTasksBase<SerializeTasksPass> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    for (scf::ParallelOp workers : findTasks<scf::ParallelOp>(getOperation())) {
      SmallVector<scf::ParallelOp> inner;
      workers.getBody()->walk([&](scf::ParallelOp loop) { inner.push_back(loop); });
      for (scf::ParallelOp loop : inner)
        if (failed(scf::parallelForToNestedFors(rewriter, loop)))
          return signalPassFailure();
    }
  }
};
} // namespace
