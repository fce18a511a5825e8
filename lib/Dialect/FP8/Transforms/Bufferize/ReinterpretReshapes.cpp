// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns reshapes that split one dimension into several dynamic ones into memref.reinterpret_cast, with
// the sizes that are operands of the reshape. Upstream's expand-strided-metadata takes the size of one
// dynamic dimension from the source, and crashes if there are more. Reshapes whose sizes are in memory
// become casts too, so that sizes which the program has computed need no memory of their own.

#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/FP8/Transforms/Patterns.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
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

/// Returns the values that are stored to the elements of `buffer`, an allocation that nothing else writes; an
/// empty vector if they are not known.
static SmallVector<Value> findStoredElements(Value buffer, Operation *reader) {
  auto alloc = buffer.getDefiningOp<memref::AllocOp>();
  auto type = cast<MemRefType>(buffer.getType());
  if (!alloc || !type.hasStaticShape())
    return {};
  SmallVector<Value> elements(type.getNumElements());
  for (Operation *user : buffer.getUsers()) {
    if (isa<memref::ReshapeOp, memref::DeallocOp>(user))
      continue;
    auto store = dyn_cast<memref::StoreOp>(user);
    std::optional<int64_t> index = store ? getConstantIntValue(store.getIndices()[0]) : std::nullopt;
    if (!index || *index < 0 || *index >= type.getNumElements() || elements[*index] ||
        store->getBlock() != reader->getBlock() || !store->isBeforeInBlock(reader))
      return {};
    elements[*index] = store.getValueToStore();
  }
  return llvm::is_contained(elements, Value()) ? SmallVector<Value>() : elements;
}

/// Replaces `op` by a cast to the sizes that its operand holds.
static void reinterpret(RewriterBase &rewriter, memref::ReshapeOp op) {
  Location loc = op.getLoc();
  auto type = cast<MemRefType>(op.getType());
  rewriter.setInsertionPoint(op);
  SmallVector<Value> known = findStoredElements(op.getShape(), op);
  auto readSize = [&](int64_t dim) -> Value {
    Value size = known.empty() ? Value() : known[dim];
    if (!size)
      size = memref::LoadOp::create(rewriter, loc, op.getShape(),
                                    ValueRange(arith::ConstantIndexOp::create(rewriter, loc, dim)));
    return getValueOrCreateCastToIndexLike(rewriter, loc, rewriter.getIndexType(), size);
  };
  SmallVector<OpFoldResult> sizes, strides(type.getRank(), rewriter.getIndexAttr(1));
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    sizes.push_back(ShapedType::isDynamic(size) ? OpFoldResult(readSize(dim)) : rewriter.getIndexAttr(size));
  AffineExpr a, b;
  bindSymbols(op.getContext(), a, b);
  for (int64_t dim = type.getRank() - 2; dim >= 0; --dim)
    strides[dim] =
        affine::makeComposedFoldedAffineApply(rewriter, loc, a * b, {strides[dim + 1], sizes[dim + 1]});
  rewriter.replaceOpWithNewOp<memref::ReinterpretCastOp>(op, type, op.getSource(), rewriter.getIndexAttr(0),
                                                         sizes, strides);
}

/// Erases a buffer of sizes that nothing reads any more.
static void eraseUnread(RewriterBase &rewriter, Value buffer) {
  auto alloc = buffer.getDefiningOp<memref::AllocOp>();
  if (!alloc || !llvm::all_of(alloc->getUsers(), llvm::IsaPred<memref::StoreOp, memref::DeallocOp>))
    return;
  for (Operation *user : llvm::make_early_inc_range(alloc->getUsers()))
    rewriter.eraseOp(user);
  rewriter.eraseOp(alloc);
}

/// Whether both sides of `op` have ranks.
static bool isRanked(memref::ReshapeOp op) {
  return isa<MemRefType>(op.getType()) && isa<MemRefType>(op.getSource().getType());
}

/// Replaces `op`, and erases its buffer of sizes if nothing else reads it.
static void reinterpretAndErase(RewriterBase &rewriter, memref::ReshapeOp op) {
  Value sizes = op.getShape();
  reinterpret(rewriter, op);
  eraseUnread(rewriter, sizes);
}

namespace {
struct ReinterpretExpandShape : OpRewritePattern<memref::ExpandShapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(memref::ExpandShapeOp op, PatternRewriter &rewriter) const final {
    if (!hasSeveralDynamicSizes(op))
      return failure();
    reinterpret(rewriter, op);
    return success();
  }
};

struct ReinterpretReshape : OpRewritePattern<memref::ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(memref::ReshapeOp op, PatternRewriter &rewriter) const final {
    if (!isRanked(op))
      return failure();
    reinterpretAndErase(rewriter, op);
    return success();
  }
};

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
    SmallVector<memref::ReshapeOp> withSizesInMemory;
    getOperation()->walk([&](memref::ReshapeOp op) {
      if (isRanked(op))
        withSizesInMemory.push_back(op);
    });
    for (memref::ReshapeOp op : withSizesInMemory)
      reinterpretAndErase(rewriter, op);
  }
};
} // namespace

void fp8::populateReinterpretReshapesPatterns(RewritePatternSet &patterns) {
  patterns.add<ReinterpretExpandShape, ReinterpretReshape>(patterns.getContext());
}
