// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Merges quantizes of the same tensor, format and scale. fp8-apply-recipe creates only one for each
// tensor; this pass merges those of tensors that turned out to be equal later.

#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_MERGEQUANTIZES
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// Returns whether both have the same result: equal inputs, scale, format, blocks and column.
bool quantizesTheSame(QuantizeOp a, QuantizeOp b) {
  return a.getInputs() == b.getInputs() && a.getScale() == b.getScale() && a.getFormat() == b.getFormat() &&
         a.getBlockAttr() == b.getBlockAttr() && a.getColumnAttr() == b.getColumnAttr() &&
         a.getProducer().empty() && b.getProducer().empty() && !a.getTransposition() && !b.getTransposition();
}

/// Replaces `op` by a quantize that records the amax, if it does not already.
QuantizeOp withAmax(QuantizeOp op) {
  if (op.getRecordAmax())
    return op;
  OpBuilder builder(op);
  SmallVector<Value> outs(op.getOuts());
  outs.push_back(tensor::EmptyOp::create(builder, op.getLoc(), ArrayRef<int64_t>{}, builder.getF32Type()));
  auto wider = QuantizeOp::create(builder, op.getLoc(), TypeRange(ValueRange(outs)), op.getInputs(),
                                  op.getScale(), outs, /*record_amax=*/true, DenseI64ArrayAttr(),
                                  op.getBlockAttr(), op.getColumnAttr(), ArrayAttr());
  op.replaceAllUsesWith(wider.getResults().take_front(op.getNumResults()));
  op.erase();
  return wider;
}

class MergeQuantizes : public impl::MergeQuantizesBase<MergeQuantizes> {
public:
  void runOnOperation() final {
    getOperation().walk([&](Block *block) { mergeIn(*block); });
  }

private:
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
      if (op.getRecordAmax())
        kept[*same] = withAmax(kept[*same]);
      op.replaceAllUsesWith(kept[*same].getResults().take_front(op.getNumResults()));
      op.erase();
    }
  }
};

} // namespace
} // namespace fp8
