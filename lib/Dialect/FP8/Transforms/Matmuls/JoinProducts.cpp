// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Joins a matmul that is written as two ops, if the result stays the same: matmuls that
// are rounded to a narrower type than that of the sum before they are added stay unchanged.

#include "EraseUnused.h"
#include "fp8/Analysis/SummedProduct.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/IR/MixedPrecision.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

namespace fp8 {
#define GEN_PASS_DEF_JOINPRODUCTS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// Clones the code that multiplies one element of each factor.
static Value cloneProduct(OpBuilder &builder, Operation *product, ValueRange elements) {
  auto structured = dyn_cast<linalg::LinalgOp>(product);
  if (!structured)
    return arith::MulFOp::create(builder, product->getLoc(), elements[0], elements[1]);
  Block *body = structured.getBlock();
  IRMapping mapping;
  mapping.map(body->getArguments().take_front(2), elements);
  for (Operation &op : body->without_terminator())
    builder.clone(op, mapping);
  return mapping.lookup(body->getTerminator()->getOperand(0));
}

static void join(RewriterBase &rewriter, linalg::LinalgOp sum, const SummedProduct &match) {
  rewriter.setInsertionPoint(sum);
  auto body = [&](OpBuilder &builder, Location loc, ValueRange arguments) {
    Value product = cloneProduct(builder, match.product, arguments.take_front(2));
    Value result = arith::AddFOp::create(builder, loc, arguments[2], product);
    linalg::YieldOp::create(builder, loc, result);
  };
  Value init = sum.getDpsInits()[0];
  auto joined = linalg::GenericOp::create(rewriter, sum.getLoc(), sum->getResultTypes(), match.factors, init,
                                          match.maps, sum.getIteratorTypesArray(), body);
  // The user may have put the attributes on either of the two.
  for (Operation *from : {match.product, sum.getOperation()})
    for (StringRef name :
         {StringRef(kSiteAttrName), StringRef(kRoleAttrName), StringRef(kMixedPrecisionAttrName)})
      if (Attribute attribute = from->getAttr(name))
        joined->setAttr(name, attribute);
  rewriter.replaceOp(sum, joined);
  fp8::detail::eraseUnused(rewriter, match.product);
}

namespace {

struct JoinProducts : fp8::impl::JoinProductsBase<JoinProducts> {
  void runOnOperation() final {
    SmallVector<linalg::LinalgOp> ops;
    getOperation()->walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : ops)
      if (std::optional<SummedProduct> match = matchSummedProduct(op);
          match && match->productType == match->sumType && match->sumType.getWidth() >= 32)
        join(rewriter, op, *match);
  }
};

} // namespace
