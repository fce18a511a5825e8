// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The operations that the operators and functions of Expr create.

#include "fp8/Conversion/ExpandMath/Expr.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace fp8;

bool Expr::isFloat() const { return isa<FloatType>(getElementTypeOrSelf(getType())); }

Expr Expr::like(const Expr &typed) const {
  if (!isNumber())
    return *this;
  Type type = typed.getType(), element = getElementTypeOrSelf(type);
  TypedAttr attr;
  if (isa<FloatType>(element))
    attr = FloatAttr::get(element, number);
  else
    attr = IntegerAttr::get(element, APInt(element.getIntOrFloatBitWidth(), static_cast<int64_t>(number),
                                           /*isSigned=*/true, /*implicitTrunc=*/true));
  if (auto shaped = dyn_cast<ShapedType>(type))
    attr = DenseElementsAttr::get(shaped, Attribute(attr));
  ImplicitLocOpBuilder &builder = typed.getBuilder();
  return Expr(builder, arith::ConstantOp::create(builder, attr));
}

/// Gives a number among both operands the type of the other one.
static void unify(Expr &lhs, Expr &rhs) {
  lhs = lhs.like(rhs);
  rhs = rhs.like(lhs);
}

template <typename Op>
static Expr binary(Expr lhs, Expr rhs) {
  unify(lhs, rhs);
  ImplicitLocOpBuilder &builder = lhs.getBuilder();
  return Expr(builder, Op::create(builder, lhs.getValue(), rhs.getValue()));
}

template <typename FloatOp, typename IntegerOp>
static Expr arithmetic(Expr lhs, Expr rhs) {
  bool isFloat = lhs.isNumber() ? rhs.isFloat() : lhs.isFloat();
  return isFloat ? binary<FloatOp>(lhs, rhs) : binary<IntegerOp>(lhs, rhs);
}

template <typename Op>
static Expr unary(Expr value) {
  return Expr(value.getBuilder(), Op::create(value.getBuilder(), value.getValue()));
}

/// Creates a cast to elements of `element`.
template <typename Op>
static Expr cast(Expr value, Type element) {
  auto shaped = dyn_cast<ShapedType>(value.getType());
  Type type = shaped ? Type(shaped.clone(element)) : element;
  return Expr(value.getBuilder(), Op::create(value.getBuilder(), type, value.getValue()));
}

static Expr compare(arith::CmpFPredicate ofFloats, arith::CmpIPredicate ofIntegers, Expr lhs, Expr rhs) {
  unify(lhs, rhs);
  ImplicitLocOpBuilder &builder = lhs.getBuilder();
  if (lhs.isFloat())
    return Expr(builder, arith::CmpFOp::create(builder, ofFloats, lhs.getValue(), rhs.getValue()));
  return Expr(builder, arith::CmpIOp::create(builder, ofIntegers, lhs.getValue(), rhs.getValue()));
}

Expr fp8::operator+(Expr lhs, Expr rhs) { return arithmetic<arith::AddFOp, arith::AddIOp>(lhs, rhs); }
Expr fp8::operator-(Expr lhs, Expr rhs) { return arithmetic<arith::SubFOp, arith::SubIOp>(lhs, rhs); }
Expr fp8::operator*(Expr lhs, Expr rhs) { return arithmetic<arith::MulFOp, arith::MulIOp>(lhs, rhs); }
Expr fp8::operator/(Expr lhs, Expr rhs) { return arithmetic<arith::DivFOp, arith::DivUIOp>(lhs, rhs); }
Expr fp8::operator%(Expr lhs, Expr rhs) { return binary<arith::RemUIOp>(lhs, rhs); }
Expr fp8::operator-(Expr value) { return unary<arith::NegFOp>(value); }
Expr fp8::operator&(Expr lhs, Expr rhs) { return binary<arith::AndIOp>(lhs, rhs); }
Expr fp8::operator|(Expr lhs, Expr rhs) { return binary<arith::OrIOp>(lhs, rhs); }
Expr fp8::operator^(Expr lhs, Expr rhs) { return binary<arith::XOrIOp>(lhs, rhs); }
Expr fp8::operator<<(Expr lhs, Expr rhs) { return binary<arith::ShLIOp>(lhs, rhs); }
Expr fp8::operator>>(Expr lhs, Expr rhs) { return binary<arith::ShRUIOp>(lhs, rhs); }
Expr fp8::operator!(Expr condition) { return condition ^ 1.0; }
Expr fp8::shiftSigned(Expr lhs, Expr rhs) { return binary<arith::ShRSIOp>(lhs, rhs); }

Expr fp8::operator<(Expr lhs, Expr rhs) {
  return compare(arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt, lhs, rhs);
}
Expr fp8::operator>(Expr lhs, Expr rhs) {
  return compare(arith::CmpFPredicate::OGT, arith::CmpIPredicate::sgt, lhs, rhs);
}
Expr fp8::operator==(Expr lhs, Expr rhs) {
  return compare(arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq, lhs, rhs);
}
Expr fp8::isNaN(Expr value) {
  return compare(arith::CmpFPredicate::UNO, arith::CmpIPredicate::ne, value, value);
}

Expr fp8::select(Expr condition, Expr ifTrue, Expr ifFalse) {
  unify(ifTrue, ifFalse);
  ImplicitLocOpBuilder &builder = condition.getBuilder();
  return Expr(builder,
              arith::SelectOp::create(builder, condition.getValue(), ifTrue.getValue(), ifFalse.getValue()));
}

Expr fp8::fma(Expr a, Expr b, Expr c) {
  unify(a, b);
  unify(a, c);
  ImplicitLocOpBuilder &builder = a.getBuilder();
  return Expr(builder, math::FmaOp::create(builder, a.getValue(), b.getValue(), c.getValue()));
}

Expr fp8::polynomial(Expr x, ArrayRef<float> coefficients) {
  Expr sum = Expr(coefficients.back()).like(x);
  for (float coefficient : llvm::reverse(coefficients.drop_back()))
    sum = fma(sum, x, coefficient);
  return sum;
}

Expr fp8::abs(Expr value) { return unary<math::AbsFOp>(value); }
Expr fp8::copySign(Expr magnitude, Expr sign) { return binary<math::CopySignOp>(magnitude, sign); }
Expr fp8::sqrt(Expr value) { return unary<math::SqrtOp>(value); }
Expr fp8::truncate(Expr value) { return unary<math::TruncOp>(value); }
Expr fp8::atMost(Expr value, Expr bound) { return select(value > bound, bound, value); }
Expr fp8::atLeast(Expr value, Expr bound) { return select(value < bound, bound, value); }

Expr fp8::toBits(Expr value) { return cast<arith::BitcastOp>(value, value.getBuilder().getI32Type()); }
Expr fp8::fromBits(Expr bits) { return cast<arith::BitcastOp>(bits, bits.getBuilder().getF32Type()); }
Expr fp8::toF32(Expr integer) { return cast<arith::SIToFPOp>(integer, integer.getBuilder().getF32Type()); }
Expr fp8::toF64(Expr integer) { return cast<arith::SIToFPOp>(integer, integer.getBuilder().getF64Type()); }
Expr fp8::narrow(Expr value) { return cast<arith::TruncFOp>(value, value.getBuilder().getF32Type()); }
Expr fp8::widen(Expr integer) { return cast<arith::ExtUIOp>(integer, integer.getBuilder().getI64Type()); }
Expr fp8::lowHalf(Expr integer) { return cast<arith::TruncIOp>(integer, integer.getBuilder().getI32Type()); }

Expr fp8::powerOfTwo(Expr exponent) { return fromBits((exponent + 127) << 23); }
