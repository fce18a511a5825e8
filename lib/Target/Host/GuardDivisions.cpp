// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Processors end the process on a division by zero, or of the least integer by -1. StableHLO leaves
// the result to the implementation; this pass gives it the value that XLA gives.

#include "fp8/Target/Host/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Matchers.h"

namespace fp8 {
#define GEN_PASS_DEF_GUARDDIVISIONS
#include "fp8/Target/Host/Passes.h.inc"
} // namespace fp8

using namespace mlir;

/// Returns whether the divisor is a constant for which every result is defined.
static bool isAlwaysDefined(Value divisor, bool isSigned) {
  APInt constant;
  return matchPattern(divisor, m_ConstantInt(&constant)) && !constant.isZero() &&
         !(isSigned && constant.isAllOnes());
}

static Value makeConstant(OpBuilder &builder, Location loc, Type type, const APInt &value) {
  auto element = builder.getIntegerAttr(getElementTypeOrSelf(type), value);
  Attribute attribute = element;
  if (auto vector = dyn_cast<VectorType>(type))
    attribute = SplatElementsAttr::get(vector, element);
  return LLVM::ConstantOp::create(builder, loc, type, attribute);
}

/// In the undefined cases divides by 1 instead, which gives the result for the least integer divided
/// by -1. If the divisor is 0, then selects -1 for a quotient, or the dividend for a remainder.
static void guard(Operation *op, bool isSigned, bool isRemainder) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  Value dividend = op->getOperand(0), divisor = op->getOperand(1);
  Type type = divisor.getType();
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  auto constant = [&](const APInt &value) { return makeConstant(builder, loc, type, value); };
  auto isEqual = [&](Value a, const APInt &b) -> Value {
    return LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, a, constant(b));
  };
  Value isZero = isEqual(divisor, APInt::getZero(width)), replaced = isZero;
  if (isSigned) {
    Value overflows = LLVM::AndOp::create(builder, loc, isEqual(dividend, APInt::getSignedMinValue(width)),
                                          isEqual(divisor, APInt::getAllOnes(width)));
    replaced = LLVM::OrOp::create(builder, loc, isZero, overflows);
  }
  op->setOperand(1, LLVM::SelectOp::create(builder, loc, replaced, constant(APInt(width, 1)), divisor));
  builder.setInsertionPointAfter(op);
  Value undefined = isRemainder ? dividend : constant(APInt::getAllOnes(width));
  auto chosen = LLVM::SelectOp::create(builder, loc, isZero, undefined, op->getResult(0));
  op->getResult(0).replaceAllUsesExcept(chosen, chosen);
}

namespace {
struct GuardDivisionsPass : public fp8::impl::GuardDivisionsBase<GuardDivisionsPass> {
  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      bool isSigned = isa<LLVM::SDivOp, LLVM::SRemOp>(op);
      if ((isSigned || isa<LLVM::UDivOp, LLVM::URemOp>(op)) && !isAlwaysDefined(op->getOperand(1), isSigned))
        guard(op, isSigned, isa<LLVM::SRemOp, LLVM::URemOp>(op));
    });
  }
};
} // namespace
