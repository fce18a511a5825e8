// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums with a bf16 or f16 accumulator are taken in f32 and rounded once: the narrow
// accumulator is how exporters write a sum, not what a training step wants. A bias
// gradient over a thousand tokens would lose most of its bits in it.

#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_WIDENSUMS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// The addition that accumulates into the only output of `op`, if that is all the body
/// does with the accumulator.
arith::AddFOp getAccumulation(linalg::LinalgOp op) {
  BlockArgument accumulator = op.getRegionOutputArgs().front();
  auto add = op.getBlock()->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!add || !accumulator.hasOneUse() || *accumulator.user_begin() != add)
    return nullptr;
  return add;
}

/// True where `op` sums into one tensor of bf16 or f16.
bool isNarrowSum(linalg::LinalgOp op) {
  if (op.getNumReductionLoops() == 0 || op.getNumDpsInits() != 1 || op->getNumResults() != 1)
    return false;
  Type element = getElementTypeOrSelf(op.getDpsInits().front());
  return (element.isBF16() || element.isF16()) && getAccumulation(op);
}

/// An elementwise cast of `value` to `element`.
Value buildCast(PatternRewriter &rewriter, Location loc, Value value, Type element) {
  auto type = cast<RankedTensorType>(value.getType());
  Value init = tensor::EmptyOp::create(rewriter, loc, tensor::getMixedSizes(rewriter, loc, value), element);
  SmallVector<AffineMap> maps(2, rewriter.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  bool widens = element.getIntOrFloatBitWidth() > type.getElementTypeBitWidth();
  return linalg::GenericOp::create(
             rewriter, loc, TypeRange(init.getType()), ValueRange(value), ValueRange(init), maps, iterators,
             [&](OpBuilder &b, Location loc, ValueRange args) {
               Value result = widens ? arith::ExtFOp::create(b, loc, element, args[0]).getResult()
                                     : arith::TruncFOp::create(b, loc, element, args[0]).getResult();
               linalg::YieldOp::create(b, loc, result);
             })
      .getResult(0);
}

/// The starting value in f32: a fill is filled again, anything else is cast.
Value widenInit(PatternRewriter &rewriter, Location loc, Value init) {
  auto fill = init.getDefiningOp<linalg::FillOp>();
  if (!fill)
    return buildCast(rewriter, loc, init, rewriter.getF32Type());
  Value value = arith::ExtFOp::create(rewriter, loc, rewriter.getF32Type(), fill.getInputs().front());
  Value empty = tensor::EmptyOp::create(rewriter, loc, tensor::getMixedSizes(rewriter, loc, init),
                                        rewriter.getF32Type());
  return linalg::FillOp::create(rewriter, loc, value, empty).getResult(0);
}

struct WidenSum : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op, PatternRewriter &rewriter) const final {
    if (!isNarrowSum(op))
      return rewriter.notifyMatchFailure(op, "does not sum into one narrow tensor");
    Type element = getElementTypeOrSelf(op.getDpsInits().front());
    arith::AddFOp add = getAccumulation(op);
    Location loc = op.getLoc();
    Value init = widenInit(rewriter, loc, op.getDpsInits().front());
    auto wide =
        linalg::GenericOp::create(rewriter, loc, TypeRange(init.getType()), op.getDpsInputs(),
                                  ValueRange(init), op.getIndexingMapsArray(), op.getIteratorTypesArray());
    buildWideBody(rewriter, op, add, wide);
    rewriter.setInsertionPointAfter(wide);
    rewriter.replaceOp(op, buildCast(rewriter, loc, wide.getResult(0), element));
    return success();
  }

private:
  /// The body of `op` with its last addition in f32.
  static void buildWideBody(PatternRewriter &rewriter, linalg::GenericOp op, arith::AddFOp add,
                            linalg::GenericOp wide) {
    Block *body = op.getBody();
    IRMapping mapping;
    Block *block = rewriter.createBlock(&wide.getRegion());
    for (BlockArgument argument : body->getArguments()) {
      bool isAccumulator = argument == op.getRegionOutputArgs().front();
      Type type = isAccumulator ? Type(rewriter.getF32Type()) : argument.getType();
      mapping.map(argument, block->addArgument(type, argument.getLoc()));
    }
    for (Operation &inner : body->without_terminator())
      if (&inner != add)
        rewriter.clone(inner, mapping);
    Value accumulator = op.getRegionOutputArgs().front();
    Value addend = mapping.lookupOrDefault(add.getLhs() == accumulator ? add.getRhs() : add.getLhs());
    addend = arith::ExtFOp::create(rewriter, add.getLoc(), rewriter.getF32Type(), addend);
    Value sum = arith::AddFOp::create(rewriter, add.getLoc(), mapping.lookup(accumulator), addend);
    linalg::YieldOp::create(rewriter, add.getLoc(), sum);
  }
};

class WidenSums : public impl::WidenSumsBase<WidenSums> {
public:
  void runOnOperation() final {
    generalizeSums();
    RewritePatternSet patterns(&getContext());
    patterns.add<WidenSum>(&getContext());
    // Folding is left to the passes that ask for it: the input stays recognisable.
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }

private:
  /// Sums by name (linalg.reduce, pooling, convolutions) as linalg.generic.
  void generalizeSums() {
    SmallVector<linalg::LinalgOp> sums;
    getOperation()->walk([&](linalg::LinalgOp op) {
      if (!isa<linalg::GenericOp>(op) && op.hasPureTensorSemantics() && isNarrowSum(op))
        sums.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : sums) {
      rewriter.setInsertionPoint(op);
      (void)linalg::generalizeNamedOp(rewriter, op); // what has no such form stays as it is
    }
  }
};

} // namespace
} // namespace fp8
