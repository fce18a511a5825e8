// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Floats are computed in f64 and rounded to their type after each operation. For + - * / and the square root
// that is the correctly rounded result of f32, bf16 and f16, whose significands have less than half of the
// bits of f64's.

#include "fp8/Analysis/Attention/ScalarValues.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace fp8;

static Type elementOf(Value value) { return getElementTypeOrSelf(value.getType()); }

static APFloat toType(double number, FloatType type) {
  APFloat rounded(number);
  bool losesInfo;
  rounded.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
  return rounded;
}

static double toDouble(APFloat number) {
  bool losesInfo;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return number.convertToDouble();
}

std::optional<ScalarValue> fp8::getScalarValue(Attribute attribute) {
  if (auto number = dyn_cast_or_null<FloatAttr>(attribute))
    return toDouble(number.getValue());
  if (auto number = dyn_cast_or_null<IntegerAttr>(attribute))
    return number.getValue();
  if (auto elements = dyn_cast_or_null<DenseElementsAttr>(attribute); elements && elements.isSplat())
    return getScalarValue(elements.getSplatValue<Attribute>());
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

static std::optional<double> computeUnary(Operation *op, double x) {
  using Result = std::optional<double>;
  return TypeSwitch<Operation *, Result>(op)
      .Case<arith::NegFOp>([&](auto) { return -x; })
      .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) { return x; })
      .Case<math::AbsFOp>([&](auto) { return std::fabs(x); })
      .Case<math::CeilOp>([&](auto) { return std::ceil(x); })
      .Case<math::CosOp>([&](auto) { return std::cos(x); })
      .Case<math::ErfOp>([&](auto) { return std::erf(x); })
      .Case<math::ExpOp>([&](auto) { return std::exp(x); })
      .Case<math::Exp2Op>([&](auto) { return std::exp2(x); })
      .Case<math::ExpM1Op>([&](auto) { return std::expm1(x); })
      .Case<math::FloorOp>([&](auto) { return std::floor(x); })
      .Case<math::LogOp>([&](auto) { return std::log(x); })
      .Case<math::Log1pOp>([&](auto) { return std::log1p(x); })
      .Case<math::Log2Op>([&](auto) { return std::log2(x); })
      .Case<math::RoundOp>([&](auto) { return std::round(x); })
      .Case<math::RoundEvenOp>([&](auto) { return std::nearbyint(x); })
      .Case<math::RsqrtOp>([&](auto) { return 1 / std::sqrt(x); })
      .Case<math::SinOp>([&](auto) { return std::sin(x); })
      .Case<math::SqrtOp>([&](auto) { return std::sqrt(x); })
      .Case<math::TanhOp>([&](auto) { return std::tanh(x); })
      .Case<math::TruncOp>([&](auto) { return std::trunc(x); })
      .Default(Result());
}

/// Returns the greater number as IEEE 754's maximum: NaN if one is, and +0 for zeros of both signs.
static double maximum(double x, double y) {
  if (std::isnan(x) || std::isnan(y))
    return x + y;
  return x == y ? (std::signbit(x) ? y : x) : std::fmax(x, y);
}

static std::optional<double> computeBinary(Operation *op, double x, double y) {
  using Result = std::optional<double>;
  return TypeSwitch<Operation *, Result>(op)
      .Case<arith::AddFOp>([&](auto) { return x + y; })
      .Case<arith::SubFOp>([&](auto) { return x - y; })
      .Case<arith::MulFOp>([&](auto) { return x * y; })
      .Case<arith::DivFOp>([&](auto) { return x / y; })
      .Case<arith::RemFOp>([&](auto) { return std::fmod(x, y); })
      .Case<arith::MaximumFOp>([&](auto) { return maximum(x, y); })
      .Case<arith::MinimumFOp>([&](auto) { return -maximum(-x, -y); })
      .Case<arith::MaxNumFOp>([&](auto) { return std::fmax(x, y); })
      .Case<arith::MinNumFOp>([&](auto) { return std::fmin(x, y); })
      .Case<math::CopySignOp>([&](auto) { return std::copysign(x, y); })
      .Case<math::PowFOp>([&](auto) { return std::pow(x, y); })
      .Default(Result());
}

