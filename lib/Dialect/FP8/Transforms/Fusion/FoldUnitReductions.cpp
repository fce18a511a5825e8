// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns reductions along dimensions of size 1 into elementwise code, which fuses with its neighbours.
// Programs sum the gradient of a bias again over the dimensions that a broadcast had added.

#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/FP8/Transforms/Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace fp8 {
#define GEN_PASS_DEF_FOLDUNITREDUCTIONS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;

/// Returns the reduction dimensions of `op` if all of them have size 1; none for any other operation.
static SmallVector<unsigned> findUnitReductions(linalg::LinalgOp op) {
  SmallVector<unsigned> dims;
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  op.getReductionDims(dims);
  bool areUnits = llvm::all_of(dims, [&](unsigned dim) { return sizes[dim] == 1; });
  return areUnits && op.hasPureTensorSemantics() ? dims : SmallVector<unsigned>();
}

/// Returns the constant that fills `tensor`, through views; null if there is none.
static Attribute findFill(Value tensor) {
  while (
      isa_and_nonnull<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp>(tensor.getDefiningOp()))
    tensor = tensor.getDefiningOp()->getOperand(0);
  Attribute value;
  if (auto fill = tensor.getDefiningOp<linalg::FillOp>())
    matchPattern(fill.value(), m_Constant(&value));
  return value;
}

/// Where a result starts from a constant, `op` computes with the constant and overwrites the result.
static void inlineFills(RewriterBase &rewriter, linalg::GenericOp op) {
  for (OpOperand &init : op.getDpsInitsMutable()) {
    auto value = dyn_cast_or_null<TypedAttr>(findFill(init.get()));
    if (!value || !isa<FloatAttr, IntegerAttr>(value))
      continue;
    rewriter.setInsertionPointToStart(op.getBody());
    Value constant = arith::ConstantOp::create(rewriter, op.getLoc(), value);
    rewriter.replaceAllUsesWith(op.getMatchingBlockArgument(&init), constant);
    rewriter.setInsertionPoint(op);
    auto type = cast<RankedTensorType>(init.get().getType());
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, op.getLoc(), init.get());
    rewriter.modifyOpInPlace(
        op, [&] { init.set(tensor::EmptyOp::create(rewriter, op.getLoc(), sizes, type.getElementType())); });
  }
}

/// Returns failure if nothing has changed.
static LogicalResult fold(RewriterBase &rewriter, linalg::LinalgOp op, ArrayRef<unsigned> dims) {
  bool isNamed = !isa<linalg::GenericOp>(op);
  auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
  if (!generic) {
    FailureOr<linalg::GenericOp> generalized = linalg::generalizeNamedOp(rewriter, op);
    if (failed(generalized))
      return failure();
    generic = *generalized;
  }
  linalg::ControlDropUnitDims control;
  control.controlFn = [&](Operation *) { return SmallVector<unsigned>(dims); };
  rewriter.setInsertionPoint(generic);
  FailureOr<linalg::DropUnitDimsResult> dropped = linalg::dropUnitDims(rewriter, generic, control);
  if (failed(dropped))
    return success(isNamed);
  rewriter.replaceOp(generic, dropped->replacements);
  inlineFills(rewriter, cast<linalg::GenericOp>(dropped->resultOp.getOperation()));
  return success();
}

namespace {
struct FoldUnitReduction : OpInterfaceRewritePattern<linalg::LinalgOp> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;
  LogicalResult matchAndRewrite(linalg::LinalgOp op, PatternRewriter &rewriter) const final {
    SmallVector<unsigned> dims = findUnitReductions(op);
    return dims.empty() ? failure() : fold(rewriter, op, dims);
  }
};

struct FoldUnitReductionsPass : public fp8::impl::FoldUnitReductionsBase<FoldUnitReductionsPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    fp8::populateFoldUnitReductionsPatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace

void fp8::populateFoldUnitReductionsPatterns(RewritePatternSet &patterns) {
  patterns.add<FoldUnitReduction>(patterns.getContext());
}
