// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranges of integers. Indices of rows and keys are bounded together, by their difference.

#include "fp8/Analysis/Attention/RangeEvaluator.h"
#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace fp8;
using Kind = CodeNode::Kind;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

ScoreArea RangeEvaluator::everywhere() const {
  int64_t size = code.getSizes()[key];
  return {{0, ShapedType::isDynamic(size) ? kMostIndices : static_cast<double>(size) - 1},
          {-kMostIndices, kMostIndices}};
}

/// Returns the range of `factor` times a number in `x`.
static NumberRange scale(double factor, const NumberRange &x) { return multiply({factor, factor}, x); }

static NumberRange intersect(const NumberRange &x, const NumberRange &y) {
  return {std::max(x.low, y.low), std::min(x.high, y.high)};
}

/// The parts of the row and the key are bounded together, as by their difference and one of both.
NumberRange RangeEvaluator::getIndexRange(AffineExpr expr, const ScoreArea &area) const {
  auto rangeOf = [&](unsigned dim) -> NumberRange {
    if (dim == key)
      return area.key;
    int64_t size = code.getSizes()[dim];
    return {0, ShapedType::isDynamic(size) ? kMostIndices : static_cast<double>(size) - 1};
  };
  unsigned count = code.getSizes().size();
  SmallVector<int64_t> factors;
  if (failed(getFlattenedAffineExpr(expr, count, 0, &factors)) || factors.size() != count + 1)
    return {-kInfinity, kInfinity};
  NumberRange rest{static_cast<double>(factors.back()), static_cast<double>(factors.back())};
  for (unsigned dim = 0; dim < count; ++dim)
    if (dim != row && dim != key)
      rest = add(rest, scale(factors[dim], rangeOf(dim)));
  double ofRow = factors[row], ofKey = factors[key];
  NumberRange both = add(scale(ofRow, rangeOf(row)), scale(ofKey, area.key));
  both = intersect(both, add(scale(ofRow + ofKey, rangeOf(row)), scale(ofKey, area.difference)));
  both = intersect(both, add(scale(ofRow + ofKey, area.key), scale(-ofRow, area.difference)));
  return add(rest, both);
}

/// Returns the comparison of floats that is that of integers.
static arith::CmpFPredicate toFloats(arith::CmpIPredicate predicate) {
  using Integers = arith::CmpIPredicate;
  using Floats = arith::CmpFPredicate;
  switch (predicate) {
  case Integers::eq:
    return Floats::OEQ;
  case Integers::ne:
    return Floats::ONE;
  case Integers::slt:
  case Integers::ult:
    return Floats::OLT;
  case Integers::sle:
  case Integers::ule:
    return Floats::OLE;
  case Integers::sgt:
  case Integers::ugt:
    return Floats::OGT;
  case Integers::sge:
  case Integers::uge:
    return Floats::OGE;
  }
  llvm_unreachable("all predicates are handled");
}

/// Returns whether two nodes have the same value on the area: the same code, of the same elements.
bool RangeEvaluator::areSame(const CodeNode *x, const CodeNode *y, const ScoreArea &area) const {
  if (x == y)
    return true;
  if (x->kind != y->kind || x->type != y->type || x->constant != y->constant || x->accumulates ||
      y->accumulates || x->kind == Kind::reduction || x->operands.size() != y->operands.size() ||
      x->at.size() != y->at.size())
    return false;
  bool isSameCode = x->value == y->value;
  if (Operation *op = x->getOperation())
    isSameCode = op->getName() == y->getOperation()->getName() &&
                 op->getAttrDictionary() == y->getOperation()->getAttrDictionary();
  return isSameCode &&
         llvm::all_of(llvm::zip_equal(x->operands, y->operands),
                      [&](auto pair) { return areSame(std::get<0>(pair), std::get<1>(pair), area); }) &&
         llvm::all_of(llvm::zip_equal(x->at, y->at), [&](auto pair) {
           return getIndexRange(std::get<0>(pair) - std::get<1>(pair), area).isExactly(0);
         });
}

NumberRange RangeEvaluator::compareIntegers(const CodeNode *node, const ScoreArea &area) {
  using Predicate = arith::CmpIPredicate;
  NumberRange x = compute(node->operands[0], area), y = compute(node->operands[1], area);
  Predicate predicate = cast<arith::CmpIOp>(node->getOperation()).getPredicate();
  if (areSame(node->operands[0], node->operands[1], area))
    return compareFloats(toFloats(predicate), {0, 0}, {0, 0}, /*isSame=*/true);
  bool isUnsigned =
      llvm::is_contained({Predicate::ult, Predicate::ule, Predicate::ugt, Predicate::uge}, predicate);
  if (x.hasNaN || y.hasNaN || (isUnsigned && (x.low < 0 || y.low < 0)))
    return NumberRange::anyBit();
  AffineExpr lhs = code.toIndex(node->operands[0]), rhs = code.toIndex(node->operands[1]);
  if (lhs && rhs) { // whose difference says more
    x = getIndexRange(lhs - rhs, area);
    y = {0, 0};
  }
  return compareFloats(toFloats(predicate), x, y, /*isSame=*/false);
}

/// Returns the range of an integer; unknown if it is not that of an index, a distance or one of both.
NumberRange RangeEvaluator::computeInteger(const CodeNode *node, ArrayRef<NumberRange> x,
                                           const ScoreArea &area) {
  if (AffineExpr index = code.toIndex(node))
    return getIndexRange(index, area);
  Operation *op = node->getOperation();
  if (!isa<arith::MaxSIOp, arith::MinSIOp, math::AbsIOp>(op) ||
      llvm::any_of(x, [](const NumberRange &range) { return range.hasNaN; }))
    return NumberRange::unknown();
  if (isa<arith::MaxSIOp>(op))
    return {std::max(x[0].low, x[1].low), std::max(x[0].high, x[1].high)};
  if (isa<arith::MinSIOp>(op))
    return {std::min(x[0].low, x[1].low), std::min(x[0].high, x[1].high)};
  NumberRange negative = negate(x[0]);
  return {std::max({0.0, x[0].low, negative.low}), std::max(x[0].high, negative.high)};
}
