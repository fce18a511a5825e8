// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// e^x, 2^x, and the functions made of them: expm1, tanh, sinh, cosh.

#include "Exponentials.h"
#include "Expansions.h"

using namespace fp8;

// Adding this number to one below 2^22 rounds it to an integer, which is in the low bits of the sum.
static constexpr float kRoundingBias = 0x1.8p23f;
static constexpr float kLog2E = 1.44269504f;
// ln 2 in two parts: n times the first one, taken from x by an fma, is exact.
static constexpr float kLn2High = 6.931472e-01f, kLn2Low = -1.9046542e-09f;

/// The integer that `biased`, a sum with kRoundingBias, has in its low bits.
static Expr getInteger(Expr biased) { return toBits(biased) - 0x4b400000; }

namespace {
/// e^x = 2^exponent * (1 + fraction).
struct ReducedExp {
  Expr exponent; // an i32
  Expr fraction; // in [-0.3, 0.42], with a small relative error
};
} // namespace

/// Reduces e^(x + low) for |x| < 2^20.
static ReducedExp reduceExp(Expr x, Expr low = 0.0) {
  Expr biased = fma(x, kLog2E, kRoundingBias);
  Expr n = biased - kRoundingBias;
  Expr r = fma(n, -kLn2Low, fma(n, -kLn2High, x));
  if (!low.isNumber())
    r = r + low;
  // (e^r - 1 - r) / r^2 on |r| <= 0.3466: minimax, relative to e^r - 1 2^-26.1.
  Expr p = polynomial(r, {4.9999997e-01f, 1.6666546e-01f, 4.1667443e-02f, 8.366253e-03f, 1.3869951e-03f});
  return {getInteger(biased), fma(r * r, p, r)};
}

/// Returns value * 2^exponent, rounded once, for `value` in [2^-11, 2^11] and an i32 in
/// [-230, 230].
static Expr scaleByPowerOfTwo(Expr value, Expr exponent) {
  Expr half = shiftSigned(exponent, 1);
  return value * powerOfTwo(half) * powerOfTwo(exponent - half);
}

// Products that underflow cost processors some hundred cycles, and masks make half of a softmax's arguments
// as small as that: powers that are 0 are selected, not computed.

Expr fp8::expandExp(Expr x) {
  Expr isZero = x < -104.0;
  ReducedExp reduced = reduceExp(select(isZero, 0.0, atMost(x, 89.0))); // beyond: infinity
  return select(isZero, 0.0, scaleByPowerOfTwo(reduced.fraction + 1.0, reduced.exponent));
}

Expr fp8::buildExp2(Expr high, Expr low) {
  Expr isZero = high < -151.0;
  Expr bounded = select(isZero, 0.0, atMost(high, 160.0)); // beyond: infinity
  Expr biased = bounded + kRoundingBias;
  Expr r = bounded - (biased - kRoundingBias);
  if (!low.isNumber())
    r = r + select(bounded == high, low, 0.0);
  // (2^r - 1) / r on |r| <= 0.5: minimax, absolute error of 2^r 2^-28.3.
  Expr p = polynomial(
      r, {6.931472e-01f, 2.402265e-01f, 5.5503596e-02f, 9.6180625e-03f, 1.3390984e-03f, 1.5462884e-04f});
  return select(isZero, 0.0, scaleByPowerOfTwo(fma(r, p, 1.0), getInteger(biased)));
}

Expr fp8::expandExp2(Expr x) { return buildExp2(x); }

Expr fp8::multiplyByExp(Expr value, Expr high, Expr low) {
  ReducedExp reduced = reduceExp(high, low);
  return scaleByPowerOfTwo(fma(value, reduced.fraction, value), reduced.exponent);
}

Expr fp8::expandExpM1(Expr x) {
  ReducedExp reduced = reduceExp(atLeast(atMost(x, 89.0), -20.0)); // beyond: infinity and -1
  Expr half = powerOfTwo(reduced.exponent - 1);                    // 2^128 would be infinity
  Expr result = fma(half, reduced.fraction, half - 0.5) * 2.0;
  return select(x == 0.0, x, result); // keeps -0
}

Expr fp8::expandTanh(Expr x) {
  // With e = e^(2|x|) - 1, tanh |x| = e / (e + 2). It is 1 from 10 on.
  ReducedExp reduced = reduceExp(atMost(abs(x), 10.0) * 2.0);
  Expr power = powerOfTwo(reduced.exponent);
  Expr e = fma(power, reduced.fraction, power - 1.0);
  return copySign(e / (e + 2.0), x);
}

/// Returns e^x / 4 for x >= 0: not infinity where sinh and cosh are finite.
static Expr quarterExp(Expr x) {
  ReducedExp reduced = reduceExp(atMost(x, 90.0));
  return powerOfTwo(reduced.exponent - 2) * (reduced.fraction + 1.0);
}

Expr fp8::expandSinh(Expr x) {
  Expr magnitude = abs(x), square = magnitude * magnitude;
  // (sinh t / t - 1) / t^2 on [0, 1], in t^2: minimax, relative to sinh 2^-31.6.
  Expr p = polynomial(square, {1.6666667e-01f, 8.333311e-03f, 1.9842635e-04f, 2.7839255e-06f});
  Expr small = fma(magnitude * square, p, magnitude);
  Expr quarter = quarterExp(magnitude);
  Expr large = (quarter - 0.0625 / quarter) * 2.0;
  return copySign(select(magnitude < 1.0, small, large), x);
}

Expr fp8::expandCosh(Expr x) {
  Expr quarter = quarterExp(abs(x));
  return (quarter + 0.0625 / quarter) * 2.0;
}
