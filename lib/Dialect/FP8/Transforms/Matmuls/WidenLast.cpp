// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Repeats tensors before they are widened to f32: heads of a group read one key, which PyTorch's attention
// widens and then repeats.

#include "ViewPatterns.h"
#include "fp8/Analysis/Rearrangement.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fp8;

/// Returns the bf16 or f16 tensor whose elements `value` has in f32, in the same places; null if there is
/// none, or if something else reads `value`.
static Value findNarrow(Value value) {
  Operation *op = value.getDefiningOp();
  std::optional<Rearrangement> view = op && value.hasOneUse() ? matchRearrangement(op) : std::nullopt;
  if (!view || !isa_and_nonnull<arith::ExtFOp>(view->cast) || !view->map.isIdentity())
    return {};
  Type type = getElementTypeOrSelf(view->input);
  return type.isBF16() || type.isF16() ? view->input : Value();
}

/// Returns `narrow` in f32.
static Value widen(PatternRewriter &rewriter, Location loc, Value narrow) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, loc, narrow);
  Value empty = tensor::EmptyOp::create(rewriter, loc, sizes, rewriter.getF32Type());
  unsigned rank = sizes.size();
  SmallVector<AffineMap> maps(2, rewriter.getMultiDimIdentityMap(rank));
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  return linalg::GenericOp::create(rewriter, loc, empty.getType(), narrow, empty, maps, iterators,
                                   [](OpBuilder &b, Location at, ValueRange elements) {
                                     Value wide =
                                         arith::ExtFOp::create(b, at, b.getF32Type(), elements.front());
                                     linalg::YieldOp::create(b, at, wide);
                                   })
      .getResult(0);
}

/// Returns whether an operation repeats the elements of its operand along a dimension.
static bool repeats(Operation *op) {
  std::optional<Rearrangement> view = op ? matchRearrangement(op) : std::nullopt;
  if (!view || view->cast)
    return false;
  return llvm::any_of(llvm::seq(view->map.getNumDims()),
                      [&](unsigned dim) { return !view->map.isFunctionOfDim(dim); });
}

namespace {
struct WidenRepeated : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op, PatternRewriter &rewriter) const final {
    Value narrow = repeats(op) && op.getNumDpsInputs() == 1 ? findNarrow(op.getDpsInputs()[0]) : Value();
    if (!narrow)
      return rewriter.notifyMatchFailure(op, "repeats no tensor that is widened");
    Location loc = op.getLoc();
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, loc, op.getDpsInits()[0]);
    Value empty = tensor::EmptyOp::create(rewriter, loc, sizes, getElementTypeOrSelf(narrow));
    auto copy = linalg::GenericOp::create(rewriter, loc, empty.getType(), narrow, empty,
                                          op.getIndexingMapsArray(), op.getIteratorTypesArray(),
                                          [](OpBuilder &b, Location at, ValueRange elements) {
                                            linalg::YieldOp::create(b, at, elements.front());
                                          });
    rewriter.replaceOp(op, widen(rewriter, loc, copy.getResult(0)));
    return success();
  }
};

struct WidenJoined : OpRewritePattern<tensor::CollapseShapeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::CollapseShapeOp op, PatternRewriter &rewriter) const final {
    Value narrow = findNarrow(op.getSrc());
    if (!narrow || !repeats(narrow.getDefiningOp()))
      return rewriter.notifyMatchFailure(op, "joins no repeated dimensions");
    Type type = op.getResultType().clone(getElementTypeOrSelf(narrow));
    Value joined =
        tensor::CollapseShapeOp::create(rewriter, op.getLoc(), type, narrow, op.getReassociationIndices());
    rewriter.replaceOp(op, widen(rewriter, op.getLoc(), joined));
    return success();
  }
};
} // namespace

void fp8::detail::populateWidenLastPatterns(RewritePatternSet &patterns) {
  patterns.add<WidenRepeated, WidenJoined>(patterns.getContext());
}
