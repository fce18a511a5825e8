// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// sin, cos and tan, for all arguments: the reduction by multiples of pi / 2 is exact integer
// arithmetic on as many digits of 2 / pi as the exponent of the argument asks for.

#include "Expansions.h"
#include <array>
#include <limits>

using namespace fp8;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// The binary digits of 2 / pi: the first word has those of 2^25 to 2^-6.
static constexpr uint32_t kTwoOverPi[] = {0x00000028, 0xbe60db93, 0x91054a7f, 0x09d5f47d,
                                          0x4d377036, 0xd8a5664f, 0x10e4107f, 0x9458eaf7};

namespace {
/// |x| = quadrant * pi / 2 + rest, |rest| <= pi / 4.
struct ReducedAngle {
  Expr quadrant; // an i32, modulo 4
  Expr rest;     // an f32
};
} // namespace

/// Returns 96 digits of 2 / pi in three i32, beginning with that of 2^(25 - start), 0 <= start <= 128.
static std::array<Expr, 3> selectDigits(Expr start) {
  Expr first = start >> 5.0, shift = start & 31.0;
  auto getWord = [&](unsigned offset) {
    Expr word = Expr(kTwoOverPi[offset]).like(start);
    for (unsigned i = 1; i <= 4; ++i)
      word = select(first == i, kTwoOverPi[offset + i], word);
    return word;
  };
  auto join = [&](Expr word, Expr next) { return (word << shift) | ((next >> 1.0) >> (31.0 - shift)); };
  Expr words[] = {getWord(0), getWord(1), getWord(2), getWord(3)};
  return {join(words[0], words[1]), join(words[1], words[2]), join(words[2], words[3])};
}

/// Returns |x| * 2 / pi modulo 4 in units of 2^-62, an i64, for a finite |x| >= 0.5.
static Expr multiplyByTwoOverPi(Expr a) {
  Expr bits = toBits(a);
  Expr exponent = atLeast(atMost(bits >> 23.0, 254.0), 126.0); // the digits of other |x| do not matter
  Expr mantissa = widen((bits & 0x7fffff) | 0x800000);
  std::array<Expr, 3> digits = selectDigits(exponent - 126.0);
  Expr high = mantissa * widen(digits[0]) << 32.0;
  return high + mantissa * widen(digits[1]) + (mantissa * widen(digits[2]) >> 32.0);
}

static ReducedAngle reduceAngle(Expr x) {
  Expr a = abs(x);
  Expr product = multiplyByTwoOverPi(a);
  Expr quadrant = lowHalf((product + 0x1p61) >> 62.0);
  // The digits behind the point, as a signed number of 64 bits; the last one is dropped, so that
  // both halves are signed i32, which processors convert.
  Expr fraction = product << 2.0;
  Expr high = toF64(lowHalf(fraction >> 32.0)), low = toF64(lowHalf(fraction) >> 1.0);
  constexpr double kUnit = 0x1.921fb54442d18p-64; // pi / 2 * 2^-64
  Expr rest = narrow((high * 0x1p32 + low * 2.0) * kUnit);
  Expr isReduced = a < 0.785398185;
  rest = select(isReduced, a, select(a < kInfinity, rest, kNaN));
  return {select(isReduced, 0.0, quadrant), rest};
}

/// Returns sin(r) and cos(r) on |r| <= pi / 4.
static std::pair<Expr, Expr> buildSincos(Expr r) {
  Expr square = r * r;
  // (sin r / r - 1) / r^2 in r^2: minimax, relative to sin 2^-28.
  Expr p = polynomial(square, {-1.6666655e-01f, 8.33219e-03f, -1.9518408e-04f});
  // (cos r - 1 + r^2 / 2) / r^4 in r^2: minimax, absolute error of cos 2^-33.1.
  Expr q = polynomial(square, {4.1666646e-02f, -1.3887301e-03f, 2.4430668e-05f});
  return {fma(r * square, p, r), fma(square, fma(square, q, -0.5), 1.0)};
}

static Expr flipSign(Expr value, Expr signBit) { return fromBits(toBits(value) ^ signBit); }

static Expr getSignBit(Expr x) { return toBits(x) & 0x80000000; }

std::pair<Expr, Expr> fp8::expandSincos(Expr x) {
  ReducedAngle angle = reduceAngle(x);
  auto [sine, cosine] = buildSincos(angle.rest);
  Expr isOdd = (angle.quadrant & 1.0) == 1.0;
  Expr sineSign = (angle.quadrant & 2.0) << 30.0, cosineSign = ((angle.quadrant + 1.0) & 2.0) << 30.0;
  return {flipSign(select(isOdd, cosine, sine), sineSign ^ getSignBit(x)),
          flipSign(select(isOdd, sine, cosine), cosineSign)};
}

Expr fp8::expandSin(Expr x) { return expandSincos(x).first; }

Expr fp8::expandCos(Expr x) { return expandSincos(x).second; }

Expr fp8::expandTan(Expr x) {
  ReducedAngle angle = reduceAngle(x);
  auto [sine, cosine] = buildSincos(angle.rest);
  Expr isOdd = (angle.quadrant & 1.0) == 1.0;
  Expr tangent = select(isOdd, cosine, sine) / select(isOdd, sine, cosine);
  return flipSign(tangent, (angle.quadrant << 31.0) ^ getSignBit(x));
}
