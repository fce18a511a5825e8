// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// f16 and bf16 arithmetic against exact sums and products rounded by comparison with
// the formats' values: every operand against many, edge values included.

#include "NumReference.h"
#include "num/Half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace fp8emu::num;
using namespace fp8emu::num::test;

namespace {

/// The expected result of an operation, from its result in doubles (NaN, infinity, the sign of
/// zero) and, where the operands are finite, its exact result as a quad.
template <const Format &format>
class Reference {
public:
  Reference() : list(format) {}

  uint16_t operator()(double special, Exact exact) const {
    if (special != special)
      return 0x7fff;
    if (!isFinite(special))
      return static_cast<uint16_t>(format.infinityCode() | (special < 0 ? 0x8000U : 0));
    if (exact == 0)
      return std::signbit(special) ? 0x8000 : 0;
    return static_cast<uint16_t>(list.round(exact, Rounding::NearestEven));
  }

private:
  ValueList list;
};

template <const Format &format>
std::vector<uint16_t> edges() {
  auto inf = static_cast<uint16_t>(format.infinityCode()),
       mantissa = static_cast<uint16_t>(format.mantissaMask());
  std::vector<uint16_t> result;
  for (int code : {0,        1,       2,      int(mantissa), mantissa + 1, mantissa + 2, inf - 1,
                   int(inf), inf + 1, 0x7fff, 0x3c00,        0x3c01,       0x3bff,       0x3f80,
                   0x3f7f,   0x3f81,  0x1234, 0x5555,        0x0403,       0x4000})
    for (int sign : {0, 0x8000})
      result.push_back(static_cast<uint16_t>(code | sign));
  return result;
}

/// The sum of two quads; of one that is too small to show in it a trace is left.
Exact addWithTrace(Exact a, Exact b) {
  Exact large = std::max(a < 0 ? -a : a, b < 0 ? -b : b);
  bool aIsLarge = large == a || large == -a;
  Exact small = aIsLarge ? b : a, sum = a + b;
  if (sum - (aIsLarge ? a : b) == small)
    return sum;
  return sum + (small < 0 ? -large : large) * 0x1p-100;
}

template <const Format &format>
void checkTwo(const Reference<format> &reference, uint16_t a, uint16_t b) {
  double x = decode(format, a), y = decode(format, b);
  bool finite = isFinite(x) && isFinite(y);
  Exact ex = finite ? x : 0, ey = finite ? y : 0;
  uint16_t sum = reference(x + y, addWithTrace(ex, ey)), product = reference(x * y, ex * ey);
  ASSERT_EQ(add<format>(a, b), sum) << a << " + " << b;
  ASSERT_EQ(sub<format>(a, static_cast<uint16_t>(b ^ 0x8000U)), sum) << a << " - " << b;
  ASSERT_EQ(mul<format>(a, b), product) << a << " * " << b;
}

template <const Format &format>
void checkPairs() {
  Reference<format> reference;
  std::vector<uint16_t> others = edges<format>();
  std::mt19937 random(format.exponentBits);
  for (size_t i = 0; i < others.size(); ++i) // of one sign; the other operand has both
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  for (int i = 0; i < 4; ++i)
    others.push_back(static_cast<uint16_t>(random()));
  for (uint32_t a = 0; a < 0x10000; ++a) {
    for (uint16_t b : others)
      checkTwo<format>(reference, static_cast<uint16_t>(a), b);
    if (testing::Test::HasFatalFailure())
      return;
  }
  for (int i = 0; i < 300000; ++i)
    checkTwo<format>(reference, static_cast<uint16_t>(random()), static_cast<uint16_t>(random()));
}

TEST(NumHalfTest, SumsAndProductsOfHalf) { checkPairs<F16>(); }
TEST(NumHalfTest, SumsAndProductsOfBFloat) { checkPairs<BF16>(); }

template <const Format &format>
void checkFma(const Reference<format> &reference, uint16_t a, uint16_t b, uint16_t c) {
  double x = decode(format, a), y = decode(format, b), z = decode(format, c);
  bool finite = isFinite(x) && isFinite(y) && isFinite(z);
  Exact exact = finite ? addWithTrace(static_cast<Exact>(x) * y, z) : 0;
  ASSERT_EQ(fma<format>(a, b, c), reference(x * y + z, exact)) << a << " " << b << " " << c;
}

template <const Format &format>
void checkTriples() {
  Reference<format> reference;
  std::vector<uint16_t> few = edges<format>();
  for (uint16_t a : few)
    for (uint16_t b : few)
      for (uint16_t c : few)
        checkFma<format>(reference, a, b, c);
  std::mt19937 random(17);
  for (int i = 0; i < 300000 && !testing::Test::HasFatalFailure(); ++i) {
    auto draw = [&] { return static_cast<uint16_t>(random()); };
    checkFma<format>(reference, draw(), draw(), draw());
    // Two factors with few bits and a small addend: the product is at or near a tie.
    auto ones = [&](unsigned bits) {
      unsigned mantissa = draw() & format.mantissaMask() & ~((1U << bits) - 1);
      auto exponent = static_cast<unsigned>(format.bias) + draw() % 4;
      return static_cast<uint16_t>(exponent << format.mantissaBits | mantissa | (draw() & 0x8000U));
    };
    uint16_t a = ones(format.mantissaBits / 2), b = ones(format.mantissaBits / 2 - 1);
    for (auto c : {draw() & 0x83ffU, draw() & 0x8001U, draw() & 0xbfffU})
      checkFma<format>(reference, a, b, static_cast<uint16_t>(c));
  }
}

TEST(NumHalfTest, FusedOfHalfRoundsOnce) {
  checkTriples<F16>();
  // 1025/1024 squared is 1 + 2^-9 + 2^-20: with 2^-24 taken away in f32 it would tie.
  EXPECT_EQ(fma<F16>(0x3c01, 0x3c01, 0x8001), 0x3c02);
  // A tie but for an addend of 2^-24: 2049 of 2048 units, plus a trace.
  EXPECT_EQ(fma<F16>(0x6801, 0x3c01, 0x0001), 0x6802);
}

TEST(NumHalfTest, FusedOfBFloatRoundsOnce) { checkTriples<BF16>(); }

TEST(NumHalfTest, Modifiers) {
  HalfMod ftz, sat, relu, oob;
  ftz.ftz = sat.sat = relu.relu = oob.oob = true;
  EXPECT_EQ(add<F16>(0x0001, 0x0000, ftz), 0x0000);
  EXPECT_EQ(add<F16>(0x8001, 0x8000, ftz), 0x8000);
  EXPECT_EQ(add<F16>(0x0600, 0x8500, ftz), 0x0000); // 1.5 - 1.25 of the least
  EXPECT_EQ(mul<F16>(0x8400, 0x3800, ftz), 0x8000);
  EXPECT_EQ(add<F16>(0x3c00, 0x3c00, sat), 0x3c00);
  EXPECT_EQ(add<F16>(0xbc00, 0x3800, sat), 0x0000);
  EXPECT_EQ(add<F16>(0x7c00, 0xfc00, sat), 0x0000);
  EXPECT_EQ(mul<F16>(0x3800, 0x3800, sat), 0x3400);
  EXPECT_EQ(fma<F16>(0x3c00, 0xbc00, 0x0000, relu), 0x0000);
  EXPECT_EQ(fma<F16>(0x7fff, 0x3c00, 0x0000, relu), 0x7fff);
  EXPECT_EQ(fma<BF16>(0x3f80, 0x4000, 0x3f80, relu), 0x4040);
  EXPECT_EQ(fma<F16>(kOutOfBoundsNaN, 0x3c00, 0x3c00, oob), 0x0000);
  EXPECT_EQ(fma<F16>(0x3c00, 0x3c00, kOutOfBoundsNaN, oob), 0x0000);
  EXPECT_EQ(fma<F16>(0x7fff, 0x3c00, 0x3c00, oob), 0x7fff);
  EXPECT_EQ(fma<F16>(kOutOfBoundsNaN, 0x3c00, 0x3c00), 0x7fff);
}

TEST(NumHalfTest, MinimumAndMaximum) {
  MinMax nan, xorsign, ftz;
  nan.nan = xorsign.abs = xorsign.xorsign = ftz.ftz = true;
  EXPECT_EQ(min<F16>(0x0000, 0x8000), 0x8000);
  EXPECT_EQ(max<BF16>(0x8000, 0x0000), 0x0000);
  EXPECT_EQ(min<F16>(0x7e00, 0x3c00), 0x3c00);
  EXPECT_EQ(min<F16>(0x7e00, 0x3c00, nan), 0x7fff);
  EXPECT_EQ(max<BF16>(0x7fc0, 0xffc0), 0x7fff);
  EXPECT_EQ(max<F16>(0x4000, 0xc200, xorsign), 0xc200);
  EXPECT_EQ(max<F16>(0x0001, 0x8001, ftz), 0x0000);
  for (uint32_t a = 0; a < 0x10000; a += 3)
    for (uint16_t b : edges<BF16>()) {
      double x = decode(BF16, a), y = decode(BF16, b);
      if (std::isnan(x) || std::isnan(y) || x == y)
        continue;
      ASSERT_EQ(decode(BF16, min<BF16>(static_cast<uint16_t>(a), b)), std::min(x, y));
      ASSERT_EQ(decode(BF16, max<BF16>(static_cast<uint16_t>(a), b)), std::max(x, y));
    }
}

} // namespace
