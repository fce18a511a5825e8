// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checkpoints store FP8 data as i8, and programs reinterpret it by tensor.bitcast, which upstream
// does not bufferize. The elementwise arith.bitcast does the same.

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
      // arith.bitcast cannot make static sizes dynamic or dynamic ones static.
      if (op.getSource().getType().getShape() != op.getType().getShape())
        return;
      rewriter.setInsertionPoint(op);
      rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), op.getSource());
    });
  }
};

} // namespace
