// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matmuls read FP8 tensors in any layout, so transposes of their operands are folded into
// indexing maps.

#include "EraseUnused.h"
#include "fp8/Analysis/Rearrangement.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/FP8/Transforms/Patterns.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_FOLDTRANSPOSES
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// Replaces an operand that is a transposed copy by its source; returns false if it is none.
bool foldTranspose(RewriterBase &rewriter, ScaledMatmulOp op, OpOperand &operand) {
  Operation *producer = operand.get().getDefiningOp();
  std::optional<Rearrangement> view = producer ? matchRearrangement(producer) : std::nullopt;
  if (!view || view->cast || !view->map.isPermutation())
    return false;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap &map = maps[operand.getOperandNumber()];
  map = view->map.compose(map);
  rewriter.modifyOpInPlace(op, [&] {
    operand.set(view->input);
    op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
  });
  detail::eraseUnused(rewriter, producer);
  return true;
}

/// Replaces both operands; returns whether one was a transposed copy.
bool foldTransposes(RewriterBase &rewriter, ScaledMatmulOp op) {
  bool isFolded = false;
  // Blocks refer to the operand's own dimensions.
  while (!op.getLhsBlock() && foldTranspose(rewriter, op, op.getLhsMutable()))
    isFolded = true;
  while (!op.getRhsBlock() && foldTranspose(rewriter, op, op.getRhsMutable()))
    isFolded = true;
  return isFolded;
}

struct FoldTransposesOfMatmul : OpRewritePattern<ScaledMatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ScaledMatmulOp op, PatternRewriter &rewriter) const final {
    return success(foldTransposes(rewriter, op));
  }
};

class FoldTransposes : public impl::FoldTransposesBase<FoldTransposes> {
public:
  void runOnOperation() final {
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](ScaledMatmulOp op) { foldTransposes(rewriter, op); });
  }
};

} // namespace

void populateFoldTransposesPatterns(RewritePatternSet &patterns) {
  patterns.add<FoldTransposesOfMatmul>(patterns.getContext());
}

} // namespace fp8
