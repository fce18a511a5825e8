// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One tensor.empty per use. Sharing them, as common subexpression elimination does, means
// nothing for the program, but bufferization then weighs every use against every other:
// its time grew with the square of the program's length.
//
// A destination that nobody reads may be any tensor, and elementwise operations become ones
// whose destination is an operand. Where that operand is needed afterwards, upstream's
// elimination of empty tensors takes both for one buffer: it follows destinations back to
// a tensor.empty without asking who else reads what lies on the way.

#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

namespace fp8 {
#define GEN_PASS_DEF_SEPARATEDESTINATIONS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using bufferization::BufferizableOpInterface;

/// Whether a destination's value is needed elsewhere: after the operation, by another
/// run of it, or as another of its destinations.
static bool isNeededElsewhere(OpOperand &init) {
  Operation *op = init.getOwner();
  if (init.get().getParentBlock() != op->getBlock())
    return true;
  return llvm::any_of(init.get().getUses(), [&](OpOperand &use) {
    if (use.getOwner() == op)
      return &use != &init && cast<DestinationStyleOpInterface>(op).isDpsInit(&use);
    Operation *user = op->getBlock()->findAncestorOpInBlock(*use.getOwner());
    return !user || op->isBeforeInBlock(user);
  });
}

static void separateSharedEmpties(func::FuncOp function) {
  SmallVector<tensor::EmptyOp> shared;
  function.walk([&](tensor::EmptyOp op) {
    if (!op->hasOneUse())
      shared.push_back(op);
  });
  for (tensor::EmptyOp op : shared) {
    for (OpOperand &use : llvm::make_early_inc_range(op->getUses())) {
      OpBuilder builder(use.getOwner());
      use.set(builder.clone(*op)->getResult(0));
    }
    op.erase();
  }
}

static void separateUnreadOperands(func::FuncOp function) {
  bufferization::BufferizationOptions options;
  bufferization::AnalysisState state(options);
  function.walk([&](DestinationStyleOpInterface op) {
    auto bufferizable = dyn_cast<BufferizableOpInterface>(op.getOperation());
    if (!bufferizable)
      return;
    for (OpOperand &init : op.getDpsInitsMutable()) {
      auto type = dyn_cast<RankedTensorType>(init.get().getType());
      bool isFresh = init.get().getDefiningOp<tensor::EmptyOp>() != nullptr;
      if (!type || isFresh || bufferizable.bufferizesToMemoryRead(init, state) || !isNeededElsewhere(init))
        continue;
      OpBuilder builder(op);
      init.set(tensor::EmptyOp::create(builder, op->getLoc(),
                                       tensor::getMixedSizes(builder, op->getLoc(), init.get()),
                                       type.getElementType(), type.getEncoding()));
    }
  });
}

namespace {
struct SeparateDestinationsPass : public fp8::impl::SeparateDestinationsBase<SeparateDestinationsPass> {
  void runOnOperation() override {
    separateSharedEmpties(getOperation());
    separateUnreadOperands(getOperation());
  }
};
} // namespace
