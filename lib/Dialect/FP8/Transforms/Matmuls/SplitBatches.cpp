// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Moves reshapes of batches behind elementwise code. A program that multiplies by bmm and baddbmm has batches
// and heads as one dimension, and adds biases to it before it tells them apart again.

#include "ViewPatterns.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Utils/Utils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace fp8;

/// Operations of elementwise code that are looked through, at most.
static constexpr size_t kMostOps = 16;

bool fp8::detail::isElementwise(OpOperand &input) {
  auto code = dyn_cast<linalg::GenericOp>(input.getOwner());
  return code && code->getNumResults() == 1 && code.getNumParallelLoops() == code.getNumLoops() &&
         code.getMatchingIndexingMap(&input).isIdentity() &&
         code.getIndexingMapMatchingResult(code->getOpResult(0)).isIdentity();
}

/// Returns the matmul that a tensor is the result of, or elementwise code on that result; null if there is
/// none.
static MatmulOp findMatmul(Value tensor) {
  llvm::SetVector<Value> seen;
  seen.insert(tensor);
  for (size_t next = 0; next < std::min(seen.size(), kMostOps); ++next) {
    Value value = seen[next];
    if (auto matmul = value.getDefiningOp<MatmulOp>())
      return matmul;
    if (auto code = value.getDefiningOp<linalg::GenericOp>())
      for (OpOperand *input : code.getDpsInputOperands())
        if (fp8::detail::isElementwise(*input))
          seen.insert(input->get());
  }
  return {};
}

/// Returns whether a reshape joins dimensions of the batch of a matmul, and no others.
static bool joinsBatch(tensor::CollapseShapeOp collapse) {
  MatmulOp matmul = findMatmul(collapse.getSrc());
  if (!matmul || !collapse.getSrcType().hasStaticShape())
    return false;
  SmallVector<AffineMap> maps = matmul.getIndexingMapsArray();
  bool joins = false;
  for (const ReassociationIndices &group : collapse.getReassociationIndices()) {
    if (group.size() == 1)
      continue;
    joins = true;
    for (int64_t dim : group)
      if (AffineExpr expr = maps[2].getResult(dim);
          !maps[0].getResultPosition(expr) || !maps[1].getResultPosition(expr))
        return false;
  }
  return joins;
}

static bool isJoinedBatch(OpOperand *operand) {
  auto collapse = operand->get().getDefiningOp<tensor::CollapseShapeOp>();
  return collapse && joinsBatch(collapse);
}

namespace {
/// Reads an input that is the same along a loop, as a dimension of size 1 at index 0, without that dimension:
/// upstream splits dimensions of loops that all maps have as they are.
struct DropUnits : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op, PatternRewriter &rewriter) const final {
    SmallVector<OpOperand *> inputs = op.getDpsInputOperands();
    if (!op.hasPureTensorSemantics() || llvm::none_of(inputs, isJoinedBatch))
      return rewriter.notifyMatchFailure(op, "reads no batch that is joined");
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    SmallVector<Value> operands(op->getOperands());
    for (OpOperand *input : inputs) {
      AffineMap &map = maps[input->getOperandNumber()];
      llvm::SmallBitVector units(map.getNumResults());
      for (auto [number, expr] : llvm::enumerate(map.getResults()))
        units[number] = expr == rewriter.getAffineConstantExpr(0);
      if (units.none())
        continue;
      map = map.dropResults(units);
      operands[input->getOperandNumber()] =
          tensor::dropGivenUnitDims(rewriter, op.getLoc(), input->get(), units);
    }
    if (llvm::equal(operands, op->getOperands()))
      return rewriter.notifyMatchFailure(op, "no input has such a dimension");
    rewriter.modifyOpInPlace(op, [&] {
      op->setOperands(operands);
      op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
    });
    return success();
  }
};
} // namespace

void fp8::detail::populateSplitBatchPatterns(RewritePatternSet &patterns) {
  patterns.add<DropUnits>(patterns.getContext());
  linalg::populateFoldReshapeOpsByExpansionPatterns(patterns, isJoinedBatch);
}
