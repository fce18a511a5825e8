// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Allocates stack buffers of a parallel loop once per thread instead of once per iteration. The
// memref.alloca_scope that upstream puts around an iteration can then be folded away, which is
// necessary because branches inside one have no lowering.

#include "fp8/Target/CPU/Passes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/OpenMP/OpenMPDialect.h"

namespace fp8 {
#define GEN_PASS_DEF_HOISTSTACKBUFFERS
#include "fp8/Target/CPU/Passes.h.inc"
} // namespace fp8

using namespace mlir;

namespace {
struct HoistStackBuffersPass : public fp8::impl::HoistStackBuffersBase<HoistStackBuffersPass> {
  void runOnOperation() override {
    getOperation().walk([](memref::AllocaOp alloca) {
      auto threads = alloca->getParentOfType<omp::ParallelOp>();
      if (threads && alloca.getType().hasStaticShape())
        alloca->moveBefore(&threads.getRegion().front(), threads.getRegion().front().begin());
    });
  }
};
} // namespace
