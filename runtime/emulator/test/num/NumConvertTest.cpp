// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversions with integers against quad precision and wide integers.

#include "NumReference.h"
#include "num/Convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace fp8emu::num;
using namespace fp8emu::num::test;

namespace {

__extension__ using Wide = __int128;

constexpr Rounding kRoundings[] = {Rounding::NearestEven, Rounding::Zero, Rounding::Down, Rounding::Up};

/// |value| < 2^100.
Wide roundWide(Exact value, Rounding rounding) {
  auto low = static_cast<Wide>(value);
  if (static_cast<Exact>(low) > value)
    --low; // the floor
  Exact rest = value - static_cast<Exact>(low);
  if (rest == 0)
    return low;
  switch (rounding) {
  case Rounding::Zero:
    return value < 0 ? low + 1 : low;
  case Rounding::Down:
    return low;
  case Rounding::Up:
    return low + 1;
  default:
    return rest > 0.5 || (rest == 0.5 && low % 2 != 0) ? low + 1 : low;
  }
}

template <typename Int, typename Float>
Int referenceInteger(Float value, Rounding rounding) {
  Wide low = std::numeric_limits<Int>::min(), high = std::numeric_limits<Int>::max();
  if (std::isnan(value)) // of f64 or 64 bits the lone top bit, else 0
    return sizeof(Float) == 8 || sizeof(Int) == 8 ? static_cast<Int>(Wide(1) << (8 * sizeof(Int) - 1)) : 0;
  if (std::fabs(value) > 0x1p90)
    return static_cast<Int>(value < 0 ? low : high);
  Wide rounded = roundWide(value, rounding);
  return static_cast<Int>(rounded < low ? low : (rounded > high ? high : rounded));
}

template <typename Int, typename Float>
void checkInteger(Float value) {
  for (Rounding rounding : kRoundings)
    ASSERT_EQ(toInteger<Int>(value, rounding), (referenceInteger<Int, Float>(value, rounding)))
        << std::hexfloat << value << " to " << sizeof(Int) << " " << static_cast<int>(rounding);
}

template <typename Float>
void checkIntegers(Float value) {
  checkInteger<int8_t>(value);
  checkInteger<uint8_t>(value);
  checkInteger<int16_t>(value);
  checkInteger<uint16_t>(value);
  checkInteger<int32_t>(value);
  checkInteger<uint32_t>(value);
  checkInteger<int64_t>(value);
  checkInteger<uint64_t>(value);
}

TEST(NumConvertTest, FloatsToIntegers) {
  for (float value : manyFloats(50000, 3))
    checkIntegers(value);
  for (float value : manyFloats(50000, 4))
    checkIntegers(static_cast<double>(value));
  RandomDoubles random(5, -3, 66);
  for (int i = 0; i < 50000 && !HasFatalFailure(); ++i) {
    double value = random();
    checkIntegers(value);
    checkIntegers(static_cast<float>(value));
  }
  // About each limit, and halves.
  for (int power : {7, 8, 15, 16, 31, 32, 63, 64})
    for (double add : {-1.5, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2048.0, -2048.0})
      for (double sign : {1.0, -1.0}) {
        checkIntegers(sign * (std::ldexp(1.0, power) + add));
        checkIntegers(static_cast<float>(sign * (std::ldexp(1.0, power) + add)));
      }
  EXPECT_EQ(toInteger<int32_t>(std::nanf(""), Rounding::Zero), 0);
  EXPECT_EQ(toInteger<int32_t>(std::nan(""), Rounding::Zero), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(toInteger<uint64_t>(std::nanf(""), Rounding::Zero), uint64_t(1) << 63);
}

/// The float of that rounding, by trying its neighbours.
template <typename Float>
Float referenceFloat(Wide integer, Rounding rounding) {
  auto value = static_cast<Exact>(integer);
  auto near = static_cast<Float>(integer); // within one unit
  Float below = std::nextafter(near, Float(-1e30)), above = std::nextafter(near, Float(1e30));
  Float lower = 0, upper = 0;
  for (Float candidate : {below, near, above})
    if (static_cast<Exact>(candidate) <= value)
      lower = candidate;
  for (Float candidate : {above, near, below})
    if (static_cast<Exact>(candidate) >= value)
      upper = candidate;
  if (lower == upper)
    return lower;
  switch (rounding) {
  case Rounding::Zero:
    return value < 0 ? upper : lower;
  case Rounding::Down:
    return lower;
  case Rounding::Up:
    return upper;
  default: {
    Exact down = value - static_cast<Exact>(lower), up = static_cast<Exact>(upper) - value;
    bool lowerIsEven = sizeof(Float) == 4 ? (bitsOf(static_cast<float>(lower)) & 1) == 0
                                          : (bitsOf(static_cast<double>(lower)) & 1) == 0;
    return down < up || (down == up && lowerIsEven) ? lower : upper;
  }
  }
}

template <typename Int>
void checkFloats(Int value) {
  for (Rounding rounding : kRoundings) {
    ASSERT_EQ(integerToFloat(value, rounding), referenceFloat<float>(value, rounding)) << int64_t(value);
    ASSERT_EQ(integerToDouble(value, rounding), referenceFloat<double>(value, rounding)) << int64_t(value);
  }
}

TEST(NumConvertTest, IntegersToFloats) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 100000 && !HasFatalFailure(); ++i) {
    uint64_t bits = random() >> (random() % 64);
    if (bits & 2) // runs of equal bits: ties and carries
      bits |= (uint64_t(1) << (random() % 60)) - 1;
    checkFloats(bits);
    checkFloats(bits + 1);
    checkFloats(static_cast<int64_t>(bits));
    checkFloats(static_cast<int64_t>(~bits));
    checkFloats(static_cast<uint32_t>(bits));
    checkFloats(static_cast<int32_t>(bits));
  }
  for (uint64_t edge : {uint64_t(0), ~uint64_t(0), uint64_t(1) << 63, (uint64_t(1) << 63) - 1}) {
    checkFloats(edge);
    checkFloats(static_cast<int64_t>(edge));
  }
  for (int value = -128; value < 256; ++value)
    ASSERT_EQ(integerToFloat(static_cast<int16_t>(value), Rounding::Up), static_cast<float>(value));
}

