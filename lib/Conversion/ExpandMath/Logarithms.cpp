// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Logarithms, and the functions made of log1p: asinh, acosh, atanh.

#include "Expansions.h"
#include "mlir/IR/BuiltinTypes.h"
#include <limits>

using namespace fp8;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
static constexpr float kLn2 = 6.931472e-01f;
static constexpr double kTwoThirdsBits = 0x3f2aaaab, kExponentMask = 0xff800000;

namespace {
/// x = 2^exponent * (1 + fraction), fraction in [-1/3, 1/3].
struct ReducedLog {
  Expr exponent; // an f32
  Expr fraction;
};
} // namespace

/// The bits of 2^e without the bias, where `x` is 2^e times a number in [2/3, 4/3].
static Expr getExponentBits(Expr x) { return (toBits(x) - kTwoThirdsBits) & kExponentMask; }

/// Reduces the logarithm of a positive finite number.
static ReducedLog reduceLog(Expr x) {
  Expr isSubnormal = x < 0x1p-126;
  Expr normal = select(isSubnormal, x * 0x1p23, x);
  Expr bits = getExponentBits(normal);
  Expr exponent = fma(toF32(bits), 0x1p-23, select(isSubnormal, Expr(-23.0).like(x), 0.0));
  return {exponent, fromBits(toBits(normal) - bits) - 1.0};
}

/// Returns log(1 + f) - f on |f| <= 1/3.
static Expr logRest(Expr f) {
  // (log(1 + f) - f) / f^2: minimax, relative to the logarithm 2^-27.7.
  Expr p = polynomial(f, {-5.0e-01f, 3.3333215e-01f, -2.4999805e-01f, 2.0010437e-01f, -1.6680215e-01f,
                          1.4005505e-01f, -1.2187595e-01f, 1.3985826e-01f, -1.2878491e-01f});
  return f * f * p;
}

/// Returns `result`, the logarithm of a positive finite `x`, and replaces it for other `x`.
static Expr withSpecialValues(Expr x, Expr result) {
  result = select(x < kInfinity, result, x); // infinity, NaN
  return select(x > 0.0, result, select(x == 0.0, Expr(-kInfinity).like(x), kNaN));
}

Expr fp8::expandLog(Expr x) {
  ReducedLog reduced = reduceLog(x);
  Expr ofFraction = reduced.fraction + logRest(reduced.fraction);
  return withSpecialValues(x, fma(reduced.exponent, kLn2, ofFraction));
}

/// Returns log(1 + f) * factor on |f| <= 1/3, for a factor in two parts.
static Expr scaledLog(Expr f, float high, float low) { return fma(f, high, fma(f, low, logRest(f) * high)); }

Expr fp8::expandLog2(Expr x) {
  ReducedLog reduced = reduceLog(x);
  return withSpecialValues(x, reduced.exponent + scaledLog(reduced.fraction, 1.442695e+00f, 1.925963e-08f));
}

Expr fp8::expandLog10(Expr x) {
  ReducedLog reduced = reduceLog(x);
  Expr ofFraction = scaledLog(reduced.fraction, 4.342945e-01f, -1.010305e-08f);
  Expr low = fma(reduced.exponent, -1.4320989e-08f, ofFraction);
  return withSpecialValues(x, fma(reduced.exponent, 3.0103e-01f, low));
}

Expr fp8::expandLog1p(Expr x) {
  // 1 + x = 2^e * (1 + f): f = x * 2^-e + (2^-e - 1), so that no digit of x is lost.
  Expr bits = getExponentBits(x + 1.0);
  Expr scaled = fromBits(toBits(x) - bits);
  Expr fourth = fromBits(Expr(0x40800000).like(bits) - bits); // 4 * 2^-e, which is no subnormal
  Expr f = scaled + fma(fourth, 0.25, -1.0);
  Expr result = fma(toF32(bits) * 0x1p-23, kLn2, f + logRest(f));
  result = select(x < kInfinity, result, x);
  result = select(x > -1.0, result, select(x == -1.0, Expr(-kInfinity).like(x), kNaN));
  return select(x == 0.0, x, result); // keeps -0
}

Expr fp8::expandAsinh(Expr x) {
  Expr a = abs(x), square = a * a;
  // asinh a = log1p(a + a^2 / (1 + sqrt(1 + a^2))); from 2^24 on log(2a), where a^2 could be infinity.
  Expr isLarge = a > 0x1p24;
  Expr argument = a + square / (sqrt(square + 1.0) + 1.0);
  Expr result = expandLog1p(select(isLarge, a, argument));
  return copySign(select(isLarge, result + kLn2, result), x);
}

Expr fp8::expandAcosh(Expr x) {
  Expr t = x - 1.0;
  Expr isLarge = x > 0x1p24;
  Expr argument = t + sqrt(fma(t, t, t * 2.0));
  Expr result = expandLog1p(select(isLarge, x, argument));
  result = select(isLarge, result + kLn2, result);
  return select(x < 1.0, kNaN, result);
}

Expr fp8::expandAtanh(Expr x) {
  Expr a = abs(x);
  Expr result = expandLog1p(a * 2.0 / (1.0 - a)) * 0.5;
  return copySign(result, x);
}
