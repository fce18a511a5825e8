// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expr: arithmetic on values of the IR, written as formulas. An operator creates the operation of
// arith or math; a number takes the type of the other operand.

#ifndef FP8_CONVERSION_EXPANDMATH_EXPR_H
#define FP8_CONVERSION_EXPANDMATH_EXPR_H

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/ArrayRef.h"

namespace fp8 {

/// A scalar or vector of f32, f64, i32, i64 or i1 that an operation of the IR computes, or a number.
class Expr {
public:
  Expr(mlir::ImplicitLocOpBuilder &builder, mlir::Value value) : builder(&builder), value(value) {}
  /// A number, which has no type until it meets an operand that has one.
  Expr(double number) : number(number) {}

  mlir::ImplicitLocOpBuilder &getBuilder() const { return *builder; }
  mlir::Value getValue() const { return value; }
  mlir::Type getType() const { return value.getType(); }
  bool isNumber() const { return !value; }
  bool isFloat() const;

  /// Returns this value, or this number as a constant of the type of `typed`.
  Expr like(const Expr &typed) const;

private:
  mlir::ImplicitLocOpBuilder *builder = nullptr;
  mlir::Value value;
  double number = 0;
};

// Arithmetic of floats, rounded to nearest, and of integers, modulo 2^width.
Expr operator+(Expr lhs, Expr rhs);
Expr operator-(Expr lhs, Expr rhs);
Expr operator*(Expr lhs, Expr rhs);
/// Of floats, correctly rounded; of integers, unsigned.
Expr operator/(Expr lhs, Expr rhs);
/// The remainder of integers, unsigned.
Expr operator%(Expr lhs, Expr rhs);
Expr operator-(Expr value);

// Bits of integers, and of conditions. The right shift fills with zeros.
Expr operator&(Expr lhs, Expr rhs);
Expr operator|(Expr lhs, Expr rhs);
Expr operator^(Expr lhs, Expr rhs);
Expr operator<<(Expr lhs, Expr rhs);
Expr operator>>(Expr lhs, Expr rhs);
Expr operator!(Expr condition);
/// Shifts right and fills with the sign.
Expr shiftSigned(Expr lhs, Expr rhs);

// Comparisons, with an i1 as result: false if an operand is NaN; signed for integers.
Expr operator<(Expr lhs, Expr rhs);
Expr operator>(Expr lhs, Expr rhs);
Expr operator==(Expr lhs, Expr rhs);
Expr isNaN(Expr value);
Expr select(Expr condition, Expr ifTrue, Expr ifFalse);

/// Returns a * b + c, rounded once.
Expr fma(Expr a, Expr b, Expr c);
/// Returns coefficients[0] + coefficients[1] * x + …, by Horner's rule with one fma per term.
Expr polynomial(Expr x, llvm::ArrayRef<float> coefficients);
Expr abs(Expr value);
Expr copySign(Expr magnitude, Expr sign);
Expr sqrt(Expr value);
/// Rounds towards zero to an integer.
Expr truncate(Expr value);
/// Returns the smaller or larger of both, and NaN if `value` is NaN.
Expr atMost(Expr value, Expr bound);
Expr atLeast(Expr value, Expr bound);

// Conversions.
/// The bits of an f32 as an i32, and back.
Expr toBits(Expr value);
Expr fromBits(Expr bits);
/// An integer as a float of 32 or 64 bits, rounded to nearest.
Expr toF32(Expr integer);
Expr toF64(Expr integer);
/// An f64 rounded to f32.
Expr narrow(Expr value);
/// An i32 as an i64 with zeros on top; the low half of an i64.
Expr widen(Expr integer);
Expr lowHalf(Expr integer);

/// Returns 2^exponent as an f32, for an i32 in [-126, 127]; infinity for 128, zero for -127.
Expr powerOfTwo(Expr exponent);

} // namespace fp8

#endif // FP8_CONVERSION_EXPANDMATH_EXPR_H
