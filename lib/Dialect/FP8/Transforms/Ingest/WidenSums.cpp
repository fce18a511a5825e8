// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Takes sums with a bf16 or f16 accumulator in f32 and rounds them once. Exporters write sums with
// the element type of the tensor as accumulator, but in such a narrow one a bias gradient over a
// thousand tokens would lose most of its bits.

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

/// Returns the addition that accumulates into the only output of `op`; null if the body uses the
/// accumulator in another way.
arith::AddFOp getAccumulation(linalg::LinalgOp op) {
  BlockArgument accumulator = op.getRegionOutputArgs().front();
  auto add = op.getBlock()->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!add || !accumulator.hasOneUse() || *accumulator.user_begin() != add)
    return nullptr;
  return add;
}

/// Returns whether `op` sums into one tensor of bf16 or f16.
bool isNarrowSum(linalg::LinalgOp op) {
  if (op.getNumReductionLoops() == 0 || op.getNumDpsInits() != 1 || op->getNumResults() != 1)
    return false;
  Type element = getElementTypeOrSelf(op.getDpsInits().front());
  return (element.isBF16() || element.isF16()) && getAccumulation(op);
}

/// Creates an elementwise cast of `value` to `element`.
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

/// Creates the initial value in f32: a fill with an f32, or a cast of anything else.
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
  /// Builds the body of `op` with its last addition in f32.
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
    // No folding or canonicalization, so that the rest of the program stays as the user wrote it.
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }

private:
  /// Turns named sums (linalg.reduce, pooling, convolutions) into linalg.generic.
  void generalizeSums() {
    SmallVector<linalg::LinalgOp> sums;
    getOperation()->walk([&](linalg::LinalgOp op) {
      if (!isa<linalg::GenericOp>(op) && op.hasPureTensorSemantics() && isNarrowSum(op))
        sums.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : sums) {
      rewriter.setInsertionPoint(op);
      (void)linalg::generalizeNamedOp(rewriter, op); // ops without a generic form stay unchanged
    }
  }
};

} // namespace
} // namespace fp8
