// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives signed and unsigned integers signless types. Upstream's arithmetic works on signless
// integers only, so exported programs cast between the types, and upstream can neither bufferize
// these casts nor fold them across loops.

#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_MAKESIGNLESS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// Marks unsigned arguments and results, whose types will be signless.
void markUnsigned(func::FuncOp function) {
  UnitAttr mark = UnitAttr::get(function.getContext());
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    if (getElementTypeOrSelf(type).isUnsignedInteger())
      function.setArgAttr(i, kUnsignedAttrName, mark);
  for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
    if (getElementTypeOrSelf(type).isUnsignedInteger())
      function.setResultAttr(i, kUnsignedAttrName, mark);
}

class MakeSignless : public impl::MakeSignlessBase<MakeSignless> {
public:
  void runOnOperation() final {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function.isPublic())
        markUnsigned(function);
    replaceTypes();
    // Casts that only changed signedness have equal operand and result types now.
    getOperation().walk([](Operation *op) {
      bool isCast = isa<UnrealizedConversionCastOp, tensor::BitcastOp>(op);
      if (!isCast || op->getOperandTypes() != op->getResultTypes())
        return;
      op->replaceAllUsesWith(op->getOperands());
      op->erase();
    });
  }

private:
  void replaceTypes() {
    AttrTypeReplacer replacer;
    replacer.addReplacement(
        [](IntegerType type) { return IntegerType::get(type.getContext(), type.getWidth()); });
    replacer.addReplacement([&](DenseIntElementsAttr elements) -> std::pair<Attribute, WalkResult> {
      auto type = cast<IntegerType>(elements.getElementType());
      if (type.isSignless())
        return {elements, WalkResult::skip()};
      return {elements.bitcast(IntegerType::get(type.getContext(), type.getWidth())), WalkResult::skip()};
    });
    replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true, /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
  }
};

} // namespace
} // namespace fp8
