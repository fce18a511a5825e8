// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranges of the nodes of code on elements.

#include "fp8/Analysis/Attention/RangeEvaluator.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace fp8;
using Kind = CodeNode::Kind;

/// 1 and what the exponential of zero may be off.
static constexpr double kLeastSoftmaxSum = 0.9;

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

const CodeNode *RangeEvaluator::getAddend(const CodeNode *reduction) {
  const CodeNode *body = reduction->operands[1];
  if (body->operands.size() != 2)
    return nullptr;
  auto isAccumulator = [](const CodeNode *node) { return node->kind == Kind::accumulator; };
  if (isAccumulator(body->operands[0]) == isAccumulator(body->operands[1]))
    return nullptr;
  const CodeNode *addend = body->operands[isAccumulator(body->operands[0])];
  return addend->accumulates ? nullptr : addend;
}

static bool isMaximum(const CodeNode *reduction) {
  return reduction->kind == Kind::reduction &&
         isa_and_nonnull<arith::MaximumFOp, arith::MaxNumFOp>(reduction->operands[1]->getOperation());
}

/// Returns the operand that a selection or a maximum of two numbers is known to be; null if it is not known.
const CodeNode *RangeEvaluator::findChosen(const CodeNode *node) {
  if (node->kind == Kind::selection || isa_and_nonnull<arith::SelectOp>(node->getOperation())) {
    NumberRange condition = compute(node->operands[0], everywhere());
    bool isKnown = condition.isExactly(0) || condition.isExactly(1);
    return isKnown ? node->operands[condition.isExactly(1) ? 1 : 2] : nullptr;
  }
  if (!isa_and_nonnull<arith::MaximumFOp, arith::MaxNumFOp>(node->getOperation()))
    return nullptr;
  NumberRange x = compute(node->operands[0], everywhere()), y = compute(node->operands[1], everywhere());
  if (x.hasNaN || y.hasNaN)
    return nullptr;
  return x.high <= y.low ? node->operands[1] : y.high <= x.low ? node->operands[0] : nullptr;
}

/// Looks through casts to wider types, and through choices between two values that are known.
const CodeNode *RangeEvaluator::skip(const CodeNode *node) {
  while (true) {
    const CodeNode *inner =
        isa_and_nonnull<arith::ExtFOp>(node->getOperation()) ? node->operands[0] : findChosen(node);
    if (!inner)
      return node;
    node = inner;
  }
}

/// Adds the numbers that `node` is the maximum of: that of each key, and numbers of the row, as a sink.
void RangeEvaluator::collectMaximum(const CodeNode *node, SmallVectorImpl<const CodeNode *> &parts) {
  node = skip(node);
  if (isMaximum(node) && node->bound == ArrayRef(key) && getAddend(node)) {
    parts.push_back(skip(getAddend(node)));
    collectMaximum(node->operands[0], parts);
  } else if (isa_and_nonnull<arith::MaximumFOp, arith::MaxNumFOp>(node->getOperation())) {
    collectMaximum(node->operands[0], parts);
    collectMaximum(node->operands[1], parts);
  } else {
    parts.push_back(node);
  }
}

/// Adds the numbers that `node` is the sum of, as for maxima.
void RangeEvaluator::collectSum(const CodeNode *node, SmallVectorImpl<const CodeNode *> &parts) {
  node = skip(node);
  bool isSum = node->kind == Kind::reduction && node->bound == ArrayRef(key) && getAddend(node) &&
               isa_and_nonnull<arith::AddFOp>(node->operands[1]->getOperation());
  if (isSum) {
    parts.push_back(skip(getAddend(node)));
    collectSum(node->operands[0], parts);
  } else if (isa_and_nonnull<arith::AddFOp>(node->getOperation())) {
    collectSum(node->operands[0], parts);
    collectSum(node->operands[1], parts);
  } else if (!compute(node, everywhere()).isExactly(0)) {
    parts.push_back(node);
  }
}

/// Returns, of a number less the maximum of such numbers in the row, the number, and sets `top` to the
/// maximum; null if `node` is no such difference.
const CodeNode *RangeEvaluator::findBelowMaximum(const CodeNode *node, const CodeNode *&top) {
  SmallVector<const CodeNode *> parts;
  bool isNegation = isa_and_nonnull<arith::NegFOp>(node->getOperation()); // 0 less the maximum
  if (!isNegation && !isa_and_nonnull<arith::SubFOp>(node->getOperation()))
    return nullptr;
  top = skip(node->operands.back());
  collectMaximum(top, parts);
  auto *number = llvm::find_if(parts, [&](const CodeNode *part) {
    return isNegation ? compute(part, everywhere()).isExactly(0) : part == skip(node->operands[0]);
  });
  return number == parts.end() ? nullptr : *number;
}

