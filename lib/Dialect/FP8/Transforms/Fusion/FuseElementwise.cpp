// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elementwise fusion of linalg operations, by upstream's patterns with a control function of our
// own: a value with one reader is computed in the reader; a value that is cheap to compute is
// computed in all of its readers.

#include "Fusion/RegionFusion.h"
#include "fp8/Analysis/MemoryTraffic.h"
#include "fp8/Dialect/FP8/IR/ElementRegion.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace fp8 {
#define GEN_PASS_DEF_FUSEELEMENTWISE
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;

/// Returns whether computing `op` again is cheaper than storing its result and reading it back.
static bool isCheap(linalg::GenericOp op) {
  unsigned count = 0;
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (isa<math::MathDialect>(inner.getDialect()) || inner.getNumRegions() != 0 ||
        isa<arith::DivFOp, arith::RemFOp, tensor::ExtractOp>(inner))
      return false;
    ++count;
  }
  // More than one full-size input would be read again by every reader.
  auto isFullSize = [&](OpOperand *input) {
    return op.getMatchingIndexingMap(input).getNumResults() == op.getNumLoops();
  };
  return count <= fp8::detail::kCheapOps && llvm::count_if(op.getDpsInputOperands(), isFullSize) <= 1;
}

/// Returns whether the consumer would run the producer's body once per element of its result.
static bool isComputedOnce(OpOperand *operand, linalg::GenericOp producer, linalg::GenericOp consumer) {
  return llvm::hasSingleElement(operand->get().getUses()) &&
         llvm::all_of(producer.getResults(),
                      [&](Value result) { return result == operand->get() || result.use_empty(); }) &&
         consumer.getMatchingIndexingMap(operand).isPermutation();
}

/// Returns whether `op` reads fewer bytes than it writes (constants, broadcasts, widening casts).
/// Readers that compute it themselves then read less than the stored result, however many they are.
static bool readsLess(linalg::GenericOp op) {
  llvm::SmallPtrSet<Value, 4> inputs;
  int64_t read = 0, written = 0;
  for (Value input : op.getDpsInputs())
    if (inputs.insert(input).second)
      read += fp8::countBytes(input.getType());
  for (Value result : op.getResults())
    written += fp8::countBytes(result.getType());
  return read < written;
}

/// Returns whether the body reads what an output held before.
static bool readsOutput(linalg::GenericOp op) {
  return llvm::any_of(op.getRegionOutputArgs(), [](BlockArgument output) { return !output.use_empty(); });
}

static bool shouldFuse(OpOperand *operand, bool recompute, fp8::detail::Reason *why = nullptr) {
  using fp8::detail::decline;
  auto producer = operand->get().getDefiningOp<linalg::GenericOp>();
  auto consumer = dyn_cast<linalg::GenericOp>(operand->getOwner());
  if (!producer || !consumer)
    return false;
  // Run more than once per element, the body would read what it wrote itself.
  if (readsOutput(producer) && !consumer.getMatchingIndexingMap(operand).isPermutation())
    return decline(why, "the code of the tensor reads what its memory held before");
  // A contraction packs its operands and would compute every element while packing.
  if (linalg::isaContractionOpInterface(consumer))
    return decline(why, fp8::detail::kMatmulOperand);
  if (producer.getNumDpsInputs() + consumer.getNumDpsInputs() > fp8::getTarget(consumer).getMaxFusedInputs())
    return decline(why, fp8::detail::kTooManyInputs);
  if (isComputedOnce(operand, producer, consumer))
    return true;
  if (!isCheap(producer))
    return decline(why,
                   "the tensor is read more than once, and computing it again costs more than reading it");
  return recompute || readsLess(producer) ||
         decline(why, "the tensor is read more than once, and computing it again reads as much");
}

fp8::detail::Reason fp8::detail::explainElementwise(OpOperand &read) {
  auto producer = read.get().getDefiningOp<linalg::GenericOp>();
  if (producer && producer.getNumReductionLoops() != 0)
    return "the tensor is the result of a reduction, which is complete only at its end";
  Reason why;
  return shouldFuse(&read, /*recompute=*/true, &why) ? "" : why;
}

static bool computesElements(Operation *op) {
  return isa_and_nonnull<linalg::GenericOp>(op) || (op && fp8::MatmulResults::of(op));
}

