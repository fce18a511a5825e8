// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives every use a tensor.empty, or a part of one, of its own. Common subexpression elimination shares them,
// which is harmless, but bufferization then analyses all uses of a shared one together, in time that grows
// with the square of the program's length.
//
// A destination that is needed elsewhere is replaced as well: elementwise operations may have an
// operand as destination, and matmuls have the tensor that they are added to. Upstream's
// elimination of empty tensors would put both into one buffer: it follows destinations back to a
// tensor.empty without checking what else reads the tensors in between.

#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

namespace fp8 {
#define GEN_PASS_DEF_SEPARATEDESTINATIONS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using bufferization::BufferizableOpInterface;

/// Returns whether a destination's value is needed elsewhere: after the operation, by another
/// execution of it, or as another of its destinations.
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

/// Gives every use an operation of type `Op` of its own, of those that `isMemory` names.
template <typename Op>
static void separateUses(func::FuncOp function, function_ref<bool(Op)> isMemory) {
  SmallVector<Op> shared;
  function.walk([&](Op op) {
    if (!op->hasOneUse() && isMemory(op))
      shared.push_back(op);
  });
  for (Op op : shared) {
    for (OpOperand &use : llvm::make_early_inc_range(op->getUses())) {
      OpBuilder builder(use.getOwner());
      use.set(builder.clone(*op)->getResult(0));
    }
    op.erase();
  }
}

/// Parts of them go first, each use of which gets a whole one then.
static void separateSharedEmpties(func::FuncOp function) {
  separateUses<tensor::ExtractSliceOp>(function, [](tensor::ExtractSliceOp op) {
    return op.getSource().getDefiningOp<tensor::EmptyOp>() != nullptr;
  });
  separateUses<tensor::EmptyOp>(function, [](tensor::EmptyOp) { return true; });
}

/// Creates a copy of `value` in `empty`.
static Value makeCopy(OpBuilder &builder, Value value, Value empty) {
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    return linalg::FillOp::create(builder, fill.getLoc(), fill.getInputs(), empty).getResult(0);
  return linalg::CopyOp::create(builder, value.getLoc(), value, empty).getResult(0);
}

static void separateNeededTensors(func::FuncOp function) {
  bufferization::BufferizationOptions options;
  bufferization::AnalysisState state(options);
  function.walk([&](DestinationStyleOpInterface op) {
    auto bufferizable = dyn_cast<BufferizableOpInterface>(op.getOperation());
    if (!bufferizable)
      return;
    for (OpOperand &init : op.getDpsInitsMutable()) {
      Value value = init.get();
      auto type = dyn_cast<RankedTensorType>(value.getType());
      // Block arguments, such as the state, are never a tensor.empty.
      if (!type || !isa<OpResult>(value) || value.getDefiningOp<tensor::EmptyOp>() ||
          !isNeededElsewhere(init))
        continue;
      OpBuilder builder(op);
      Location loc = op->getLoc();
      Value own = tensor::EmptyOp::create(builder, loc, tensor::getMixedSizes(builder, loc, value),
                                          type.getElementType(), type.getEncoding());
      init.set(bufferizable.bufferizesToMemoryRead(init, state) ? makeCopy(builder, value, own) : own);
    }
  });
}

namespace {
struct SeparateDestinationsPass : public fp8::impl::SeparateDestinationsBase<SeparateDestinationsPass> {
  void runOnOperation() override {
    separateSharedEmpties(getOperation());
    separateNeededTensors(getOperation());
  }
};
} // namespace