/// Returns whether `node` is the sum of the exponentials of numbers less their maximum: that of the maximum
/// is 1.
bool RangeEvaluator::isSoftmaxSum(const CodeNode *node) {
  SmallVector<const CodeNode *> addends, covered, parts;
  collectSum(node, addends);
  const CodeNode *top = nullptr;
  for (const CodeNode *addend : addends) {
    const CodeNode *argument = isa_and_nonnull<math::ExpOp, math::Exp2Op>(addend->getOperation())
                                   ? skip(addend->operands[0])
                                   : nullptr;
    const CodeNode *own = nullptr, *number = argument ? findBelowMaximum(argument, own) : nullptr;
    if (!number || (top && top != own))
      return false;
    top = own;
    covered.push_back(number);
  }
  if (!top)
    return false;
  collectMaximum(top, parts);
  // A part without an exponential, such as what the maximum begins with, must not be above all others.
  auto isAtLeast = [&](const CodeNode *part, double number) {
    auto isAbove = [&](const ScoreArea &area) {
      NumberRange range = compute(part, area);
      return !range.hasNaN && number <= range.low;
    };
    return isAbove(everywhere()) || (part->isFunctionOf(key) && llvm::any_of(seen, isAbove));
  };
  return llvm::all_of(parts, [&](const CodeNode *part) {
    NumberRange range = compute(part, everywhere());
    return llvm::is_contained(covered, part) ||
           (!range.hasNaN &&
            llvm::any_of(covered, [&](const CodeNode *other) { return isAtLeast(other, range.high); }));
  });
}