static std::optional<double> computeFloat(Operation *op, ArrayRef<double> x) {
  if (x.size() == 1)
    return computeUnary(op, x[0]);
  if (x.size() == 2)
    return computeBinary(op, x[0], x[1]);
  if (isa<math::FmaOp>(op))
    return elementOf(op->getResult(0)).isF32()
               ? std::fma(static_cast<float>(x[0]), static_cast<float>(x[1]), static_cast<float>(x[2]))
               : std::fma(x[0], x[1], x[2]);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

static std::optional<APInt> divide(Operation *op, const APInt &x, const APInt &y) {
  using Result = std::optional<APInt>;
  if (y.isZero())
    return std::nullopt;
  return TypeSwitch<Operation *, Result>(op)
      .Case<arith::DivSIOp>([&](auto) { return x.sdiv(y); })
      .Case<arith::DivUIOp>([&](auto) { return x.udiv(y); })
      .Case<arith::RemSIOp>([&](auto) { return x.srem(y); })
      .Case<arith::RemUIOp>([&](auto) { return x.urem(y); })
      .Case<arith::FloorDivSIOp>(
          [&](auto) { return llvm::APIntOps::RoundingSDiv(x, y, APInt::Rounding::DOWN); })
      .Case<arith::CeilDivSIOp>([&](auto) { return llvm::APIntOps::RoundingSDiv(x, y, APInt::Rounding::UP); })
      .Case<arith::CeilDivUIOp>([&](auto) { return llvm::APIntOps::RoundingUDiv(x, y, APInt::Rounding::UP); })
      .Default(Result());
}

static std::optional<APInt> computeInteger(Operation *op, const APInt &x, const APInt &y) {
  using Result = std::optional<APInt>;
  return TypeSwitch<Operation *, Result>(op)
      .Case<arith::AddIOp>([&](auto) { return x + y; })
      .Case<arith::SubIOp>([&](auto) { return x - y; })
      .Case<arith::MulIOp>([&](auto) { return x * y; })
      .Case<arith::AndIOp>([&](auto) { return x & y; })
      .Case<arith::OrIOp>([&](auto) { return x | y; })
      .Case<arith::XOrIOp>([&](auto) { return x ^ y; })
      .Case<arith::ShLIOp>([&](auto) { return x.shl(y); })
      .Case<arith::ShRSIOp>([&](auto) { return x.ashr(y); })
      .Case<arith::ShRUIOp>([&](auto) { return x.lshr(y); })
      .Case<arith::MaxSIOp>([&](auto) { return llvm::APIntOps::smax(x, y); })
      .Case<arith::MaxUIOp>([&](auto) { return llvm::APIntOps::umax(x, y); })
      .Case<arith::MinSIOp>([&](auto) { return llvm::APIntOps::smin(x, y); })
      .Case<arith::MinUIOp>([&](auto) { return llvm::APIntOps::umin(x, y); })
      .Case<arith::CmpIOp>(
          [&](arith::CmpIOp cmp) { return APInt(1, arith::applyCmpPredicate(cmp.getPredicate(), x, y)); })
      .Default([&](Operation *other) { return divide(other, x, y); });
}

static unsigned widthOf(Type type) {
  return type.isIndex() ? IndexType::kInternalStorageBitWidth : type.getIntOrFloatBitWidth();
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

static std::optional<ScalarValue> bitcast(const ScalarValue &x, Type from, Type to) {
  APInt bits = std::holds_alternative<APInt>(x)
                   ? std::get<APInt>(x)
                   : toType(std::get<double>(x), cast<FloatType>(from)).bitcastToAPInt();
  if (auto type = dyn_cast<FloatType>(to))
    return toDouble(APFloat(type.getFloatSemantics(), bits));
  return bits;
}

static std::optional<ScalarValue> convert(Operation *op, const ScalarValue &x) {
  using Result = std::optional<ScalarValue>;
  Type from = elementOf(op->getOperand(0)), to = elementOf(op->getResult(0));
  auto integer = [&] { return std::get<APInt>(x); };
  auto truncate = [&](bool isSigned) -> Result {
    llvm::APSInt result(widthOf(to), !isSigned);
    bool isExact;
    if (APFloat(std::get<double>(x)).convertToInteger(result, APFloat::rmTowardZero, &isExact) &
        APFloat::opInvalidOp)
      return std::nullopt;
    return APInt(result);
  };
  return TypeSwitch<Operation *, Result>(op)
      .Case<arith::BitcastOp>([&](auto) { return bitcast(x, from, to); })
      .Case<arith::SIToFPOp>([&](auto) { return integer().signedRoundToDouble(); })
      .Case<arith::UIToFPOp>([&](auto) { return integer().roundToDouble(); })
      .Case<arith::FPToSIOp>([&](auto) { return truncate(/*isSigned=*/true); })
      .Case<arith::FPToUIOp>([&](auto) { return truncate(/*isSigned=*/false); })
      .Case<arith::ExtSIOp, arith::IndexCastOp>([&](auto) { return integer().sextOrTrunc(widthOf(to)); })
      .Case<arith::ExtUIOp, arith::TruncIOp, arith::IndexCastUIOp>(
          [&](auto) { return integer().zextOrTrunc(widthOf(to)); })
      .Default(Result());
}

//===----------------------------------------------------------------------===//
// All operations
//===----------------------------------------------------------------------===//

static std::optional<ScalarValue> compute(Operation *op, ArrayRef<ScalarValue> operands) {
  if (isa<arith::SelectOp>(op))
    return std::get<APInt>(operands[0]).isZero() ? operands[2] : operands[1];
  bool areFloats =
      llvm::all_of(operands, [](const ScalarValue &x) { return std::holds_alternative<double>(x); });
  bool areIntegers =
      llvm::all_of(operands, [](const ScalarValue &x) { return std::holds_alternative<APInt>(x); });
  if (operands.size() == 1)
    if (std::optional<ScalarValue> converted = convert(op, operands[0]))
      return converted;
  if (areFloats) {
    auto numbers = llvm::map_to_vector(operands, [](const ScalarValue &x) { return std::get<double>(x); });
    if (auto cmp = dyn_cast<arith::CmpFOp>(op))
      return APInt(1, arith::applyCmpPredicate(cmp.getPredicate(), APFloat(numbers[0]), APFloat(numbers[1])));
    if (std::optional<double> number = computeFloat(op, numbers))
      return *number;
  }
  if (areIntegers && isa<math::AbsIOp>(op))
    return std::get<APInt>(operands[0]).abs();
  if (areIntegers && operands.size() == 2)
    if (std::optional<APInt> number =
            computeInteger(op, std::get<APInt>(operands[0]), std::get<APInt>(operands[1])))
      return *number;
  return std::nullopt;
}

std::optional<ScalarValue> fp8::computeScalar(Operation *op, ArrayRef<ScalarValue> operands,
                                              Rounding rounding) {
  if (op->getNumResults() != 1)
    return std::nullopt;
  if (op->hasTrait<OpTrait::ConstantLike>() && operands.empty())
    return getScalarValue(op->getAttr("value"));
  if (operands.empty())
    return std::nullopt;
  std::optional<ScalarValue> result = compute(op, operands);
  auto type = dyn_cast<FloatType>(elementOf(op->getResult(0)));
  if (result && type && rounding == Rounding::toType)
    if (auto *number = std::get_if<double>(&*result))
      *number = toDouble(toType(*number, type));
  return result;
}
