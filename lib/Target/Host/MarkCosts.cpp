// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Marks calls of kernels with their costs, for targets that change the code of kernels before the list of
// kernels is made.

#include "KernelCost.h"
#include "fp8/Target/Host/Passes.h"

namespace fp8 {
#define GEN_PASS_DEF_MARKCOSTS
#include "fp8/Target/Host/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

namespace {
struct MarkCostsPass : public fp8::impl::MarkCostsBase<MarkCostsPass> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    getOperation().walk([&](func::CallOp call) {
      auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
      bool isInEntry = call->getParentOfType<func::FuncOp>().isPublic();
      if (isInEntry && kernel && kernel.isPrivate() && !kernel.isExternal())
        setKernelCost(call, countKernelCost(call, kernel));
    });
  }
};
} // namespace
