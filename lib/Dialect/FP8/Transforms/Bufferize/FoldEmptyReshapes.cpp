// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replaces reshapes of tensors without elements. For a group with a size of 0 and a dynamic size,
// memref.collapse_shape infers the static size 0, but its verifier demands a dynamic one, so no such
// reshape may reach bufferization.

#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/FP8/Transforms/Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace fp8 {
#define GEN_PASS_DEF_FOLDEMPTYRESHAPES
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;

/// Returns whether some group has a size of 0 and a dynamic size.
static bool hasEmptyDynamicGroup(tensor::CollapseShapeOp op) {
  ArrayRef<int64_t> shape = op.getSrcType().getShape();
  return llvm::any_of(op.getReassociationIndices(), [&](ArrayRef<int64_t> group) {
    return llvm::any_of(group, [&](int64_t dim) { return shape[dim] == 0; }) &&
           llvm::any_of(group, [&](int64_t dim) { return ShapedType::isDynamic(shape[dim]); });
  });
}

/// Creates an empty tensor in the shape of the result. A dynamic size is 0 in a group with a size of
/// 0, elsewhere the product of the sizes of the group.
static Value createEmpty(OpBuilder &builder, tensor::CollapseShapeOp op) {
  Location loc = op.getLoc();
  SmallVector<Value> sizes;
  for (auto [i, group] : llvm::enumerate(op.getReassociationIndices())) {
    if (!op.getResultType().isDynamicDim(i))
      continue;
    if (llvm::any_of(group, [&](int64_t dim) { return op.getSrcType().getDimSize(dim) == 0; })) {
      sizes.push_back(arith::ConstantIndexOp::create(builder, loc, 0));
      continue;
    }
    Value size = tensor::DimOp::create(builder, loc, op.getSrc(), group.front());
    for (int64_t dim : ArrayRef<int64_t>(group).drop_front())
      size = arith::MulIOp::create(builder, loc, size, tensor::DimOp::create(builder, loc, op.getSrc(), dim));
    sizes.push_back(size);
  }
  return tensor::EmptyOp::create(builder, loc, op.getResultType(), sizes);
}

namespace {
struct FoldEmptyReshape : OpRewritePattern<tensor::CollapseShapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::CollapseShapeOp op, PatternRewriter &rewriter) const final {
    if (!hasEmptyDynamicGroup(op))
      return failure();
    rewriter.replaceOp(op, createEmpty(rewriter, op));
    return success();
  }
};

struct FoldEmptyReshapesPass : public fp8::impl::FoldEmptyReshapesBase<FoldEmptyReshapesPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    fp8::populateFoldEmptyReshapesPatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace

void fp8::populateFoldEmptyReshapesPatterns(RewritePatternSet &patterns) {
  patterns.add<FoldEmptyReshape>(patterns.getContext());
}
