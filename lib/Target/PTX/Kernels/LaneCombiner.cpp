// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions by one operation: each lane starts with its neutral element.

#include "LaneReduction.h"
#include "LaneTeam.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fp8;

void fp8::dropOverflowFlags(Operation *combiner) {
  if (auto op = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(combiner))
    combiner->setAttr(
        op.getIntegerOverflowAttrName(),
        arith::IntegerOverflowFlagsAttr::get(combiner->getContext(), arith::IntegerOverflowFlags::none));
}

static bool isNarrowFloat(Type type) { return type.isBF16() || type.isF16(); }

namespace {
class Combiner : public LaneReduction {
public:
  Combiner(Operation *op, Value before)
      : op(op), before(before), loc(op->getLoc()), name(op->getName().getIdentifier()),
        attributes(op->getAttrDictionary()), type(before.getType()),
        isNarrowSum(isa<arith::AddFOp>(op) && isNarrowFloat(type)),
        carriedType(isNarrowSum ? Float32Type::get(op->getContext()) : type) {}

  bool startsWithInitial() const override { return false; }
  SmallVector<Value> buildStart(OpBuilder &b, ValueRange initial) override;
  SmallVector<Value> rewriteBody(OpBuilder &b, ValueRange carried, Value iteration) override;
  SmallVector<Value> combine(OpBuilder &b, ValueRange mine, ValueRange others) override;
  SmallVector<Value> buildResult(OpBuilder &b, ValueRange initial, ValueRange combined) override;

private:
  Value build(OpBuilder &b, Value lhs, Value rhs);
  Value widen(OpBuilder &b, Value value);

  Operation *op;
  Value before;
  // The operation that combines two values, kept in parts because rewriteBody may erase `op`.
  Location loc;
  StringAttr name;
  DictionaryAttr attributes;
  Type type;
  bool isNarrowSum; ///< a sum of bf16 or f16, which is taken in f32
  Type carriedType;
};
} // namespace

Value Combiner::build(OpBuilder &b, Value lhs, Value rhs) {
  return b.create(loc, name, {lhs, rhs}, carriedType, attributes.getValue())->getResult(0);
}

Value Combiner::widen(OpBuilder &b, Value value) {
  return isNarrowSum ? arith::ExtFOp::create(b, loc, carriedType, value).getResult() : value;
}

SmallVector<Value> Combiner::buildStart(OpBuilder &b, ValueRange /*initial*/) {
  TypedAttr neutral = isNarrowSum ? TypedAttr(b.getF32FloatAttr(0)) : *arith::getNeutralElement(op);
  return {arith::ConstantOp::create(b, loc, neutral)};
}

SmallVector<Value> Combiner::rewriteBody(OpBuilder &b, ValueRange carried, Value /*iteration*/) {
  if (!isNarrowSum) {
    before.replaceAllUsesWith(carried[0]);
    return {op->getResult(0)};
  }
  Value added = op->getOperand(op->getOperand(0) == before ? 1 : 0);
  op->erase();
  return {build(b, carried[0], widen(b, added))};
}

SmallVector<Value> Combiner::combine(OpBuilder &b, ValueRange mine, ValueRange others) {
  return {build(b, mine[0], others[0])};
}

SmallVector<Value> Combiner::buildResult(OpBuilder &b, ValueRange initial, ValueRange combined) {
  Value result = build(b, widen(b, initial[0]), combined[0]);
  return {isNarrowSum ? arith::TruncFOp::create(b, loc, type, result).getResult() : result};
}

std::unique_ptr<LaneReduction> fp8::matchCombiner(Value before, Value after) {
  Operation *op = after.getDefiningOp();
  if (!op || op->getNumResults() != 1 || !op->hasOneUse() || !before.hasOneUse() ||
      *before.getUsers().begin() != op || !arith::getNeutralElement(op) || !isLaneType(after.getType()))
    return nullptr;
  // A product of bf16 is rounded after each factor, in their order.
  if (isa<arith::MulFOp>(op) && isNarrowFloat(after.getType()))
    return nullptr;
  dropOverflowFlags(op);
  return std::make_unique<Combiner>(op, before);
}