NumberRange RangeEvaluator::reduce(const CodeNode *node) {
  const CodeNode *addend = getAddend(node);
  if (!addend || node->bound.size() != 1)
    return NumberRange::unknown();
  ScoreArea all = everywhere();
  unsigned bound = node->bound.front();
  NumberRange start = compute(node->operands[0], all), each = compute(addend, all);
  int64_t size = code.getSizes()[bound];
  double count = ShapedType::isDynamic(size) ? kMostIndices : static_cast<double>(size);
  Operation *combiner = node->operands[1]->getOperation();
  bool isAny = isa_and_nonnull<arith::OrIOp>(combiner) && node->type.isInteger(1);
  bool isAll = isa_and_nonnull<arith::AndIOp>(combiner) && node->type.isInteger(1);
  if (isMaximum(node) || isAny || isAll) {
    // Of one key each row has the value in an area that is seen.
    NumberRange result = join(start, each);
    result.low = isAll ? result.low : start.low;
    result.high = isAll ? start.high : result.high;
    for (const ScoreArea &area : seen) {
      NumberRange known = bound == key ? compute(addend, area) : each;
      if (known.hasNaN)
        continue;
      result.low = isAll ? result.low : std::max(result.low, known.low);
      result.high = isAll ? std::min(result.high, known.high) : result.high;
    }
    return result;
  }
  if (!isa_and_nonnull<arith::AddFOp>(combiner) || !each.isFinite())
    return NumberRange::unknown();
  // The error of adding many numbers grows with their number, and stays below the sum of their magnitudes.
  NumberRange sum = widen(
      add(start, {2 * count * std::min(each.low, 0.0), 2 * count * std::max(each.high, 0.0)}), node->type);
  if (each.low >= 0 && isSoftmaxSum(node))
    sum.low = std::max(sum.low, kLeastSoftmaxSum);
  return sum;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

static NumberRange select(const NumberRange &condition, const NumberRange &yes, const NumberRange &no) {
  return condition.isExactly(1) ? yes : condition.isExactly(0) ? no : join(yes, no);
}

NumberRange RangeEvaluator::visitOperation(const CodeNode *node, const ScoreArea &area) {
  Operation *op = node->getOperation();
  if (isa<arith::CmpIOp>(op))
    return compareIntegers(node, area);
  SmallVector<NumberRange> x =
      llvm::map_to_vector(node->operands, [&](const CodeNode *operand) { return compute(operand, area); });
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return compareFloats(compare.getPredicate(), x[0], x[1], node->operands[0] == node->operands[1]);
  if (isa<arith::SelectOp>(op))
    return select(x[0], x[1], x[2]);
  if (node->type.isInteger(1) && isa<arith::AndIOp>(op))
    return {std::min(x[0].low, x[1].low), std::min(x[0].high, x[1].high)};
  if (node->type.isInteger(1) && isa<arith::OrIOp>(op))
    return {std::max(x[0].low, x[1].low), std::max(x[0].high, x[1].high)};
  if (node->type.isInteger(1) && isa<arith::XOrIOp>(op))
    return x[1].isExactly(1) ? add({1, 1}, negate(x[0])) : x[1].isExactly(0) ? x[0] : NumberRange::anyBit();
  if (isa<arith::UIToFPOp, arith::ExtUIOp>(op) && node->operands[0]->type.isInteger(1))
    return x[0];
  if (isa<arith::SIToFPOp>(op) && !x[0].hasNaN && !node->operands[0]->type.isInteger(1))
    return widen(x[0], node->type);
  if (isa<FloatType>(node->type))
    if (std::optional<NumberRange> range = computeFloat(op, x)) {
      if (const CodeNode *top = nullptr; findBelowMaximum(node, top))
        range->high = std::min(range->high, 0.0);
      if (isa<arith::AddFOp>(op) && range->low < kLeastSoftmaxSum && isSoftmaxSum(node))
        range->low = kLeastSoftmaxSum;
      return *range;
    }
  return isa<IntegerType, IndexType>(node->type) && !node->type.isInteger(1) ? computeInteger(node, x, area)
                                                                             : NumberRange::unknown();
}

bool RangeEvaluator::isIndependent(const CodeNode *node) {
  if (auto known = independent.find(node); known != independent.end())
    return known->second;
  bool isRaw = llvm::any_of(raw, [&](const auto &entry) {
    return node->kind == Kind::element && node->value == entry.first->value;
  });
  bool result =
      !isRaw && llvm::all_of(node->operands, [&](const CodeNode *operand) { return isIndependent(operand); });
  return independent[node] = result;
}

/// Returns whether a call can measure floats of a type: `buildMagnitude` can.
static bool canBound(Type type) { return isa<FloatType>(type) && type.getIntOrFloatBitWidth() <= 32; }

/// Takes the floats of a tensor to be bounded.
NumberRange RangeEvaluator::bound(const CodeNode *node, Value tensor) {
  bounded.insert(tensor);
  double most = limitToType(kMostScore, node->type);
  return {-most, most};
}

NumberRange RangeEvaluator::visit(const CodeNode *node, const ScoreArea &area) {
  for (auto &[element, range] : raw)
    if (node->kind == Kind::element && node->value == element->value)
      return range;
  if (auto found = truths.find(node); found != truths.end()) {
    auto [value, isOfFirst] = found->second;
    if (!isOfFirst || area.key.isExactly(0))
      return {double(value), double(value)};
  }
  switch (node->kind) {
  case Kind::index:
    return getIndexRange(node->at[0], area);
  case Kind::constant:
  case Kind::element: {
    std::optional<ScalarValue> number;
    if (Attribute constant = node->constant; constant || matchPattern(node->value, m_Constant(&constant)))
      number = getScalarValue(constant);
    if (number && std::holds_alternative<APInt>(*number) &&
        std::get<APInt>(*number).getSignificantBits() > 63)
      number.reset();
    if (!number && boundsInputs && isa<FloatType>(node->type) && isa<RankedTensorType>(node->value.getType()))
      return bound(node, node->value);
    if (!number)
      return node->type.isInteger(1) ? NumberRange::anyBit() : NumberRange::unknown();
    double value = std::holds_alternative<double>(*number) ? std::get<double>(*number)
                   : node->type.isInteger(1) ? static_cast<double>(std::get<APInt>(*number).getZExtValue())
                                             : static_cast<double>(std::get<APInt>(*number).getSExtValue());
    return std::isnan(value) ? NumberRange::unknown() : NumberRange{value, value};
  }
  case Kind::selection:
    return select(compute(node->operands[0], area), compute(node->operands[1], area),
                  compute(node->operands[2], area));
  case Kind::reduction:
    return reduce(node);
  case Kind::accumulator:
    return NumberRange::unknown();
  case Kind::operation:
    return visitOperation(node, area);
  }
  llvm_unreachable("all kinds are handled");
}

NumberRange RangeEvaluator::compute(const CodeNode *node, const ScoreArea &area) {
  std::tuple place{node, area.key.low, area.key.high, area.difference.low, area.difference.high};
  if (auto found = known.find(place); found != known.end())
    return found->second;
  NumberRange range = visit(node, area);
  // Numbers of keys that the program computes from its inputs, as slopes times positions: a bias, too.
  bool isBias = canBound(node->type) && node->tensor && !node->accumulates &&
                !(node->isFunctionOf(row) && node->isFunctionOf(key)) && isIndependent(node);
  if (range.hasNaN && boundsInputs && isBias)
    range = bound(node, node->tensor);
  known.emplace(place, range);
  return range;
}
