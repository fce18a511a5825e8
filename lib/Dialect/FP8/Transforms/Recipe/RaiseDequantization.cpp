// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns the code with which a program dequantizes its own FP8 tensors into fp8.dequantize.
// fp8-apply-recipe then passes the FP8 data and the scale of these operations to matmuls.

#include "EraseUnused.h"
#include "fp8/Analysis/Dequantization.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace fp8 {
#define GEN_PASS_DEF_RAISEDEQUANTIZATION
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// Creates a transpose of `data` into the order of the tensor that is computed from it.
static Value createTranspose(RewriterBase &rewriter, Location loc, Value data, AffineMap map) {
  SmallVector<int64_t> permutation(map.getNumResults());
  for (unsigned d = 0; d < permutation.size(); ++d)
    permutation[map.getDimPosition(d)] = d;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, loc, data), permuted;
  for (int64_t d : permutation)
    permuted.push_back(sizes[d]);
  Value init = tensor::EmptyOp::create(rewriter, loc, permuted, getElementTypeOrSelf(data));
  return linalg::TransposeOp::create(rewriter, loc, data, init, permutation).getResult()[0];
}

/// Repeats the views between `source` and `value` on `replacement`.
static Value replayViews(RewriterBase &rewriter, Value value, Value source, Value replacement) {
  if (value == source)
    return replacement;
  Operation *view = value.getDefiningOp();
  Value inner = replayViews(rewriter, view->getOperand(0), source, replacement);
  rewriter.setInsertionPoint(view);
  Operation *copy = rewriter.clone(*view);
  rewriter.modifyOpInPlace(copy, [&] {
    copy->setOperand(0, inner);
    auto type = cast<RankedTensorType>(value.getType());
    copy->getResult(0).setType(type.clone(getElementTypeOrSelf(inner)));
  });
  return copy->getResult(0);
}

static void raise(RewriterBase &rewriter, MatmulOp op, unsigned index, const Dequantization &match) {
  Value operand = op->getOperand(index), source = getViewSource(operand), data = match.data;
  Location loc = op.getLoc();
  rewriter.setInsertionPointAfterValue(source);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (operand == source)
    maps[index] = match.map.compose(maps[index]);
  else if (!match.map.isIdentity())
    data = createTranspose(rewriter, loc, data, match.map);
  // FP8 data without a cast becomes f32, which is exact.
  Type element = getElementTypeOrSelf(source);
  if (source == match.data || isa<Float8E4M3FNType, Float8E5M2Type>(element))
    element = rewriter.getF32Type();
  Value scaleInv = match.createScaleInv(rewriter, loc);
  Value init = tensor::EmptyOp::create(rewriter, loc, tensor::getMixedSizes(rewriter, loc, data), element);
  Value wide = DequantizeOp::create(rewriter, loc, init.getType(), data, scaleInv, init, DenseI64ArrayAttr())
                   .getResult(0);
  Value replacement = replayViews(rewriter, operand, source, wide);
  rewriter.modifyOpInPlace(op, [&] {
    op->setOperand(index, replacement);
    op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
  });
  if (Operation *old = operand.getDefiningOp())
    fp8::detail::eraseUnused(rewriter, old);
}

namespace {

struct RaiseDequantization : fp8::impl::RaiseDequantizationBase<RaiseDequantization> {
  void runOnOperation() final {
    SmallVector<MatmulOp> products;
    getOperation()->walk([&](MatmulOp op) {
      if (!op.getKept() && isa<RankedTensorType>(op.getInit().getType()))
        products.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (MatmulOp op : products)
      for (unsigned index : {0u, 1u})
        if (std::optional<Dequantization> match = matchOwnBytes(op, index))
          raise(rewriter, op, index, *match);
  }
};

} // namespace
