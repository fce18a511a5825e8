// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes the functions that a recipe names private, because they are part of the history update,
// not entry points, and gives them static shapes, for which memory can be planned.

#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_PREPARERECIPEFUNCTIONS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// Returns whether `op` itself, apart from nested operations, has no side effects. Assertions are
/// allowed: a failed one ends the call, as anywhere.
bool hasNoSideEffects(Operation *op) {
  return isa<cf::AssertOp>(op) || op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
         op->hasTrait<OpTrait::IsTerminator>() || isMemoryEffectFree(op);
}

LogicalResult verifyEffects(func::FuncOp function) {
  WalkResult walked = function.getFunctionBody().walk([&](Operation *op) {
    if (hasNoSideEffects(op))
      return WalkResult::advance();
    op->emitError() << "'" << op->getName() << "' may have effects; functions named by a recipe, like '"
                    << function.getName() << "', compute a value and nothing else";
    return WalkResult::interrupt();
  });
  return failure(walked.wasInterrupted());
}

/// Changes arguments that are columns of the history, tensor<?xf32>, to tensors of `rows` elements,
/// and casts them back for the body.
void specializeColumns(func::FuncOp function, int64_t rows) {
  OpBuilder builder = OpBuilder::atBlockBegin(&function.front());
  for (BlockArgument column : function.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(column.getType());
    if (!type || type.getRank() != 1 || type.hasStaticShape() || !type.getElementType().isF32())
      continue;
    column.setType(RankedTensorType::get({rows}, type.getElementType()));
    auto cast = tensor::CastOp::create(builder, column.getLoc(), type, column);
    column.replaceAllUsesExcept(cast, cast);
  }
  function.setFunctionType(
      builder.getFunctionType(function.getBody().getArgumentTypes(), function.getResultTypes()));
}

class PrepareRecipeFunctions : public impl::PrepareRecipeFunctionsBase<PrepareRecipeFunctions> {
public:
  void runOnOperation() final {
    WalkResult walked = getOperation().walk([&](Operation *op) {
      LogicalResult prepared = success();
      if (auto update = dyn_cast<UpdateAmaxHistoryOp>(op))
        prepared = prepare(update.getRecipe());
      else if (auto scale = dyn_cast<ComputeScaleOp>(op))
        prepared = prepare(scale.getRecipe());
      return WalkResult(prepared);
    });
    if (walked.wasInterrupted())
      signalPassFailure();
  }

private:
  LogicalResult prepare(RecipeAttrInterface recipe) {
    for (FlatSymbolRefAttr name : recipe.getFunctions()) {
      // The verifier of the operation has checked that each exists and has the right signature.
      auto function = getOperation().lookupSymbol<func::FuncOp>(name.getAttr());
      if (!function)
        continue;
      if (failed(verifyEffects(function)))
        return failure();
      function.setPrivate();
      specializeColumns(function, recipe.getHistoryLength());
    }
    return success();
  }
};

} // namespace
} // namespace fp8
