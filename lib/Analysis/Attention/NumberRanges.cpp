// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranges of floats are computed in f64 and widened by the error of their type.

#include "fp8/Analysis/Attention/NumberRanges.h"
#include "fp8/Analysis/Attention/ScalarValues.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace fp8;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Exponentials of lower numbers are zero in f32, even with a hundred units of error: the least positive f32
/// is exp(-103.3). In f64 it is exp(-744.5).
static double getLeastExponent(Type type, bool isBaseTwo) {
  double least = type.isF64() ? -800 : -110;
  return isBaseTwo ? least * 1.45 : least;
}

bool NumberRange::isFinite() const { return std::isfinite(low) && std::isfinite(high) && !hasNaN; }

NumberRange fp8::join(const NumberRange &x, const NumberRange &y) {
  return {std::min(x.low, y.low), std::max(x.high, y.high), x.hasNaN || y.hasNaN};
}

static double getLargest(FloatType type) {
  APFloat largest = APFloat::getLargest(type.getFloatSemantics());
  bool losesInfo;
  largest.convert(APFloat::IEEEdouble(), APFloat::rmTowardZero, &losesInfo);
  return largest.convertToDouble();
}

NumberRange fp8::widen(NumberRange x, Type type) {
  auto floats = dyn_cast<FloatType>(type);
  if (!floats || x.isExactly(0))
    return x;
  const llvm::fltSemantics &semantics = floats.getFloatSemantics();
  double error = std::ldexp(4, -static_cast<int>(APFloat::semanticsPrecision(semantics)));
  double largest = getLargest(floats), least = std::ldexp(1, APFloat::semanticsMinExponent(semantics));
  auto move = [&](double &end, double outward) {
    if (std::isinf(end) || end == 0)
      return;
    end += outward * (std::fabs(end) * error + least);
    if (std::fabs(end) > largest)
      end = end * outward > 0 ? std::copysign(kInfinity, end) : std::copysign(largest, end);
  };
  double low = x.low, high = x.high;
  move(x.low, -1);
  move(x.high, 1);
  if (low >= 0) // roundings keep the sign
    x.low = std::max(x.low, 0.0);
  if (high <= 0)
    x.high = std::min(x.high, 0.0);
  return x;
}

