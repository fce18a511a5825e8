// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expands scales and history updates: the recipe emits the code for one amax or one column, and
// this pass the loops around it.

#include "LoopBuilder.h"
#include "fp8/Conversion/Passes.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_EXPANDSCALING
#include "fp8/Conversion/Passes.h.inc"

namespace {

/// Computes one scale per amax, in loops over all dimensions.
void expandComputeScale(OpBuilder &builder, ComputeScaleOp op) {
  LoopBuilder s(builder, op.getLoc());
  auto type = cast<MemRefType>(op.getAmax().getType());
  auto inputType = op.getInputType() ? cast<FloatType>(*op.getInputType()) : FloatType();
  SmallVector<Value> indices;
  std::function<void(LoopBuilder &)> build = [&](LoopBuilder &s) {
    int64_t dim = indices.size();
    if (dim == type.getRank()) {
      ScaleInputs inputs{s.load(op.getAmax(), indices), s.real(getFP8Max(cast<FloatType>(op.getFormat()))),
                         s.real(1.0f), inputType};
      s.store(op.getRecipe().buildScale(s.b, s.loc, op, inputs), op.getOuts(), indices);
      return;
    }
    Value size = type.isDynamicDim(dim) ? memref::DimOp::create(s.b, s.loc, op.getAmax(), dim).getResult()
                                        : s.index(type.getDimSize(dim));
    s.loop(s.index(0), size, [&](LoopBuilder &inner, Value i) {
      indices.push_back(i);
      build(inner);
      indices.pop_back();
    });
  };
  build(s);
}

/// Names the loops between `before`, which may be null, and `op` after `op` (fp8.computes in Marks.def).
void markLoops(Operation *before, Operation *op) {
  auto word = StringAttr::get(op->getContext(), op->getName().stripDialect());
  Operation *first = before ? before->getNextNode() : &op->getBlock()->front();
  for (Operation *created = first; created != op; created = created->getNextNode())
    if (isa<LoopLikeOpInterface>(created))
      created->setAttr(kComputesAttrName, word);
}

class ExpandScaling : public impl::ExpandScalingBase<ExpandScaling> {
public:
  void runOnOperation() final {
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa<UpdateAmaxHistoryOp, ComputeScaleOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops)
      if (failed(expand(op)))
        return signalPassFailure();
  }

private:
  LogicalResult expand(Operation *op) {
    if (llvm::any_of(op->getOperandTypes(), llvm::IsaPred<TensorType>))
      return op->emitOpError("is on tensors; bufferize before fp8-expand-scaling");
    Operation *before = op->getPrevNode();
    OpBuilder builder(op);
    if (auto scale = dyn_cast<ComputeScaleOp>(op))
      expandComputeScale(builder, scale);
    else if (failed(expandUpdateAmaxHistory(builder, cast<UpdateAmaxHistoryOp>(op))))
      return failure();
    markLoops(before, op);
    op->erase();
    return success();
  }
};

} // namespace
} // namespace fp8
