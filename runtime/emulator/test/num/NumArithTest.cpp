// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// f32 and f64 arithmetic against the host's own directed rounding (f32) and against
// exact quad-precision brackets (f64), over edge values and random ones.

#include "NumReference.h"
#include "num/Arith.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <limits>

using namespace fp8emu;
using namespace fp8emu::num::test;
using num::bitsOf;
using num::floatOf;
using num::MinMax;
using num::Rounding;

namespace {

constexpr Rounding kRoundings[] = {Rounding::NearestEven, Rounding::Zero, Rounding::Down, Rounding::Up};

int hostRounding(Rounding rounding) {
  switch (rounding) {
  case Rounding::Zero:
    return FE_TOWARDZERO;
  case Rounding::Down:
    return FE_DOWNWARD;
  case Rounding::Up:
    return FE_UPWARD;
  default:
    return FE_TONEAREST;
  }
}

/// The host's result in that rounding; NaNs as the emulator has them.
template <typename Compute>
uint32_t onHost(Rounding rounding, Compute compute, float a, float b, float c) {
  volatile float x = a, y = b, z = c;
  std::fesetround(hostRounding(rounding));
  volatile float result = compute(x, y, z);
  std::fesetround(FE_TONEAREST);
  return result != result ? 0x7fffffffU : bitsOf(static_cast<float>(result));
}

TEST(NumArithTest, FloatsRoundAsTheHost) {
  std::vector<float> edges = manyFloats(60, 1), random = manyFloats(40000, 2);
  auto check = [](float a, float b, float c) {
    for (Rounding rounding : kRoundings) {
      auto host = [&](auto compute) { return onHost(rounding, compute, a, b, c); };
      auto where = [&] {
        return testing::Message() << std::hexfloat << a << " " << b << " " << c << " "
                                  << static_cast<int>(rounding);
      };
      using V = volatile float &;
      ASSERT_EQ(bitsOf(num::add(a, b, rounding)), host([](V x, V y, V) { return x + y; })) << where();
      ASSERT_EQ(bitsOf(num::sub(a, b, rounding)), host([](V x, V y, V) { return x - y; })) << where();
      ASSERT_EQ(bitsOf(num::mul(a, b, rounding)), host([](V x, V y, V) { return x * y; })) << where();
      ASSERT_EQ(bitsOf(num::div(a, b, rounding)), host([](V x, V y, V) { return x / y; })) << where();
      ASSERT_EQ(bitsOf(num::rcp(b, rounding)), host([](V, V y, V) { return 1.0f / y; })) << where();
      ASSERT_EQ(bitsOf(num::sqrt(a, rounding)), host([](V x, V, V) { return std::sqrt(x); })) << where();
      ASSERT_EQ(bitsOf(num::fma(a, b, c, rounding)), host([](V x, V y, V z) { return std::fma(x, y, z); }))
          << where();
    }
  };
  for (float a : edges)
    for (float b : edges)
      for (float c : {edges[0], edges[1], edges[2], a, -b, edges[19], edges[30], edges[45]})
        check(a, b, c);
  for (size_t i = 0; i + 2 < random.size(); ++i)
    check(random[i], random[i + 1], random[i + 2]);
  // Addends near the product, that digits cancel and ties occur.
  std::mt19937 bits(3);
  for (int i = 0; i < 40000; ++i) {
    float a = floatOf(0x3f800000U | (bits() & 0x7fffffU)), b = floatOf(0x3f800000U | (bits() & 0x7ff800U));
    float c = std::ldexp(floatOf(0x3f800000U | (bits() & 0x7fffc0U)), static_cast<int>(bits() % 64) - 32);
    check(a, bits() & 1 ? b : -b, c);
    float scaled = std::ldexp(a, -100), tiny = std::ldexp(b, static_cast<int>(bits() % 40) - 60);
    check(scaled, tiny, std::ldexp(c, -140));
  }
}

TEST(NumArithTest, FlushesToZero) {
  float least = 0x1p-126f, subnormal = 0x1p-127f;
  for (Rounding rounding : kRoundings) {
    EXPECT_EQ(bitsOf(num::add(subnormal, -0.0f, rounding, true)),
              rounding == Rounding::Down ? 0x80000000U : 0U);
    EXPECT_EQ(bitsOf(num::add(-subnormal, -0.0f, rounding, true)), 0x80000000U);
    EXPECT_EQ(bitsOf(num::add(1.5f * least, -least, rounding, true)), 0U);
    EXPECT_EQ(bitsOf(num::mul(-least, 0.5f, rounding, true)), 0x80000000U);
    EXPECT_EQ(bitsOf(num::mul(subnormal, 0x1p100f, rounding, true)), 0U);
    EXPECT_EQ(bitsOf(num::fma(subnormal, 0x1p100f, 1.0f, rounding, true)), bitsOf(1.0f));
    EXPECT_EQ(bitsOf(num::fma(least, 0.5f, 0.0f, rounding, true)), 0U);
    EXPECT_EQ(num::div(1.0f, subnormal, rounding, true), std::numeric_limits<float>::infinity());
    EXPECT_EQ(num::rcp(-subnormal, rounding, true), -std::numeric_limits<float>::infinity());
    EXPECT_EQ(bitsOf(num::rcp(0x1.8p126f, rounding, true)), 0U);
    EXPECT_EQ(bitsOf(num::sqrt(-subnormal, rounding, true)), 0x80000000U);
  }
  EXPECT_EQ(bitsOf(num::neg(subnormal, true)), 0x80000000U);
  EXPECT_EQ(bitsOf(num::abs(-subnormal, true)), 0U);
  EXPECT_EQ(bitsOf(num::abs(-subnormal)), bitsOf(subnormal));
}

TEST(NumArithTest, Saturates) {
  EXPECT_EQ(bitsOf(num::saturate(floatOf(0x7fc00000U))), 0U);
  EXPECT_EQ(bitsOf(num::saturate(-0.0f)), 0U);
  EXPECT_EQ(num::saturate(-3.0f), 0.0f);
  EXPECT_EQ(num::saturate(0.25f), 0.25f);
  EXPECT_EQ(num::saturate(1.5f), 1.0f);
  EXPECT_EQ(num::saturate(std::numeric_limits<float>::infinity()), 1.0f);
  EXPECT_EQ(num::saturate(std::nan("")), 0.0);
}

/// Whether `got` is the rounding of a value that `compare` puts below (-1), at (0) or
/// above (1) a double or the midpoint of two, given as a quad.
template <typename Compare>
bool isRounding(double got, Rounding rounding, Compare compare) {
  const double infinity = std::numeric_limits<double>::infinity();
  double below = std::nextafter(got, -infinity), above = std::nextafter(got, infinity);
  int side = compare(static_cast<Exact>(got));
  if (side == 0)
    return true;
  switch (rounding) {
  case Rounding::Down:
    return side > 0 && compare(static_cast<Exact>(above)) < 0;
  case Rounding::Up:
    return side < 0 && compare(static_cast<Exact>(below)) > 0;
  case Rounding::Zero:
    return got > 0 || (got == 0 && !std::signbit(got)) ? side > 0 && compare(static_cast<Exact>(above)) < 0
                                                       : side < 0 && compare(static_cast<Exact>(below)) > 0;
  default: {
    Exact low = (static_cast<Exact>(got) + below) / 2, high = (static_cast<Exact>(got) + above) / 2;
    bool even = (bitsOf(got) & 1) == 0;
    int atLow = compare(low), atHigh = compare(high);
    return (even ? atLow >= 0 : atLow > 0) && (even ? atHigh <= 0 : atHigh < 0);
  }
  }
}

int order(Exact a, Exact b) { return a < b ? -1 : a > b; }

TEST(NumArithTest, DoublesRoundOnce) {
  RandomDoubles random(5, -25, 25);
  for (int i = 0; i < 20000; ++i) {
    double a = random(), b = random();
    // Of 40 bits, that a product and this fit in 113.
    double c = num::doubleOf(bitsOf(random()) & ~uint64_t(0xfff));
    double a40 = num::doubleOf(bitsOf(a) & ~uint64_t(0x1fffff)),
           b40 = num::doubleOf(bitsOf(b) & ~uint64_t(0x1fffff));
    for (Rounding rounding : kRoundings) {
      Exact sum = static_cast<Exact>(a) + b, difference = static_cast<Exact>(a) - b;
      Exact product = static_cast<Exact>(a) * b, fused = static_cast<Exact>(a40) * b40 + c;
      ASSERT_TRUE(isRounding(num::add(a, b, rounding), rounding, [&](Exact x) { return order(sum, x); }));
      ASSERT_TRUE(
          isRounding(num::sub(a, b, rounding), rounding, [&](Exact x) { return order(difference, x); }));
      ASSERT_TRUE(isRounding(num::mul(a, b, rounding), rounding, [&](Exact x) { return order(product, x); }));
      ASSERT_TRUE(
          isRounding(num::fma(a40, b40, c, rounding), rounding, [&](Exact x) { return order(fused, x); }));
      int sign = b < 0 ? -1 : 1; // a / b against x is a against x b
      ASSERT_TRUE(
          isRounding(num::div(a, b, rounding), rounding, [&](Exact x) { return sign * order(a, x * b); }));
      ASSERT_TRUE(
          isRounding(num::rcp(b, rounding), rounding, [&](Exact x) { return sign * order(1, x * b); }));
      double square = std::fabs(a);
      ASSERT_TRUE(isRounding(num::sqrt(square, rounding), rounding,
                             [&](Exact x) { return x < 0 ? 1 : order(square, x * x); }));
    }
  }
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  const double largest = std::numeric_limits<double>::max(), least = 0x1p-1074;
  EXPECT_EQ(num::mul(largest, 2.0, Rounding::Zero), largest);
  EXPECT_EQ(num::mul(least, 0.25, Rounding::Up), least);
  EXPECT_EQ(num::mul(-least, 0.25, Rounding::Down), -least);
  EXPECT_TRUE(std::signbit(num::add(1.0, -1.0, Rounding::Down)));
  EXPECT_TRUE(std::isnan(num::sqrt(-1.0, Rounding::Up)));
  // Payloads are kept.
  EXPECT_EQ(bitsOf(num::add(num::doubleOf(0x7ff8000000001234U), 1.0)), 0x7ff8000000001234U);
}

TEST(NumArithTest, MinimumAndMaximum) {
  const float nan = floatOf(0x7fc12345U), inf = std::numeric_limits<float>::infinity();
  auto same = [](float got, float want) { EXPECT_EQ(bitsOf(got), bitsOf(want)) << got << " " << want; };
  const float canonical = floatOf(0x7fffffffU);
  same(num::min(-0.0f, 0.0f), -0.0f);
  same(num::min(0.0f, -0.0f), -0.0f);
  same(num::max(-0.0f, 0.0f), 0.0f);
  same(num::max(0.0f, -0.0f), 0.0f);
  same(num::max(-0.0f, -0.0f), -0.0f);
  same(num::min(nan, -3.0f), -3.0f);
  same(num::max(2.0f, nan), 2.0f);
  same(num::max(nan, nan), canonical);
  same(num::min(-inf, 1.0f), -inf);
  MinMax propagate;
  propagate.nan = true;
  same(num::min(nan, 1.0f, propagate), canonical);
  same(num::max(inf, nan, propagate), canonical);
  same(num::max(1.0f, 2.0f, propagate), 2.0f);
  MinMax xorsign;
  xorsign.abs = xorsign.xorsign = true;
  same(num::min(-2.0f, 3.0f, xorsign), -2.0f);
  same(num::min(-2.0f, -3.0f, xorsign), 2.0f);
  same(num::max(2.0f, -3.0f, xorsign), -3.0f);
  same(num::max(nan, -3.0f, xorsign), -3.0f);
  same(num::max(floatOf(0xffc00000U), -3.0f, xorsign), 3.0f);
  same(num::max(nan, nan, xorsign), canonical);
  xorsign.nan = true;
  same(num::max(nan, -3.0f, xorsign), canonical);
  MinMax magnitude;
  magnitude.abs = true;
  same(num::max(-5.0f, 3.0f, 4.0f, magnitude), 5.0f);
  same(num::min(-5.0f, nan, -4.0f, magnitude), 4.0f);
  same(num::min(3.0f, 1.0f, 2.0f, MinMax{}), 1.0f);
  MinMax flushing;
  flushing.ftz = true;
  same(num::max(0x1p-130f, -1.0f, flushing), 0.0f);
  same(num::min(-0x1p-130f, 1.0f, flushing), -0.0f);
  EXPECT_TRUE(std::signbit(num::min(0.0, -0.0)));
  EXPECT_FALSE(std::signbit(num::max(-0.0, 0.0)));
  EXPECT_EQ(num::min(std::nan(""), 2.0), 2.0);
  EXPECT_TRUE(std::isnan(num::max(std::nan(""), std::nan(""))));
}

TEST(NumArithTest, SignsAndProperties) {
  using num::Property;
  EXPECT_EQ(num::copysign(-0.0f, 3.0f), -3.0f);
  EXPECT_EQ(num::copysign(2.0, -3.0), 3.0);
  EXPECT_EQ(bitsOf(num::neg(floatOf(0x7fc00000U))), 0xffc00000U);
  struct {
    float value;
    bool finite, infinite, number, normal, subnormal;
  } cases[] = {{0.0f, true, false, true, true, false},
               {-0.0f, true, false, true, true, false},
               {1.0f, true, false, true, true, false},
               {0x1p-126f, true, false, true, true, false},
               {-0x1p-127f, true, false, true, false, true},
               {0x1p-149f, true, false, true, false, true},
               {-std::numeric_limits<float>::infinity(), false, true, true, false, false},
               {floatOf(0xff800001U), false, false, false, false, false}};
  for (const auto &it : cases) {
    EXPECT_EQ(num::testp(Property::Finite, it.value), it.finite);
    EXPECT_EQ(num::testp(Property::Infinite, it.value), it.infinite);
    EXPECT_EQ(num::testp(Property::Number, it.value), it.number);
    EXPECT_EQ(num::testp(Property::NotANumber, it.value), !it.number);
    EXPECT_EQ(num::testp(Property::Normal, it.value), it.normal);
    EXPECT_EQ(num::testp(Property::Subnormal, it.value), it.subnormal);
  }
  EXPECT_TRUE(num::testp(Property::Subnormal, 0x1p-1030));
  EXPECT_TRUE(num::testp(Property::Normal, 0x1p-130));
}

} // namespace
