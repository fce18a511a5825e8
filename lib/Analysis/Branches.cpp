// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads the selectors and the yielded values of branches.

#include "fp8/Analysis/Branches.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp8;

/// Returns the bit that `bit` negates, any number of times, and sets `negated` if the number is odd.
static Value stripNegations(Value bit, bool &negated) {
  while (auto exclusive = bit.getDefiningOp<arith::XOrIOp>()) {
    if (!matchPattern(exclusive.getRhs(), m_One()))
      break;
    negated = !negated;
    bit = exclusive.getLhs();
  }
  return bit;
}

/// Returns the condition of an scf.if, or of an arith.select by one bit; null for other operations.
static Value getCondition(Operation *op) {
  if (auto branch = dyn_cast_if_present<scf::IfOp>(op))
    return branch.getCondition();
  auto select = dyn_cast_if_present<arith::SelectOp>(op);
  return select && select.getCondition().getType().isInteger(1) ? select.getCondition() : Value();
}

std::optional<SelectorValue> fp8::getSelectorValue(Region &region) {
  Operation *op = region.getParentOp();
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    bool negated = false;
    Value bit = stripNegations(branch.getCondition(), negated);
    return SelectorValue{bit, (&region == &branch.getThenRegion()) != negated};
  }
  auto branch = dyn_cast<scf::IndexSwitchOp>(op);
  if (!branch)
    return std::nullopt;
  if (&region == &branch.getDefaultRegion())
    return SelectorValue{branch.getArg(), std::nullopt, branch.getCases()};
  return SelectorValue{branch.getArg(), branch.getCases()[region.getRegionNumber() - 1]};
}

Value fp8::getSelector(Operation *op) {
  if (auto branch = dyn_cast_if_present<scf::IndexSwitchOp>(op))
    return branch.getArg();
  bool negated = false;
  Value condition = getCondition(op);
  return condition ? stripNegations(condition, negated) : Value();
}

/// Returns the region of `branch` that runs where the selector is as `known`; null where that is not certain.
static Region *findRegion(scf::IndexSwitchOp branch, const SelectorValue &known) {
  if (!known.number) {
    bool excludesAll = llvm::all_of(
        branch.getCases(), [&](int64_t number) { return llvm::is_contained(known.excluded, number); });
    return excludesAll ? &branch.getDefaultRegion() : nullptr;
  }
  for (auto [number, region] : llvm::zip_equal(branch.getCases(), branch.getCaseRegions()))
    if (number == *known.number)
      return &region;
  return &branch.getDefaultRegion();
}

Value fp8::getYielded(Value value, const SelectorValue &known) {
  Operation *op = value.getDefiningOp();
  unsigned place = cast<OpResult>(value).getResultNumber();
  if (auto branch = dyn_cast<scf::IndexSwitchOp>(op)) {
    Region *region = findRegion(branch, known);
    return region ? region->front().getTerminator()->getOperand(place) : Value();
  }
  if (!known.number)
    return nullptr;
  bool negated = false;
  stripNegations(getCondition(op), negated);
  bool holds = (*known.number != 0) != negated;
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return holds ? select.getTrueValue() : select.getFalseValue();
  auto branch = cast<scf::IfOp>(op);
  return (holds ? branch.thenYield() : branch.elseYield())->getOperand(place);
}
