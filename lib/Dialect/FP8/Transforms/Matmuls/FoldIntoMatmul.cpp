// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exporters write transposes, broadcasts, reshapes and casts around a matmul
// as ops of their own. Such an op that changes no value becomes part of the fp8.matmul:
// of its indexing maps, its operand types and its result type.

#include "EraseUnused.h"
#include "FoldReshapes.h"
#include "ViewPatterns.h"
#include "fp8/Analysis/Rearrangement.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace fp8 {
#define GEN_PASS_DEF_FOLDINTOMATMUL
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

static bool isHalf(Type type) { return type.isBF16() || type.isF16(); }

/// Returns whether fp8.matmul can read the operand before `castOp`: extending bf16 or f16 to f32
/// changes no value, and fp8.matmul sums in f32.
static bool isFreeOnOperand(Operation *castOp) {
  if (!castOp)
    return true;
  return isa<arith::ExtFOp>(castOp) && isHalf(getElementTypeOrSelf(castOp->getOperand(0))) &&
         getElementTypeOrSelf(castOp->getResult(0)).isF32();
}

/// Returns whether fp8.matmul can write the result of `castOp`: it rounds f32 sums to bf16 or f16
/// itself.
static bool isFreeOnResult(Operation *castOp) {
  if (!castOp)
    return true;
  auto truncate = dyn_cast<arith::TruncFOp>(castOp);
  return truncate && getElementTypeOrSelf(truncate.getIn()).isF32() &&
         isHalf(getElementTypeOrSelf(truncate.getOut())) &&
         truncate.getRoundingmode().value_or(arith::RoundingMode::to_nearest_even) ==
             arith::RoundingMode::to_nearest_even;
}

/// Returns whether `maps` describe a matmul that sums over the same dimensions as `op`.
static bool keepsContraction(MatmulOp op, ArrayRef<AffineMap> maps) {
  std::optional<ContractionDims> dims = fp8::inferContractionDims(maps);
  return dims && dims->k == op.getContractionDims().k;
}

static bool foldCast(RewriterBase &rewriter, MatmulOp op, OpOperand &operand) {
  auto castOp = operand.get().getDefiningOp<tensor::CastOp>();
  if (!castOp || !tensor::canFoldIntoConsumerOp(castOp))
    return false;
  rewriter.modifyOpInPlace(op, [&] { operand.set(castOp.getSource()); });
  return true;
}

/// Folds the producer of an operand into `op`; returns whether that was possible.
static bool foldProducer(RewriterBase &rewriter, MatmulOp op, OpOperand &operand) {
  Operation *producer = operand.get().getDefiningOp();
  std::optional<Rearrangement> view = producer ? matchRearrangement(producer) : std::nullopt;
  if (!view || !isFreeOnOperand(view->cast))
    return false;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap &map = maps[operand.getOperandNumber()];
  map = view->map.compose(map);
  if (!keepsContraction(op, maps))
    return false;
  rewriter.modifyOpInPlace(op, [&] {
    operand.set(view->input);
    op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
  });
  return true;
}

/// Rounds an operand before the reshape that joins its batch dimensions, not after it, so that the reshape
/// can become part of `op`: PyTorch's attention rounds probabilities of [batch · heads, queries, keys].
/// Returns whether that was possible.
static bool roundBeforeReshape(RewriterBase &rewriter, MatmulOp op, OpOperand &operand) {
  Operation *producer = operand.get().getDefiningOp();
  std::optional<Rearrangement> view = producer ? matchRearrangement(producer) : std::nullopt;
  if (!view || !view->cast || !view->map.isIdentity() || op.getContractionDims().batch.empty())
    return false;
  auto collapse = view->input.getDefiningOp<tensor::CollapseShapeOp>();
  if (!collapse)
    return false;
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(producer);
  Location loc = producer->getLoc();
  Value source = collapse.getSrc();
  Type type = collapse.getSrcType().clone(getElementTypeOrSelf(operand.get()));
  OperationState cast(loc, view->cast->getName(), source, type, view->cast->getAttrs());
  Value joined = tensor::CollapseShapeOp::create(rewriter, loc, rewriter.create(cast)->getResult(0),
                                                 collapse.getReassociationIndices());
  // All readers, so that the matmuls of forward and backward read one tensor.
  rewriter.replaceAllUsesWith(producer->getResult(0), joined);
  return true;
}