/// Returns the reader at `operand` if it is an elementwise generic, which can work on any shape of
/// the same elements; null otherwise.
static linalg::GenericOp getReshapableReader(OpOperand *operand) {
  auto reader = dyn_cast<linalg::GenericOp>(operand->getOwner());
  return reader && reader.getNumReductionLoops() == 0 ? reader : linalg::GenericOp();
}

/// Returns whether an elementwise generic reads the result of a matmul or another generic through
/// a collapse_shape. The generic can then work on the uncollapsed dimensions, adjacent to the
/// producer, and its result is collapsed instead.
static bool readsCollapsedResult(OpOperand *operand) {
  auto reshape = operand->get().getDefiningOp<tensor::CollapseShapeOp>();
  return reshape && getReshapableReader(operand) && computesElements(reshape.getSrc().getDefiningOp());
}

/// Returns whether an elementwise generic reads the result of a matmul through an expand_shape. The
/// generic can then work on the unexpanded dimensions, in the epilogue, unless another input is
/// computed in the expanded dimensions.
static bool readsExpandedResult(OpOperand *operand) {
  auto reshape = operand->get().getDefiningOp<tensor::ExpandShapeOp>();
  linalg::GenericOp reader = getReshapableReader(operand);
  Operation *matmul = reshape ? reshape.getSrc().getDefiningOp() : nullptr;
  if (!matmul || !fp8::MatmulResults::of(matmul) || !reader || reader.hasIndexSemantics())
    return false;
  return llvm::all_of(reader.getDpsInputs(), [&](Value other) {
    Operation *source = other.getDefiningOp();
    if (auto same = dyn_cast_or_null<tensor::ExpandShapeOp>(source))
      return same.getReassociationIndices() == reshape.getReassociationIndices();
    return !computesElements(source) && !isa_and_nonnull<tensor::CollapseShapeOp>(source);
  });
}

/// Decomposes linalg.softmax, which upstream does not bufferize.
static void decomposeAggregates(Operation *root) {
  IRRewriter rewriter(root->getContext());
  SmallVector<linalg::SoftmaxOp> aggregates;
  root->walk([&](linalg::SoftmaxOp op) {
    if (op.hasPureTensorSemantics())
      aggregates.push_back(op);
  });
  for (linalg::SoftmaxOp op : aggregates) {
    rewriter.setInsertionPoint(op);
    if (FailureOr<SmallVector<Value>> parts = op.decomposeOperation(rewriter); succeeded(parts))
      rewriter.replaceOp(op, *parts);
  }
}

/// Generalizes named operations, because upstream's patterns fuse generics only. Fills stay, because
/// sums are recognized by their initial value, and so do contractions, pools and convolutions.
static void generalizeNamed(Operation *root) {
  IRRewriter rewriter(root->getContext());
  SmallVector<linalg::LinalgOp> named;
  root->walk([&](linalg::LinalgOp op) {
    bool isSimple = op.getNumReductionLoops() == 0 || isa<linalg::ReduceOp>(op.getOperation());
    if (!isa<linalg::GenericOp, linalg::FillOp>(op.getOperation()) && isSimple && op.hasPureTensorSemantics())
      named.push_back(op);
  });
  for (linalg::LinalgOp op : named) {
    rewriter.setInsertionPoint(op);
    (void)linalg::generalizeNamedOp(rewriter, op); // ops without a scalar body stay unchanged
  }
}

namespace {
struct FuseElementwisePass : public fp8::impl::FuseElementwiseBase<FuseElementwisePass> {
  using Base::Base;

  void runOnOperation() override {
    decomposeAggregates(getOperation());
    generalizeNamed(getOperation());
    RewritePatternSet patterns(&getContext());
    linalg::populateElementwiseOpsFusionPatterns(
        patterns, [&](OpOperand *operand) { return shouldFuse(operand, recompute); });
    linalg::populateFoldReshapeOpsByExpansionPatterns(patterns, readsCollapsedResult);
    linalg::populateFoldReshapeOpsByCollapsingPatterns(patterns, readsExpandedResult);
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled); // no branches to simplify
    // A reshape moves by one operation in an iteration, and random numbers have long chains of them.
    // The program is right after any number of iterations.
    config.setMaxIterations(100);
    (void)applyPatternsGreedily(getOperation(), std::move(patterns), config);
  }
};
} // namespace
