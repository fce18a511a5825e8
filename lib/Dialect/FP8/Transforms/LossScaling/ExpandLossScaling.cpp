// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes the operations of loss scaling as elementwise operations and amaxes, which fusion and every target
// know: the division fuses with the optimizer, and a check for Inf and NaN is the amax of a tensor of 0
// and 1.

#include "ScalarCode.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_EXPANDLOSSSCALING
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

Value buildReal(OpBuilder &b, Location loc, Type type, double value) {
  return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
}

/// Creates an f32 of rank 0: 1 where `gradient` holds an Inf or NaN, else 0.
Value buildCheck(OpBuilder &builder, Location loc, Value gradient) {
  auto isBad = [](OpBuilder &b, Location loc, ValueRange arguments) -> Value {
    Value magnitude = math::AbsFOp::create(b, loc, arguments[0]);
    Value infinity = buildReal(b, loc, magnitude.getType(), INFINITY);
    Value finite = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, magnitude, infinity);
    Type f32 = b.getF32Type();
    return arith::SelectOp::create(b, loc, finite, buildReal(b, loc, f32, 0), buildReal(b, loc, f32, 1));
  };
  Value bad = buildElementwise(builder, loc, gradient, builder.getF32Type(), isBad);
  Value init = tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>(), builder.getF32Type());
  return AmaxOp::create(builder, loc, TypeRange(init.getType()), ValueRange(bad), ValueRange(init))
      ->getResult(0);
}

Value buildMaximum(OpBuilder &builder, Location loc, ArrayRef<Value> values) {
  if (values.size() == 1)
    return values.front();
  return buildElementwise(builder, loc, values, builder.getF32Type(),
                          [](OpBuilder &b, Location loc, ValueRange arguments) {
                            Value result = arguments[0];
                            for (Value argument : arguments.drop_front())
                              result = arith::MaximumFOp::create(b, loc, result, argument);
                            return result;
                          });
}

void expandUnscale(RewriterBase &rewriter, UnscaleOp op) {
  Location loc = op.getLoc();
  auto reciprocal = [](OpBuilder &b, Location loc, ValueRange arguments) -> Value {
    return arith::DivFOp::create(b, loc, buildReal(b, loc, b.getF32Type(), 1), arguments[0]);
  };
  Value inverse = buildElementwise(rewriter, loc, op.getScale(), rewriter.getF32Type(), reciprocal);
  SmallVector<Value> results, checks;
  for (Value gradient : op.getGradients()) {
    results.push_back(
        buildElementwise(rewriter, loc, {gradient, inverse}, getElementTypeOrSelf(gradient), buildScaled));
    checks.push_back(buildCheck(rewriter, loc, gradient));
  }
  if (checks.empty()) {
    auto zero = DenseElementsAttr::get(RankedTensorType::get({}, rewriter.getF32Type()), 0.0f);
    checks.push_back(arith::ConstantOp::create(rewriter, loc, zero));
  }
  results.push_back(buildMaximum(rewriter, loc, checks));
  rewriter.replaceOp(op, results);
}

void expandUpdate(RewriterBase &rewriter, UpdateLossScaleOp op) {
  Location loc = op.getLoc();
  double growth = op.getGrowth().convertToFloat(), backoff = op.getBackoff().convertToFloat();
  int64_t interval = op.getInterval();
  // Both results are choices among values that are computed in any case: 0 is after an overflow, 1 the step
  // that completes an interval, 2 any other.
  auto choose = [](OpBuilder &b, Location loc, Value found, Value next, int64_t interval,
                   ArrayRef<Value> choices) -> Value {
    Value overflowed =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, found, buildReal(b, loc, b.getF32Type(), 0));
    Value limit = arith::ConstantIntOp::create(b, loc, std::min<int64_t>(interval, INT32_MAX), 32);
    Value grows = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, next, limit);
    Value good = arith::SelectOp::create(b, loc, grows, choices[1], choices[2]);
    return arith::SelectOp::create(b, loc, overflowed, choices[0], good);
  };
  auto increment = [](OpBuilder &b, Location loc, Value tracker) -> Value {
    return arith::AddIOp::create(b, loc, tracker, arith::ConstantIntOp::create(b, loc, 1, 32));
  };
  auto newScale = [&](OpBuilder &b, Location loc, ValueRange arguments) -> Value {
    Value found = arguments[1], next = increment(b, loc, arguments[2]);
    auto times = [&](double factor) -> Value {
      return arith::MulFOp::create(b, loc, arguments[0], buildReal(b, loc, b.getF32Type(), factor));
    };
    return choose(b, loc, found, next, interval, {times(backoff), times(growth), arguments[0]});
  };
  auto newTracker = [&](OpBuilder &b, Location loc, ValueRange arguments) -> Value {
    Value found = arguments[1], next = increment(b, loc, arguments[0]);
    Value zero = arith::ConstantIntOp::create(b, loc, 0, 32);
    return choose(b, loc, found, next, interval, {zero, zero, next});
  };
  Value found = op.getFoundInf(), scale = op.getScale(), tracker = op.getTracker();
  Value results[] = {
      buildElementwise(rewriter, loc, {scale, found, tracker}, rewriter.getF32Type(), newScale),
      buildElementwise(rewriter, loc, {tracker, found}, rewriter.getI32Type(), newTracker)};
  rewriter.replaceOp(op, results);
}

struct ExpandLossScaling : impl::ExpandLossScalingBase<ExpandLossScaling> {
  void runOnOperation() final {
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](Operation *op) {
      if (!isa<UnscaleOp, UpdateLossScaleOp>(op) || op->getNumResults() == 0)
        return;
      rewriter.setInsertionPoint(op);
      if (auto unscale = dyn_cast<UnscaleOp>(op))
        expandUnscale(rewriter, unscale);
      else
        expandUpdate(rewriter, cast<UpdateLossScaleOp>(op));
    });
  }
};

} // namespace
} // namespace fp8