/// Creates a destination with the permuted sizes of `init` and another element type.
static Value createPermutedDestination(RewriterBase &rewriter, Location loc, Value init,
                                       AffineMap permutation, Type element) {
  auto empty = init.getDefiningOp<tensor::EmptyOp>();
  SmallVector<OpFoldResult> sizes =
      empty ? empty.getMixedSizes() : tensor::getMixedSizes(rewriter, loc, init);
  SmallVector<OpFoldResult> permuted(sizes.size());
  for (auto [position, size] : llvm::enumerate(sizes))
    permuted[permutation.getDimPosition(position)] = size;
  return tensor::EmptyOp::create(rewriter, loc, permuted, element);
}

/// Folds the only user of the result into `op`; returns whether that was possible.
static bool foldUser(RewriterBase &rewriter, MatmulOp op) {
  Value result = op->getResult(0);
  if (!result.hasOneUse() || op.readsInit())
    return false;
  Operation *user = *result.user_begin();
  std::optional<Rearrangement> view = matchRearrangement(user);
  if (!view || view->input != result || !isFreeOnResult(view->cast) || !view->map.isPermutation())
    return false;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  maps[2] = inversePermutation(view->map).compose(maps[2]);

  rewriter.setInsertionPoint(op);
  Type oldType = user->getResult(0).getType();
  Operation *oldInit = op.getInit().getDefiningOp();
  Value init = createPermutedDestination(rewriter, op.getLoc(), op.getInit(), view->map,
                                         getElementTypeOrSelf(oldType));
  rewriter.modifyOpInPlace(op, [&] {
    op.getOutsMutable().assign(init);
    result.setType(init.getType());
    op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
  });
  if (oldInit)
    fp8::detail::eraseUnused(rewriter, oldInit);
  // Either type may have static sizes where the other one has dynamic ones.
  rewriter.setInsertionPointAfter(user);
  if (init.getType() != oldType)
    result = tensor::CastOp::create(rewriter, user->getLoc(), oldType, result);
  Operation *userInit = user->getNumOperands() > 1 ? user->getOperand(1).getDefiningOp() : nullptr;
  rewriter.replaceOp(user, result);
  if (userInit)
    fp8::detail::eraseUnused(rewriter, userInit);
  return true;
}

static void foldProducers(RewriterBase &rewriter, MatmulOp op, OpOperand &operand) {
  while (true) {
    Operation *producer = operand.get().getDefiningOp();
    if (!foldCast(rewriter, op, operand) && !foldProducer(rewriter, op, operand) &&
        !roundBeforeReshape(rewriter, op, operand))
      return;
    fp8::detail::eraseUnused(rewriter, producer);
  }
}

static void foldAround(RewriterBase &rewriter, MatmulOp op) {
  do {
    foldProducers(rewriter, op, op.getLhsMutable());
    foldProducers(rewriter, op, op.getRhsMutable());
    while (foldUser(rewriter, op)) {
    }
  } while (fp8::detail::foldReshapes(rewriter, op));
}

namespace {

struct FoldIntoMatmul : fp8::impl::FoldIntoMatmulBase<FoldIntoMatmul> {
  void runOnOperation() final {
    if (failed(applyToViews(fp8::detail::populateWidenLastPatterns)))
      return signalPassFailure();
    SmallVector<MatmulOp> matmuls;
    getOperation()->walk([&](MatmulOp op) {
      if (op.isPlain() && isa<RankedTensorType>(op.getInit().getType()))
        matmuls.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (MatmulOp op : matmuls)
      foldAround(rewriter, op);
    // Behind it, so that a batch of 1 that all tensors of a matmul have becomes its dimension.
    auto populate = [](RewritePatternSet &patterns) {
      fp8::detail::populateUnitDimensionPatterns(patterns);
      fp8::detail::populateSplitBatchPatterns(patterns);
    };
    if (failed(applyToViews(populate)))
      return signalPassFailure();
    for (MatmulOp op : matmuls)
      foldAround(rewriter, op);
  }

private:
  /// Applies patterns to reshapes, transposes and copies only: matmuls that no result depends on stay for the
  /// report.
  LogicalResult applyToViews(function_ref<void(RewritePatternSet &)> populate) {
    RewritePatternSet patterns(&getContext());
    populate(patterns);
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa<linalg::TransposeOp, linalg::GenericOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op))
        ops.push_back(op);
    });
    return applyOpPatternsGreedily(
        ops, std::move(patterns),
        GreedyRewriteConfig().setStrictness(GreedyRewriteStrictness::ExistingAndNewOps));
  }
};

} // namespace
