// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// asin, acos, atan and atan2.

#include "Expansions.h"
#include <limits>

using namespace fp8;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
// In two parts, as the differences of angles below need.
static constexpr float kPi = 3.1415927e+00f, kPiLow = -8.742278e-08f;
static constexpr float kHalfPi = 1.5707964e+00f, kHalfPiLow = -4.371139e-08f;

static Expr halfPiMinus(Expr angle) { return kHalfPi - (angle - kHalfPiLow); }
static Expr piMinus(Expr angle) { return kPi - (angle - kPiLow); }

/// Returns atan(t) for t in [0, 1].
static Expr buildAtan(Expr t) {
  Expr square = t * t;
  // (atan t / t - 1) / t^2 in t^2: minimax, relative to atan 2^-28.5.
  Expr p = polynomial(square, {-3.33333e-01f, 1.999853e-01f, -1.4264016e-01f, 1.09508805e-01f, -8.399306e-02f,
                               5.788139e-02f, -3.1096987e-02f, 1.0868691e-02f, -1.7828245e-03f});
  return fma(t * square, p, t);
}

Expr fp8::expandAtan(Expr x) {
  Expr a = abs(x);
  Expr isLarge = a > 1.0;
  Expr angle = buildAtan(select(isLarge, 1.0 / a, a));
  return copySign(select(isLarge, halfPiMinus(angle), angle), x);
}

Expr fp8::expandAtan2(Expr y, Expr x) {
  Expr a = abs(y), b = abs(x);
  Expr isSteep = a > b;
  Expr larger = select(isSteep, a, b), smaller = select(isSteep, b, a);
  Expr ratio = select(larger == 0.0, 0.0, select(smaller == kInfinity, 1.0, smaller / larger));
  Expr angle = buildAtan(ratio);
  angle = select(isSteep, halfPiMinus(angle), angle);
  angle = select(toBits(x) < 0.0, piMinus(angle), angle);
  return select(isNaN(x) | isNaN(y), kNaN, copySign(angle, y));
}

namespace {
/// For |x| <= 0.5, `angle` is asin |x|, else half of acos |x|.
struct HalfAngle {
  Expr isLarge, angle;
};
} // namespace

static HalfAngle buildHalfAngle(Expr a) {
  Expr isLarge = a > 0.5;
  Expr square = select(isLarge, (1.0 - a) * 0.5, a * a); // negative beyond 1: sqrt gives NaN
  Expr sine = select(isLarge, sqrt(square), a);
  // (asin s / s - 1) / s^2 on [0, 0.5], in s^2: minimax, relative to asin 2^-31.7.
  Expr p = polynomial(
      square, {1.666666e-01f, 7.500521e-02f, 4.4513635e-02f, 3.1836055e-02f, 1.4329189e-02f, 3.7673127e-02f});
  return {isLarge, fma(sine * square, p, sine)};
}

Expr fp8::expandAsin(Expr x) {
  HalfAngle half = buildHalfAngle(abs(x));
  return copySign(select(half.isLarge, halfPiMinus(half.angle * 2.0), half.angle), x);
}

Expr fp8::expandAcos(Expr x) {
  HalfAngle half = buildHalfAngle(abs(x));
  Expr twice = half.angle * 2.0;
  Expr large = select(x < 0.0, piMinus(twice), twice);
  return select(half.isLarge, large, halfPiMinus(copySign(half.angle, x)));
}