double fp8::limitToType(double number, Type type) {
  return std::min(number, getLargest(cast<FloatType>(type)));
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

NumberRange fp8::add(const NumberRange &x, const NumberRange &y) {
  bool cancels = (x.high == kInfinity && y.low == -kInfinity) || (x.low == -kInfinity && y.high == kInfinity);
  NumberRange sum{x.low + y.low, x.high + y.high, x.hasNaN || y.hasNaN || cancels};
  if (std::isnan(sum.low))
    sum.low = -kInfinity;
  if (std::isnan(sum.high))
    sum.high = kInfinity;
  return sum;
}

NumberRange fp8::negate(const NumberRange &x) { return {-x.high, -x.low, x.hasNaN}; }

NumberRange fp8::multiply(const NumberRange &x, const NumberRange &y) {
  auto hasZero = [](const NumberRange &range) { return range.low <= 0 && range.high >= 0; };
  auto hasInfinity = [](const NumberRange &range) { return std::isinf(range.low) || std::isinf(range.high); };
  bool isUndefined = (hasZero(x) && hasInfinity(y)) || (hasZero(y) && hasInfinity(x));
  NumberRange product{kInfinity, -kInfinity, x.hasNaN || y.hasNaN || isUndefined};
  for (double a : {x.low, x.high})
    for (double b : {y.low, y.high}) {
      double corner = a == 0 || b == 0 ? 0 : a * b;
      product.low = std::min(product.low, corner);
      product.high = std::max(product.high, corner);
    }
  return product;
}

static NumberRange divide(const NumberRange &x, const NumberRange &y) {
  if (y.low <= 0 && y.high >= 0)
    return NumberRange::unknown();
  NumberRange inverse{1 / y.high, 1 / y.low, y.hasNaN};
  bool isUndefined =
      std::isinf(x.low) || std::isinf(x.high) ? std::isinf(y.low) || std::isinf(y.high) : false;
  NumberRange quotient = multiply(x, inverse);
  quotient.hasNaN |= isUndefined;
  return quotient;
}

static NumberRange computeExp(const NumberRange &x, Type type, bool isBaseTwo) {
  double least = getLeastExponent(type, isBaseTwo);
  auto compute = [&](double number) {
    return number < least ? 0 : isBaseTwo ? std::exp2(number) : std::exp(number);
  };
  return {compute(x.low), compute(x.high), x.hasNaN};
}

static NumberRange computeLog(const NumberRange &x) {
  if (x.low < 0)
    return NumberRange::unknown();
  return {std::log(x.low), std::log(x.high), x.hasNaN};
}

/// Returns the range of a function of one number that does not fall.
static std::optional<NumberRange> computeRising(Operation *op, const NumberRange &x) {
  // Numbers beyond an FP8 type saturate in some casts and are NaN in others.
  if (isa<arith::TruncFOp>(op) && getElementTypeOrSelf(op->getResult(0)).getIntOrFloatBitWidth() <= 8)
    return std::nullopt;
  ScalarValue low = x.low, high = x.high;
  if (!isa<arith::ExtFOp, arith::TruncFOp, math::TanhOp, math::ErfOp, math::FloorOp, math::CeilOp,
           math::ExpM1Op>(op))
    return std::nullopt;
  std::optional<ScalarValue> least = computeScalar(op, low, Rounding::none),
                             most = computeScalar(op, high, Rounding::none);
  if (!least || !most)
    return std::nullopt;
  return NumberRange{std::get<double>(*least), std::get<double>(*most), x.hasNaN};
}

/// Returns the range of powers of a positive number, with 2^-10 of it for the error of implementations, which
/// grows with the exponent, and zero where they may flush it; unknown if the base is not one positive number.
static NumberRange computePower(const NumberRange &base, const NumberRange &exponent) {
  if (base.low != base.high || base.hasNaN || exponent.hasNaN || !(base.low > 0) || std::isinf(base.low))
    return NumberRange::unknown();
  double x = std::pow(base.low, exponent.low), y = std::pow(base.low, exponent.high);
  double least = std::min(x, y), most = std::max(x, y);
  return {least < 0x1p-100 ? 0 : least * (1 - 0x1p-10), most * (1 + 0x1p-10)};
}

std::optional<NumberRange> fp8::computeFloat(Operation *op, ArrayRef<NumberRange> x) {
  using Result = std::optional<NumberRange>;
  Type type = op->getResult(0).getType();
  type = getElementTypeOrSelf(type);
  auto least = [](const NumberRange &a, const NumberRange &b) {
    return NumberRange{std::min(a.low, b.low), std::min(a.high, b.high), a.hasNaN || b.hasNaN};
  };
  // The other number where one is NaN.
  auto orOther = [&](NumberRange range) {
    for (unsigned i : {0, 1})
      if (x[i].hasNaN)
        range = join(range, x[1 - i]);
    return range;
  };
  return TypeSwitch<Operation *, Result>(op)
      .Case<arith::NegFOp>([&](auto) { return negate(x[0]); })
      .Case<arith::AddFOp>([&](auto) { return widen(add(x[0], x[1]), type); })
      .Case<arith::SubFOp>([&](auto) { return widen(add(x[0], negate(x[1])), type); })
      .Case<arith::MulFOp>([&](auto) { return widen(multiply(x[0], x[1]), type); })
      .Case<arith::DivFOp>([&](auto) { return widen(divide(x[0], x[1]), type); })
      .Case<arith::MinimumFOp>([&](auto) { return least(x[0], x[1]); })
      .Case<arith::MinNumFOp>([&](auto) { return orOther(least(x[0], x[1])); })
      .Case<arith::MaximumFOp>([&](auto) { return negate(least(negate(x[0]), negate(x[1]))); })
      .Case<arith::MaxNumFOp>([&](auto) { return orOther(negate(least(negate(x[0]), negate(x[1])))); })
      .Case<math::AbsFOp>([&](auto) {
        NumberRange y = negate(x[0]);
        double low = std::max({x[0].low, y.low, 0.0});
        return NumberRange{low, std::max(x[0].high, y.high), x[0].hasNaN};
      })
      .Case<math::ExpOp>([&](auto) { return widen(computeExp(x[0], type, false), type); })
      .Case<math::Exp2Op>([&](auto) { return widen(computeExp(x[0], type, true), type); })
      .Case<math::LogOp>([&](auto) { return widen(computeLog(x[0]), type); })
      .Case<math::PowFOp>([&](auto) { return widen(computePower(x[0], x[1]), type); })
      .Default([&](Operation *other) -> Result {
        if (x.size() != 1)
          return std::nullopt;
        Result rising = computeRising(other, x[0]);
        return rising ? Result(isa<arith::ExtFOp>(other) ? *rising : widen(*rising, type)) : rising;
      });
}

NumberRange fp8::compareFloats(arith::CmpFPredicate predicate, const NumberRange &x, const NumberRange &y,
                               bool isSame) {
  using Predicate = arith::CmpFPredicate;
  if (x.hasNaN || y.hasNaN)
    return NumberRange::anyBit();
  auto bit = [](bool isTrue, bool isFalse) { return NumberRange{isTrue ? 1.0 : 0.0, isFalse ? 0.0 : 1.0}; };
  bool isEqual = isSame || (x.low == x.high && x.low == y.low && y.low == y.high);
  bool isLess = x.high<y.low, isMore = x.low> y.high;
  switch (predicate) {
  case Predicate::OEQ:
  case Predicate::UEQ:
    return bit(isEqual, isLess || isMore);
  case Predicate::ONE:
  case Predicate::UNE:
    return bit(isLess || isMore, isEqual);
  case Predicate::OLT:
  case Predicate::ULT:
    return bit(isLess, isSame || x.low >= y.high);
  case Predicate::OLE:
  case Predicate::ULE:
    return bit(isSame || x.high <= y.low, isMore);
  case Predicate::OGT:
  case Predicate::UGT:
    return compareFloats(Predicate::OLT, y, x, isSame);
  case Predicate::OGE:
  case Predicate::UGE:
    return compareFloats(Predicate::OLE, y, x, isSame);
  case Predicate::ORD:
  case Predicate::AlwaysTrue:
    return {1, 1};
  case Predicate::UNO:
  case Predicate::AlwaysFalse:
    return {0, 0};
  }
  llvm_unreachable("all predicates are handled");
}
