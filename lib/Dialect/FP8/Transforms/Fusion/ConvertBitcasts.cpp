// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checkpoints keep FP8 bytes as i8, and programs reinterpret them by tensor.bitcast, which
// upstream does not bufferize. arith.bitcast, element by element, does the same.

#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace fp8 {
#define GEN_PASS_DEF_CONVERTBITCASTS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;

namespace {

struct ConvertBitcasts : fp8::impl::ConvertBitcastsBase<ConvertBitcasts> {
  void runOnOperation() final {
    IRRewriter rewriter(&getContext());
    getOperation()->walk([&](tensor::BitcastOp op) {
      // arith.bitcast keeps dynamic sizes as they are.
      if (op.getSource().getType().getShape() != op.getType().getShape())
        return;
      rewriter.setInsertionPoint(op);
      rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), op.getSource());
    });
  }
};

} // namespace
