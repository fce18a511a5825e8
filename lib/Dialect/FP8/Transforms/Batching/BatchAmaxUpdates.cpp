// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Leaves one amax vector, one reduction over the ranks and one history update of each recipe per update
// point.

#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_BATCHAMAXUPDATES
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// Returns the update whose results `op` updates, if nothing else reads these results.
UpdateAmaxHistoryOp getPrevious(UpdateAmaxHistoryOp op) {
  auto previous = op.getScale().getDefiningOp<UpdateAmaxHistoryOp>();
  if (!previous || op.getHistory().getDefiningOp() != previous || !previous->getResult(0).hasOneUse() ||
      !previous->getResult(1).hasOneUse() || previous->getBlock() != op->getBlock())
    return nullptr;
  return previous;
}

AllReduceOp getReduction(UpdateAmaxHistoryOp op) { return op.getAmaxes().getDefiningOp<AllReduceOp>(); }

/// Returns whether both updates reduce over the same group, or neither reduces.
bool reduceAlike(UpdateAmaxHistoryOp a, UpdateAmaxHistoryOp b) {
  AllReduceOp first = getReduction(a), second = getReduction(b);
  return !first == !second &&
         (!first || (first.getKind() == second.getKind() && first.getGrid() == second.getGrid() &&
                     first.getAxes() == second.getAxes()));
}

class BatchAmaxUpdates : public impl::BatchAmaxUpdatesBase<BatchAmaxUpdates> {
public:
  void runOnOperation() final {
    SmallVector<UpdateAmaxHistoryOp> ends;
    getOperation().walk([&](UpdateAmaxHistoryOp op) {
      bool continued = llvm::any_of(op->getUsers(), [&](Operation *user) {
        auto next = dyn_cast<UpdateAmaxHistoryOp>(user);
        return next && getPrevious(next) == op && reduceAlike(next, op);
      });
      if (!continued && op->getNumResults() == 2)
        ends.push_back(op);
    });
    for (UpdateAmaxHistoryOp end : ends)
      merge(end);
  }

private:
  void merge(UpdateAmaxHistoryOp end) {
    SmallVector<UpdateAmaxHistoryOp> chain{end};
    for (auto op = getPrevious(end); op && reduceAlike(op, end); op = getPrevious(op))
      chain.push_back(op);
    if (chain.size() == 1)
      return;
    std::reverse(chain.begin(), chain.end());

    OpBuilder builder(end);
    int64_t count = 0, offset = 0;
    for (UpdateAmaxHistoryOp op : chain)
      count += op.getColumns().size();
    Value amaxes = reduce(builder, end, concatenate(builder, chain, count));
    SmallVector<Value> state{chain.front().getScale(), chain.front().getHistory()};
    for (ArrayRef<UpdateAmaxHistoryOp> rest = chain; !rest.empty();) {
      UpdateAmaxHistoryOp first = rest.front();
      ArrayRef<UpdateAmaxHistoryOp> alike =
          rest.take_while([&](UpdateAmaxHistoryOp op) { return op.getRecipe() == first.getRecipe(); });
      state = updateAll(builder, alike, amaxes, offset, state);
      rest = rest.drop_front(alike.size());
    }
    end.replaceAllUsesWith(state);
    for (UpdateAmaxHistoryOp op : llvm::reverse(chain)) {
      AllReduceOp reduction = getReduction(op);
      op.erase();
      if (reduction && reduction->use_empty())
        reduction.erase();
    }
  }

  /// Builds one update in place of `chain`, whose recipes are equal. Its amaxes are those of `amaxes` from
  /// `offset` on, which becomes the offset of the next ones. Returns the new state.
  static SmallVector<Value> updateAll(OpBuilder &builder, ArrayRef<UpdateAmaxHistoryOp> chain, Value amaxes,
                                      int64_t &offset, ValueRange state) {
    SmallVector<int64_t> columns;
    SmallVector<Attribute> formats;
    for (UpdateAmaxHistoryOp op : chain) {
      llvm::append_range(columns, op.getColumns());
      llvm::append_range(formats, op.getFormats());
    }
    UpdateAmaxHistoryOp last = chain.back();
    int64_t count = columns.size();
    if (cast<RankedTensorType>(amaxes.getType()).getDimSize(0) != count) {
      SmallVector<OpFoldResult> offsets{builder.getIndexAttr(offset)}, sizes{builder.getIndexAttr(count)},
          strides{builder.getIndexAttr(1)};
      amaxes = tensor::ExtractSliceOp::create(builder, last.getLoc(), amaxes, offsets, sizes, strides);
    }
    offset += count;
    auto update = UpdateAmaxHistoryOp::create(
        builder, last.getLoc(), last->getResultTypes(), amaxes, state[0], state[1], last.getRecipe(),
        builder.getDenseI64ArrayAttr(columns), builder.getArrayAttr(formats));
    return llvm::to_vector_of<Value>(update.getResults());
  }

  /// Builds one vector of all recorded amaxes before their reduction.
  static Value concatenate(OpBuilder &builder, ArrayRef<UpdateAmaxHistoryOp> chain, int64_t count) {
    Location loc = chain.back()->getLoc();
    Value vector = tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>{count}, builder.getF32Type());
    int64_t offset = 0;
    for (UpdateAmaxHistoryOp op : chain) {
      AllReduceOp reduction = getReduction(op);
      Value part = reduction ? reduction.getInput() : op.getAmaxes();
      // Insert a single amax as a rank-0 tensor, so that it can be computed in its place.
      if (auto expanded = part.getDefiningOp<tensor::ExpandShapeOp>())
        part = expanded.getSrc();
      int64_t size = op.getColumns().size();
      SmallVector<OpFoldResult> offsets{builder.getIndexAttr(offset)}, sizes{builder.getIndexAttr(size)};
      SmallVector<OpFoldResult> strides{builder.getIndexAttr(1)};
      vector = tensor::InsertSliceOp::create(builder, loc, part, vector, offsets, sizes, strides);
      offset += size;
    }
    return vector;
  }

  static Value reduce(OpBuilder &builder, UpdateAmaxHistoryOp end, Value vector) {
    AllReduceOp like = getReduction(end);
    if (!like)
      return vector;
    auto type = cast<RankedTensorType>(vector.getType());
    Value init = tensor::EmptyOp::create(builder, like.getLoc(), type.getShape(), type.getElementType());
    return AllReduceOp::create(builder, like.getLoc(), TypeRange(type), vector, init, like.getKindAttr(),
                               like.getGridAttr(), like.getAxesAttr(), like.getLabelAttr())
        .getResult(0);
  }
};

} // namespace
} // namespace fp8
