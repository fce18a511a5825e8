// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Powers and roots: powf, fpowi, cbrt, rsqrt.

#include "Expansions.h"
#include "Exponentials.h"
#include <limits>

using namespace fp8;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

namespace {
/// The sum of two floats, of which `low` holds digits below the last one of `high`.
struct Pair {
  Expr high, low;
};
} // namespace

/// Returns log2(a) of a positive finite number, with a relative error of about 2^-31.
static Pair buildLog2(Expr a) {
  Expr isSubnormal = a < 0x1p-126;
  Expr normal = select(isSubnormal, a * 0x1p23, a);
  Expr bits = (toBits(normal) - 0x3f3504f3) & 0xff800000; // of 2^e; a / 2^e is in [sqrt(1/2), sqrt(2)]
  Expr exponent = fma(toF32(bits), 0x1p-23, select(isSubnormal, Expr(-23.0).like(a), 0.0));
  Expr m = fromBits(toBits(normal) - bits);
  // s = (m - 1) / (m + 1) in two parts; log2(m) = 2 / ln 2 * atanh(s).
  Expr difference = m - 1.0, sum = m + 1.0;
  Expr sumLow = m - (sum - 1.0);
  Expr s = difference / sum;
  Expr sLow = fma(-s, sumLow, fma(-s, sum, difference)) / sum;
  // (atanh(s) / s - 1) / s^2 * 2 / ln 2 on |s| <= 0.172, in s^2: minimax, relative to the logarithm 2^-35.
  Expr square = s * s;
  Expr p = polynomial(square, {9.617967e-01f, 5.770789e-01f, 4.119212e-01f, 3.3663595e-01f});
  constexpr float kFactor = 2.88539e+00f, kFactorLow = 3.851926e-08f; // 2 / ln 2
  Expr linear = s * kFactor;
  Expr rest = fma(s, kFactor, -linear) + fma(s, kFactorLow, sLow * kFactor);
  rest = fma(s * square, p, rest);
  Expr high = exponent + linear; // |exponent| >= |linear| or 0, so the next difference is exact
  Expr low = ((exponent - high) + linear) + rest;
  Expr total = high + low;
  return {total, (high - total) + low};
}

/// Returns a^y, but for an `a` of 0, 1 or infinity, a `y` of 0, and NaN.
static Expr buildPower(Expr a, Pair y) {
  Pair log = buildLog2(a);
  Expr product = y.high * log.high;
  Expr rest = y.high * log.low;
  if (!y.low.isNumber())
    rest = fma(y.low, log.high, rest);
  return buildExp2(product, fma(y.high, log.high, -product) + rest);
}

/// Gives `power`, the result of buildPower for |x|, its sign, and replaces it for the arguments that
/// buildPower leaves out.
static Expr finishPower(Expr x, Expr y, Expr isOdd, Expr power) {
  Expr a = abs(x);
  Expr extreme = select((y < 0.0) ^ (a > 1.0), Expr(kInfinity).like(a), 0.0);
  power = select((a == 0.0) | (a == kInfinity), extreme, power);
  power = select(a == 1.0, 1.0, power);
  power = select((toBits(x) < 0.0) & isOdd, -power, power);
  power = select(isNaN(x), x, power);
  return select(y == 0.0, 1.0, power);
}

Expr fp8::expandPowF(Expr x, Expr y) {
  Expr half = y * 0.5;
  Expr isInteger = truncate(y) == y, isEven = truncate(half) == half;
  Expr power = finishPower(x, y, isInteger & !isEven, buildPower(abs(x), {y, 0.0}));
  Expr hasNoPower = (x < 0.0) & (x > -kInfinity) & !isInteger;
  power = select(hasNoPower | isNaN(y), kNaN, power);
  return select(x == 1.0, 1.0, power);
}

Expr fp8::expandFPowI(Expr x, Expr n) {
  // Both parts of n are exact in f32; their sum need not be.
  Expr upper = toF32(n & 0xffffff00), lower = toF32(n & 0xff);
  Expr high = upper + lower;
  Pair y = {high, (upper - high) + lower};
  return finishPower(x, high, (n & 1.0) == 1.0, buildPower(abs(x), y));
}

Expr fp8::expandCbrt(Expr x) {
  Expr a = abs(x);
  // Scaled by 2^96 or its inverse, so that three times the argument is finite, and normal.
  Expr isSmall = a < 0x1p-96, isLarge = a > 0x1p96;
  Expr scaled = a * select(isSmall, Expr(0x1p96).like(a), select(isLarge, Expr(0x1p-96).like(a), 1.0));
  // A third of the bits is close to the root; each step of Halley's method triples the correct digits.
  Expr root = fromBits(toBits(scaled) / 3.0 + 0x2a508935);
  for (int step = 0; step < 2; ++step) {
    Expr square = root * root;
    Expr error = fma(-square, root, scaled);
    root = fma(root, error / fma(square * root, 2.0, scaled), root);
  }
  root = root * select(isSmall, Expr(0x1p-32).like(a), select(isLarge, Expr(0x1p32).like(a), 1.0));
  Expr hasRoot = (a > 0.0) & (a < kInfinity); // else 0, infinity or NaN, which are their own
  return select(hasRoot, copySign(root, x), x);
}

Expr fp8::expandRsqrt(Expr x) { return 1.0 / sqrt(x); }
