// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every contraction of floats, whatever linalg op it is written as, becomes one
// fp8.matmul. A contraction is known by its indexing maps and its body, never by
// the name of its op.

#include "EraseUnused.h"
#include "fp8/Analysis/FloatContraction.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

namespace fp8 {
#define GEN_PASS_DEF_RAISECONTRACTIONS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

//===----------------------------------------------------------------------===//
// What the body does to an operand before it multiplies
//===----------------------------------------------------------------------===//

/// Extensions at the end of a prologue change no value where fp8.matmul extends
/// its operands itself: to f32. It multiplies in f64 only where an operand is f64.
static void dropExtensions(FloatContraction &contraction) {
  if (contraction.productType.isF64())
    return;
  for (SmallVector<Operation *> &prologue : contraction.prologues)
    while (!prologue.empty() && isa<arith::ExtFOp>(prologue.back()))
      prologue.pop_back();
}

/// The operand with its prologue applied, by a linalg.generic of its own.
static Value applyPrologue(RewriterBase &rewriter, Location loc, Value operand,
                           ArrayRef<Operation *> prologue) {
  if (prologue.empty())
    return operand;
  auto type = cast<RankedTensorType>(operand.getType());
  Type element = prologue.back()->getResult(0).getType();
  Value init = tensor::EmptyOp::create(rewriter, loc, tensor::getMixedSizes(rewriter, loc, operand), element);
  AffineMap map = rewriter.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  auto clone = [&](OpBuilder &builder, Location bodyLoc, ValueRange arguments) {
    IRMapping mapping;
    mapping.map(prologue.front()->getOperand(0), arguments[0]);
    for (Operation *op : prologue)
      builder.clone(*op, mapping);
    linalg::YieldOp::create(builder, bodyLoc, mapping.lookup(prologue.back()->getResult(0)));
  };
  return linalg::GenericOp::create(rewriter, loc, init.getType(), operand, init, ArrayRef{map, map},
                                   iterators, clone)
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// The value that the products are added to
//===----------------------------------------------------------------------===//

/// True for a scalar zero, and for a tensor every element of which is zero by
/// the way it was made.
static bool isZero(Value value) {
  if (matchPattern(value, m_AnyZeroFloat()))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  DenseFPElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)))
    return elements.isSplat() && elements.getSplatValue<APFloat>().isZero();
  if (isa<tensor::CastOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp,
          tensor::SplatOp, arith::ExtFOp, arith::TruncFOp>(op))
    return isZero(op->getOperand(0));
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  if (!structured || structured.getNumReductionLoops() != 0 || op->getNumResults() != 1)
    return false;
  // Fills, broadcasts, transposes: the body passes on a value that is zero.
  Value yielded = structured.getBlock()->getTerminator()->getOperand(0);
  auto argument = dyn_cast<BlockArgument>(yielded);
  if (!argument || argument.getOwner() != structured.getBlock())
    return matchPattern(yielded, m_AnyZeroFloat());
  return isZero(structured.getMatchingOpOperand(argument)->get());
}

/// A destination of the type and sizes of `init` whose contents do not matter.
static Value createDestination(RewriterBase &rewriter, Location loc, Value init) {
  while (auto fill = init.getDefiningOp<linalg::FillOp>())
    init = fill.getOutputs().front();
  auto empty = init.getDefiningOp<tensor::EmptyOp>();
  return tensor::EmptyOp::create(rewriter, loc,
                                 empty ? empty.getMixedSizes() : tensor::getMixedSizes(rewriter, loc, init),
                                 getElementTypeOrSelf(init));
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// What the user wrote on the contraction stays on it for fp8-infer-sites.
static void copyUserAttributes(Operation *from, Operation *to) {
  for (StringRef name : {StringRef(FP8Dialect::kSiteAttrName), StringRef(FP8Dialect::kRoleAttrName)})
    if (Attribute attribute = from->getAttr(name))
      to->setAttr(name, attribute);
}

static void raise(RewriterBase &rewriter, linalg::LinalgOp op, FloatContraction &contraction) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  dropExtensions(contraction);
  Value lhs = applyPrologue(rewriter, loc, op.getDpsInputs()[0], contraction.prologues[0]);
  Value rhs = applyPrologue(rewriter, loc, op.getDpsInputs()[1], contraction.prologues[1]);
  if (contraction.negates)
    lhs = arith::NegFOp::create(rewriter, loc, lhs);
  Value init = op.getDpsInits()[0];
  Operation *oldInit = init.getDefiningOp();
  bool accumulate = !isZero(init);
  if (!accumulate)
    init = createDestination(rewriter, loc, init);
  // A destination may be known more precisely than the result.
  if (init.getType() != op->getResult(0).getType())
    init = tensor::CastOp::create(rewriter, loc, op->getResult(0).getType(), init);

  MatmulOp::Properties properties;
  properties.setIndexingMaps(rewriter.getAffineMapArrayAttr(op.getIndexingMapsArray()));
  properties.setAccumulate(accumulate ? rewriter.getUnitAttr() : nullptr);
  auto matmul = MatmulOp::create(rewriter, loc, op->getResultTypes(), ValueRange{lhs, rhs, init}, properties);
  copyUserAttributes(op, matmul);
  rewriter.replaceOp(op, matmul);
  if (oldInit)
    fp8::detail::eraseUnused(rewriter, oldInit);
}

namespace {

struct RaiseContractions : fp8::impl::RaiseContractionsBase<RaiseContractions> {
  void runOnOperation() final {
    SmallVector<linalg::LinalgOp> ops;
    getOperation()->walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : ops)
      if (std::optional<FloatContraction> contraction = matchFloatContraction(op))
        raise(rewriter, op, *contraction);
  }
};

} // namespace
