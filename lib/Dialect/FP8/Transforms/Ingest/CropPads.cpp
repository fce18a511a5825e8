// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pad of negative width cuts elements off (PyTorch's F.pad). Upstream folds such a pad to its
// source if the types are equal, which is wrong, and cannot bufferize it otherwise. This pass turns
// the cut into a slice before any pass folds.

#include "fp8/Analysis/IntegerRanges.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace fp8 {
#define GEN_PASS_DEF_CROPPADS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

namespace {
/// Index arithmetic that folds constants.
struct Arithmetic {
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value add(Value a, Value b) { return builder.createOrFold<arith::AddIOp>(loc, a, b); }
  Value subtract(Value a, Value b) { return builder.createOrFold<arith::SubIOp>(loc, a, b); }
  Value clamp(Value value, Value least, Value most) {
    Value raised = builder.createOrFold<arith::MaxSIOp>(loc, value, least);
    return builder.createOrFold<arith::MinSIOp>(loc, raised, most);
  }
  OpBuilder &builder;
  Location loc;
};

/// The result along one dimension: `low` elements of padding, `kept` elements of the source from
/// `first` on, `high` elements of padding.
struct Part {
  OpFoldResult first, kept, low, high;
};
} // namespace

/// Element i of the result is element i - low of the source, if there is one. Nothing overflows,
/// because widths are clamped to sizes that fit into memory before they are added.
static Part cropDimension(Arithmetic &math, tensor::PadOp pad, int64_t dim) {
  OpBuilder &builder = math.builder;
  OpFoldResult extent = tensor::getMixedSize(builder, math.loc, pad.getSource(), dim);
  Value size = getValueOrCreateConstantIndexOp(builder, math.loc, extent);
  Value low = getValueOrCreateConstantIndexOp(builder, math.loc, pad.getMixedLowPad()[dim]);
  Value high = getValueOrCreateConstantIndexOp(builder, math.loc, pad.getMixedHighPad()[dim]);
  Value zero = math.constant(0);
  Value first = math.clamp(math.subtract(zero, low), zero, size);
  Value end = math.clamp(math.add(size, high), first, size);
  Value kept = math.subtract(end, first);

  Value total = math.add(math.add(low, size), high);
  int64_t known = pad.getResultType().getDimSize(dim);
  if (!getConstantIntValue(total)) {
    bool isFixed = !ShapedType::isDynamic(known);
    Value fits = arith::CmpIOp::create(builder, math.loc,
                                       isFixed ? arith::CmpIPredicate::eq : arith::CmpIPredicate::sge, total,
                                       isFixed ? math.constant(known) : zero);
    cf::AssertOp::create(builder, math.loc, fits,
                         "size " + std::to_string(dim) + " of a padded tensor must be " +
                             (isFixed ? std::to_string(known) : "0 or more"));
  }
  // Upstream rejects an empty slice at the end of a tensor.
  if (getConstantIntValue(kept) == 0)
    return {getAsOpFoldResult(zero), getAsOpFoldResult(kept), getAsOpFoldResult(zero),
            getAsOpFoldResult(total)};
  Value before = math.clamp(low, zero, total);
  Value after = math.subtract(math.subtract(total, before), kept);
  return {getAsOpFoldResult(first), getAsOpFoldResult(kept), getAsOpFoldResult(before),
          getAsOpFoldResult(after)};
}

/// Returns whether a width may be negative.
static bool mayCrop(IntegerRanges &ranges, OpFoldResult width) {
  return ranges.get(width).smin().isNegative();
}

/// Replaces `pad` by a slice of its source and a pad with widths of 0 or more.
static void crop(RewriterBase &rewriter, tensor::PadOp pad) {
  Location loc = pad.getLoc();
  rewriter.setInsertionPoint(pad);
  Arithmetic math{rewriter, loc};
  SmallVector<OpFoldResult> offsets, sizes, lows, highs;
  for (int64_t dim = 0; dim < pad.getSourceType().getRank(); ++dim) {
    Part part = cropDimension(math, pad, dim);
    offsets.push_back(part.first);
    sizes.push_back(part.kept);
    lows.push_back(part.low);
    highs.push_back(part.high);
  }
  SmallVector<OpFoldResult> ones(offsets.size(), rewriter.getIndexAttr(1));
  Value kept = tensor::ExtractSliceOp::create(rewriter, loc, pad.getSource(), offsets, sizes, ones);
  auto padded = tensor::PadOp::create(rewriter, loc, pad.getResultType(), kept, lows, highs, pad.getNofold());
  rewriter.inlineRegionBefore(pad.getRegion(), padded.getRegion(), padded.getRegion().end());
  rewriter.replaceOp(pad, padded);
}

namespace {

struct CropPads : fp8::impl::CropPadsBase<CropPads> {
  void runOnOperation() final {
    SmallVector<tensor::PadOp> pads;
    getOperation()->walk([&](tensor::PadOp pad) {
      IntegerRanges ranges(pad);
      if (llvm::any_of(llvm::concat<OpFoldResult>(pad.getMixedLowPad(), pad.getMixedHighPad()),
                       [&](OpFoldResult width) { return mayCrop(ranges, width); }))
        pads.push_back(pad);
    });
    IRRewriter rewriter(&getContext());
    for (tensor::PadOp pad : pads)
      crop(rewriter, pad);
  }
};

} // namespace