TEST(NumConvertTest, IntegersToHalfRoundOnce) {
  ValueList half(F16), brain(BF16);
  std::mt19937_64 random(8);
  for (int i = 0; i < 100000; ++i) {
    auto value = static_cast<int64_t>(random() >> (random() % 64));
    value = random() & 1 ? -value : value;
    for (Rounding rounding : kRoundings) {
      ASSERT_EQ(integerToFormat(BF16, value, rounding), value == 0 ? 0 : brain.round(value, rounding))
          << value;
      auto small = static_cast<int32_t>(value % 100000);
      ASSERT_EQ(integerToFormat(F16, small, rounding), small == 0 ? 0 : half.round(small, rounding)) << small;
    }
  }
  // Just above a tie of bf16 by the last of 64 bits.
  EXPECT_EQ(integerToFormat(BF16, uint64_t(0x8080000000000001U), Rounding::NearestEven), 0x5f01U);
  EXPECT_EQ(integerToFormat(BF16, uint64_t(0x8080000000000000U), Rounding::NearestEven), 0x5f00U);
}

TEST(NumConvertTest, IntegralValues) {
  for (float value : manyFloats(100000, 9))
    for (Rounding rounding : kRoundings) {
      float got = roundIntegral(value, rounding);
      if (std::isnan(value)) {
        ASSERT_EQ(bitsOf(got), 0x7fffffffU);
        continue;
      }
      float want = rounding == Rounding::Down   ? std::floor(value)
                   : rounding == Rounding::Up   ? std::ceil(value)
                   : rounding == Rounding::Zero ? std::trunc(value)
                                                : std::nearbyint(value);
      ASSERT_EQ(bitsOf(got), bitsOf(want)) << std::hexfloat << value;
      ASSERT_EQ(bitsOf(roundIntegral(static_cast<double>(value), rounding)),
                bitsOf(static_cast<double>(want)));
    }
  EXPECT_EQ(bitsOf(roundIntegral(-0.25f, Rounding::NearestEven)), 0x80000000U);
  EXPECT_EQ(roundIntegral(2.5, Rounding::NearestEven), 2.0);
  EXPECT_EQ(roundIntegral(2.5, Rounding::NearestAway), 3.0);
  EXPECT_EQ(roundIntegral(0x1p60, Rounding::Up), 0x1p60);
}

TEST(NumConvertTest, SaturatesIntegers) {
  EXPECT_EQ(saturateInteger<int8_t>(int32_t(-300)), -128);
  EXPECT_EQ(saturateInteger<uint8_t>(int32_t(-300)), 0);
  EXPECT_EQ(saturateInteger<uint8_t>(int64_t(300)), 255);
  EXPECT_EQ(saturateInteger<int32_t>(uint64_t(1) << 40), std::numeric_limits<int32_t>::max());
  EXPECT_EQ(saturateInteger<int64_t>(~uint64_t(0)), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(saturateInteger<uint64_t>(int64_t(-1)), 0U);
  EXPECT_EQ(saturateInteger<int16_t>(int32_t(-17)), -17);
}

} // namespace
