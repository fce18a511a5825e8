// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Upstream's emulation of narrow floats sets `contract` on its casts, which allows a later fold to
// drop a rounding together with the extension after it. This pass removes the flag, because all
// roundings of the program must happen.

#include "fp8/Target/Host/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace fp8 {
#define GEN_PASS_DEF_KEEPROUNDINGS
#include "fp8/Target/Host/Passes.h.inc"
} // namespace fp8

using namespace mlir;

namespace {
struct KeepRoundingsPass : public fp8::impl::KeepRoundingsBase<KeepRoundingsPass> {
  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      if (auto cast = dyn_cast<arith::ExtFOp>(op))
        cast.removeFastmathAttr();
      else if (auto cast = dyn_cast<arith::TruncFOp>(op))
        cast.removeFastmathAttr();
    });
  }
};
} // namespace
