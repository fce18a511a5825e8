// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns reshapes that split one dimension into several dynamic ones into memref.reinterpret_cast, with
// the sizes that are operands of the reshape. Upstream's expand-strided-metadata takes the size of one
// dynamic dimension from the source, and crashes if there are more.

#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/PatternMatch.h"

namespace fp8 {
#define GEN_PASS_DEF_REINTERPRETRESHAPES
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;

static bool hasSeveralDynamicSizes(memref::ExpandShapeOp op) {
  return llvm::any_of(op.getReassociationIndices(), [&](ArrayRef<int64_t> group) {
    return llvm::count_if(group, [&](int64_t dim) { return op.getResultType().isDynamicDim(dim); }) > 1;
  });
}

/// Replaces `op` by a cast to its stated sizes, with strides computed from the source's.
static void reinterpret(RewriterBase &rewriter, memref::ExpandShapeOp op) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  auto source = memref::ExtractStridedMetadataOp::create(rewriter, loc, op.getSrc());
  SmallVector<OpFoldResult> sizes = op.getMixedOutputShape(), strides(sizes.size());
  AffineExpr a, b;
  bindSymbols(op.getContext(), a, b);
  for (auto [group, stride] :
       llvm::zip_equal(op.getReassociationIndices(), source.getConstifiedMixedStrides())) {
    strides[group.back()] = stride;
    for (int64_t dim : llvm::reverse(ArrayRef(group).drop_back()))
      strides[dim] =
          affine::makeComposedFoldedAffineApply(rewriter, loc, a * b, {strides[dim + 1], sizes[dim + 1]});
  }
  rewriter.replaceOpWithNewOp<memref::ReinterpretCastOp>(op, op.getResultType(), source.getBaseBuffer(),
                                                         source.getConstifiedMixedOffset(), sizes, strides);
}

namespace {
struct ReinterpretReshapesPass : public fp8::impl::ReinterpretReshapesBase<ReinterpretReshapesPass> {
  void runOnOperation() override {
    SmallVector<memref::ExpandShapeOp> reshapes;
    getOperation()->walk([&](memref::ExpandShapeOp op) {
      if (hasSeveralDynamicSizes(op))
        reshapes.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (memref::ExpandShapeOp op : reshapes)
      reinterpret(rewriter, op);
  }
};
} // namespace
