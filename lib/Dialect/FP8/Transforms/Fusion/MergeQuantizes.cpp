// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Merges quantizes of the same tensor, format and scale. fp8-apply-recipe creates only one for each
// tensor; this pass merges those of tensors that turned out to be equal later.

#include "fp8/Dialect/FP8/IR/CastParts.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_MERGEQUANTIZES
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// Returns whether both have the same results, as far as they have them: equal inputs, scale, format, column
/// and order of the copy.
bool quantizesTheSame(QuantizeOp a, QuantizeOp b) {
  bool sameOrder =
      !a.getTransposition() || !b.getTransposition() || a.getTranspositionAttr() == b.getTranspositionAttr();
  return sameOrder && a.getInputs() == b.getInputs() && a.getScale() == b.getScale() &&
         a.getFormat() == b.getFormat() && a.getColumnAttr() == b.getColumnAttr() &&
         a.getRandom() == b.getRandom() && a.getStreamAttr() == b.getStreamAttr() &&
         a.getProducer().empty() && b.getProducer().empty();
}

/// Replaces the results of `op` by those of `other`, which has all of them.
void replaceBy(QuantizeOp op, QuantizeOp other) {
  auto replace = [&](int64_t from, int64_t to) {
    if (from >= 0)
      op.getResult(from).replaceAllUsesWith(other.getResult(to));
  };
  replace(0, 0);
  replace(op.getDataTIndex(), other.getDataTIndex());
  replace(op.getScaleInvIndex(), other.getScaleInvIndex());
  replace(op.getAmaxIndex(), other.getAmaxIndex());
  op.erase();
}

/// Replaces `op` by a quantize that also has the copy in another order and the amax of `other`.
QuantizeOp withResultsOf(QuantizeOp op, QuantizeOp other) {
  bool addsOrder = other.getTransposition() && !op.getTransposition();
  bool addsAmax = other.getRecordAmax() && !op.getRecordAmax();
  if (!addsOrder && !addsAmax)
    return op;
  OpBuilder builder(op);
  SmallVector<Value> outs(op.getOuts());
  if (addsOrder) {
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, op.getLoc(), op.getInputs().front());
    outs.insert(outs.begin() + 1,
                tensor::EmptyOp::create(builder, op.getLoc(),
                                        applyPermutation(sizes, *other.getTransposition()), op.getFormat()));
  }
  if (addsAmax)
    outs.push_back(tensor::EmptyOp::create(builder, op.getLoc(), ArrayRef<int64_t>{}, builder.getF32Type()));
  QuantizeParts parts(op, op.getInputs(), outs);
  parts.recordAmax |= addsAmax;
  if (addsOrder)
    parts.transposition = other.getTranspositionAttr();
  auto wider = parts.create(builder, op.getLoc());
  replaceBy(op, wider);
  return wider;
}

/// Returns whether both cast one tensor to one format by one recipe.
bool canMergeDirections(QuantizeBlocksOp a, QuantizeBlocksOp b) {
  return a->getNumResults() != 0 && a.getInputs() == b.getInputs() && a.getRecipe() == b.getRecipe() &&
         a.getFormat() == b.getFormat() && a.getRandom() == b.getRandom() &&
         a.getStreamAttr() == b.getStreamAttr() && a.getProducer().empty() && b.getProducer().empty() &&
         !a.getTranspositions() && !b.getTranspositions();
}

/// Merges the directions of two casts of one tensor into one operation, at the place of the first.
QuantizeBlocksOp mergeDirections(QuantizeBlocksOp first, QuantizeBlocksOp second) {
  OpBuilder builder(first);
  Location loc = first.getLoc();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, first.getInputs()[0]);
  SmallVector<Value> outs(first.getOuts());
  SmallVector<Attribute> blocks(first.getBlocks().getValue());
  SmallVector<unsigned> directions; // where those of the second are in the merged operation
  for (unsigned i = 0; i < second.getNumDirections(); ++i) {
    auto *same = llvm::find(blocks, second.getBlocks()[i]);
    directions.push_back(same - blocks.begin());
    if (same != blocks.end())
      continue;
    blocks.push_back(second.getBlocks()[i]);
    SmallVector<OpFoldResult> counts =
        getBlockCounts(builder, loc, sizes, cast<DenseI64ArrayAttr>(second.getBlocks()[i]));
    outs.push_back(tensor::EmptyOp::create(builder, loc, sizes, second.getFormat()));
    outs.push_back(tensor::EmptyOp::create(builder, loc, counts, second.getRecipe().getScaleType()));
  }
  QuantizeBlocksParts parts(first, first.getInputs(), outs);
  parts.blocks = builder.getArrayAttr(blocks);
  auto merged = parts.create(builder, loc);
  first.replaceAllUsesWith(merged.getResults().take_front(first.getNumResults()));
  for (auto [i, direction] : llvm::enumerate(directions))
    for (unsigned part : {0u, 1u}) {
      Value old = second.getResult(2 * i + part), result = merged.getResult(2 * direction + part);
      old.replaceAllUsesWith(result.getType() == old.getType()
                                 ? result
                                 : tensor::CastOp::create(builder, loc, old.getType(), result).getResult());
    }
  first.erase();
  second.erase();
  return merged;
}

class MergeQuantizes : public impl::MergeQuantizesBase<MergeQuantizes> {
public:
  void runOnOperation() final {
    getOperation().walk([&](Block *block) {
      mergeIn(*block);
      mergeDirectionsIn(*block);
    });
  }

private:
  void mergeDirectionsIn(Block &block) {
    SmallVector<QuantizeBlocksOp> kept;
    for (auto op : llvm::make_early_inc_range(block.getOps<QuantizeBlocksOp>())) {
      auto *same = llvm::find_if(kept, [&](QuantizeBlocksOp other) { return canMergeDirections(other, op); });
      if (same == kept.end())
        kept.push_back(op);
      else
        *same = mergeDirections(*same, op);
    }
  }

  /// Compares only quantizes of the same value.
  void mergeIn(Block &block) {
    SmallVector<QuantizeOp> kept;
    DenseMap<Value, SmallVector<unsigned>> byInput;
    for (auto op : llvm::make_early_inc_range(block.getOps<QuantizeOp>())) {
      SmallVector<unsigned> &candidates = byInput[op.getInputs().front()];
      auto *same = llvm::find_if(candidates, [&](unsigned i) { return quantizesTheSame(kept[i], op); });
      if (same == candidates.end()) {
        candidates.push_back(kept.size());
        kept.push_back(op);
        continue;
      }
      kept[*same] = withResultsOf(kept[*same], op);
      replaceBy(op, kept[*same]);
    }
  }
};

} // namespace
} // namespace fp8
