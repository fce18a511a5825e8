// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Takes dimensions of size 1 out of transposes, and makes one reshape of two.

#include "ViewPatterns.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace {
/// A transpose that moves dimensions of size 1 only is a reshape.
struct UnitTranspose : OpRewritePattern<linalg::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::TransposeOp op, PatternRewriter &rewriter) const final {
    auto source = dyn_cast<RankedTensorType>(op.getInput().getType());
    auto result = dyn_cast<RankedTensorType>(op.getInit().getType());
    if (!source || !result ||
        applyPermutation(source.getShape(), op.getPermutation()) != SmallVector<int64_t>(result.getShape()))
      return rewriter.notifyMatchFailure(op, "on memory, or of dynamic sizes that are static behind it");
    SmallVector<int64_t> order, sizes;
    for (int64_t dim : op.getPermutation())
      if (source.getDimSize(dim) != 1)
        order.push_back(dim);
    if (!llvm::is_sorted(order))
      return rewriter.notifyMatchFailure(op, "moves other dimensions");
    for (int64_t dim : order)
      sizes.push_back(source.getDimSize(dim));
    auto groupUnits = [&](RankedTensorType type) {
      return *linalg::getReassociationMapForFoldingUnitDims(
          getAsIndexOpFoldResult(rewriter.getContext(), type.getShape()));
    };
    Value full = tensor::CollapseShapeOp::create(rewriter, op.getLoc(), source.clone(sizes), op.getInput(),
                                                 groupUnits(source));
    rewriter.replaceOpWithNewOp<tensor::ExpandShapeOp>(op, result, full, groupUnits(result));
    return success();
  }
};

/// A transpose between a reshape that adds dimensions of size 1 and others that take dimensions away gets
/// these dimensions behind it.
struct TransposeOfExpanded : OpRewritePattern<linalg::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::TransposeOp op, PatternRewriter &rewriter) const final {
    auto expand = op.getInput().getDefiningOp<tensor::ExpandShapeOp>();
    if (!expand || !expand.getResultType().hasStaticShape() ||
        !llvm::all_of(op->getUsers(), llvm::IsaPred<tensor::CollapseShapeOp>))
      return rewriter.notifyMatchFailure(op, "not between such reshapes");
    // The tensor between has no dimension of size 1 that the reshape adds.
    ArrayRef<int64_t> shape = expand.getResultType().getShape();
    SmallVector<std::optional<int64_t>> between(shape.size());
    SmallVector<int64_t> sizes;
    SmallVector<ReassociationIndices> divided;
    for (const ReassociationIndices &group : expand.getReassociationIndices()) {
      bool hasUnitsOnly = llvm::all_of(group, [&](int64_t dim) { return shape[dim] == 1; });
      divided.emplace_back();
      for (int64_t dim : group) {
        if (shape[dim] == 1 && !(hasUnitsOnly && dim == group.front()))
          continue;
        between[dim] = static_cast<int64_t>(sizes.size());
        divided.back().push_back(*between[dim]);
        sizes.push_back(shape[dim]);
      }
    }
    if (sizes.size() == shape.size())
      return rewriter.notifyMatchFailure(op, "no dimension of size 1 is added");
    SmallVector<int64_t> permutation, moved;
    SmallVector<ReassociationIndices> groups;
    ReassociationIndices leading;
    for (auto [dim, from] : llvm::enumerate(op.getPermutation())) {
      if (between[from]) {
        permutation.push_back(*between[from]);
        moved.push_back(shape[from]);
        groups.push_back(std::exchange(leading, {}));
      }
      (groups.empty() ? leading : groups.back()).push_back(static_cast<int64_t>(dim));
    }
    Location loc = op.getLoc();
    Value source = expand.getSrc();
    auto type = expand.getResultType().clone(sizes);
    if (type != source.getType())
      source = tensor::ExpandShapeOp::create(rewriter, expand.getLoc(), type, source, divided);
    Value empty = tensor::EmptyOp::create(rewriter, loc, moved, type.getElementType());
    Value result = linalg::TransposeOp::create(rewriter, loc, source, empty, permutation)->getResult(0);
    rewriter.replaceOpWithNewOp<tensor::ExpandShapeOp>(op, op.getInit().getType(), result, groups);
    return success();
  }
};

/// Two reshapes are one, or none, where the shapes on both sides allow that: both keep the order of elements.
template <typename Op>
struct JoinReshapes : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const final {
    Operation *before = op.getSrc().getDefiningOp();
    if (!isa_and_nonnull<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(before))
      return rewriter.notifyMatchFailure(op, "no reshape before it");
    Value source = before->getOperand(0);
    auto from = cast<RankedTensorType>(source.getType()), to = op.getResultType();
    if (!from.hasStaticShape() || !to.hasStaticShape())
      return rewriter.notifyMatchFailure(op, "a size is dynamic");
    if (from == to) {
      rewriter.replaceOp(op, source);
      return success();
    }
    std::optional<SmallVector<ReassociationIndices>> groups = getReassociationIndicesForReshape(from, to);
    if (!groups)
      return rewriter.notifyMatchFailure(op, "both are needed");
    if (from.getRank() > to.getRank())
      rewriter.replaceOpWithNewOp<tensor::CollapseShapeOp>(op, to, source, *groups);
    else
      rewriter.replaceOpWithNewOp<tensor::ExpandShapeOp>(op, to, source, *groups);
    return success();
  }
};
} // namespace

void fp8::detail::populateUnitDimensionPatterns(RewritePatternSet &patterns) {
  patterns.add<UnitTranspose, TransposeOfExpanded, JoinReshapes<tensor::CollapseShapeOp>,
               JoinReshapes<tensor::ExpandShapeOp>>(patterns.getContext());
}
