// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lets threads take tasks one by one.

#include "fp8/Conversion/Kernel.h"
#include "fp8/Target/CPU/Passes.h"

#include "mlir/Dialect/OpenMP/OpenMPDialect.h"

namespace fp8 {
#define GEN_PASS_DEF_SCHEDULETASKS
#include "fp8/Target/CPU/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

namespace {
struct ScheduleTasksPass : public fp8::impl::ScheduleTasksBase<ScheduleTasksPass> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      if (!op->removeAttr(kTaskAttrName))
        return;
      if (auto loop = op->getParentOfType<omp::WsloopOp>())
        loop.setScheduleKind(omp::ClauseScheduleKind::Dynamic);
    });
  }
};
} // namespace
