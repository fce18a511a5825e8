// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checkpoints store FP8 data as i8, and programs reinterpret it by tensor.bitcast, which upstream
// does not bufferize. The elementwise arith.bitcast does the same.

#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/FP8/Transforms/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace fp8 {
#define GEN_PASS_DEF_CONVERTBITCASTS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;

namespace {

struct ConvertBitcast : OpRewritePattern<tensor::BitcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::BitcastOp op, PatternRewriter &rewriter) const final {
    // arith.bitcast cannot make static sizes dynamic or dynamic ones static.
    if (op.getSource().getType().getShape() != op.getType().getShape())
      return failure();
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), op.getSource());
    return success();
  }
};

struct ConvertBitcasts : fp8::impl::ConvertBitcastsBase<ConvertBitcasts> {
  void runOnOperation() final {
    RewritePatternSet patterns(&getContext());
    fp8::populateConvertBitcastsPatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace

void fp8::populateConvertBitcastsPatterns(RewritePatternSet &patterns) {
  patterns.add<ConvertBitcast>(patterns.getContext());
}
