// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The remainder of a division of floats, and powers of integers: both exact, in integers.

#include "Expansions.h"

#include <limits>

using namespace fp8;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

namespace {
/// A finite magnitude, integer * 2^(exponent - 150): also of subnormal numbers.
struct Parts {
  Expr integer, exponent;
};
} // namespace

static Parts split(Expr bits) {
  Expr exponent = bits >> 23, isNormal = exponent > 0.0;
  return {(bits & 0x7fffff) | select(isNormal, Expr(0x800000).like(bits), 0.0), atLeast(exponent, 1)};
}

/// The remainder of a truncating division, as of C's fmod: the dividend's integer is shifted to the divisor's
/// exponent, 40 bits at a time, each time less the divisor's multiples.
Expr fp8::expandRemF(Expr x, Expr y) {
  constexpr int kBits = 40, kMostBits = 254; // of a shift, and the largest distance of exponents
  Expr a = abs(x), b = abs(y);
  Parts dividend = split(toBits(a)), divisor = split(toBits(b));
  Expr left = atLeast(dividend.exponent - divisor.exponent, 0);
  Expr modulus = widen(atLeast(divisor.integer, 1));
  Expr rest = widen(dividend.integer) % modulus;
  for (int done = 0; done < kMostBits; done += kBits) {
    Expr shift = atMost(left, kBits);
    rest = (rest << widen(shift)) % modulus;
    left = left - shift;
  }
  // In two factors, each a normal number; the result is exact.
  Expr exponent = divisor.exponent - 150, half = shiftSigned(exponent, 1);
  Expr remainder = toF32(lowHalf(rest)) * powerOfTwo(half) * powerOfTwo(exponent - half);
  remainder = select(a < b, a, remainder);
  remainder = copySign(remainder, x);
  Expr isUndefined = isNaN(x) | isNaN(y) | (a == kInfinity) | (b == 0.0);
  return select(isUndefined, kNaN, remainder);
}

/// x^n modulo 2^width: squares of x, and the matmul of those that n has a bit for. 0 for a negative n unless
/// x is 1 or -1, as 1 / x^-n is truncated.
Expr fp8::expandIPowI(Expr x, Expr n) {
  int64_t width = x.getType().getIntOrFloatBitWidth();
  Expr power = Expr(1.0).like(x), square = x;
  for (int64_t bit = 0; bit + 1 < width; ++bit) {
    power = select(((n >> bit) & 1.0) == 1.0, power * square, power);
    if (bit + 2 < width)
      square = square * square;
  }
  Expr isOdd = (n & 1.0) == 1.0;
  Expr inverse = select(x == 1.0, x, select(x == -1.0, select(isOdd, x, 1.0), 0.0));
  return select(n < 0.0, inverse, power);
}
