// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Formats of 16 bits and fewer in every code and at every point where a rounding
// changes; the fast paths against the general one.

#include "NumReference.h"
#include "num/Format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace fp8emu::num;
using namespace fp8emu::num::test;

namespace {

constexpr Rounding kRoundings[] = {Rounding::NearestEven, Rounding::NearestAway, Rounding::Zero,
                                   Rounding::Down, Rounding::Up};
const Format *const kSigned[] = {&F16, &BF16, &E4M3, &E5M2, &E2M3, &E3M2, &E2M1, &TF32};
const double kInfinity = std::numeric_limits<double>::infinity();
const double kNaN = std::numeric_limits<double>::quiet_NaN();

/// A name for messages.
std::string describe(const Format &format) {
  return "e" + std::to_string(format.exponentBits) + "m" + std::to_string(format.mantissaBits);
}

TEST(NumFormatTest, ValuesOfKnownCodes) {
  struct {
    const Format &format;
    uint64_t code;
    double value;
  } cases[] = {{F16, 0x3c00, 1},
               {F16, 0x0001, 0x1p-24},
               {F16, 0x7bff, 65504},
               {F16, 0xfc00, -kInfinity},
               {F16, 0x03ff, 0x3ffp-24},
               {BF16, 0x3f80, 1},
               {BF16, 0x0001, 0x1p-133},
               {BF16, 0x7f7f, 0xffp120},
               {BF16, 0x7f80, kInfinity},
               {E4M3, 0x38, 1},
               {E4M3, 0x7e, 448},
               {E4M3, 0x01, 0x1p-9},
               {E4M3, 0xb8, -1},
               {E5M2, 0x3c, 1},
               {E5M2, 0x7b, 57344},
               {E5M2, 0x01, 0x1p-16},
               {E5M2, 0x7c, kInfinity},
               {E2M3, 0x1f, 7.5},
               {E2M3, 0x01, 0.125},
               {E2M3, 0x28, -1},
               {E3M2, 0x1f, 28},
               {E3M2, 0x01, 0.0625},
               {E3M2, 0x2c, -1},
               {E2M1, 0x7, 6},
               {E2M1, 0x1, 0.5},
               {E2M1, 0xa, -1},
               {TF32, 0x3f800000, 1},
               {TF32, 0x3f803fff, 1 + 0x1p-10},
               {TF32, 1 << 13, 0x1p-136},
               {UE8M0, 127, 1},
               {UE8M0, 0, 0x1p-127},
               {UE8M0, 254, 0x1p127},
               {UE4M3, 0x7e, 448},
               {UE4M3, 0xb8, 1},
               {F32, 0x00000001, 0x1p-149},
               {F32, 0x7f7fffff, 0xffffffp104},
               {F64, 1, 0x1p-1074}};
  for (const auto &it : cases)
    EXPECT_EQ(decode(it.format, it.code), it.value) << describe(it.format) << " " << it.code;
  for (auto [format, code] : std::initializer_list<std::pair<const Format *, uint64_t>>{{&F16, 0x7c01},
                                                                                        {&F16, 0xffff},
                                                                                        {&BF16, 0x7f81},
                                                                                        {&E4M3, 0x7f},
                                                                                        {&E4M3, 0xff},
                                                                                        {&E5M2, 0x7d},
                                                                                        {&E5M2, 0xfe},
                                                                                        {&UE8M0, 0xff},
                                                                                        {&UE4M3, 0x7f},
                                                                                        {&F32, 0xffc00000},
                                                                                        {&TF32, 0x7f802000}})
    EXPECT_TRUE(std::isnan(decode(*format, code))) << describe(*format) << " " << code;
}

TEST(NumFormatTest, EveryValueIsItsOwnRounding) {
  for (const Format *format : kSigned)
    for (uint64_t code = 0; code <= format->maxFiniteCode(); ++code)
      for (uint64_t sign : {uint64_t(0), format->signBit()})
        for (Rounding rounding : kRoundings) {
          uint64_t bits = (code << format->unusedBits) | sign;
          ASSERT_EQ(encode(*format, decode(*format, bits), rounding), bits) << describe(*format);
          ASSERT_EQ(encode(*format, decode(*format, bits), rounding, true), bits) << describe(*format);
        }
}

/// Between each two values: the middle, its neighbours, and points next to the ends.
TEST(NumFormatTest, RoundsBetweenEachTwoValues) {
  for (const Format *format : kSigned) {
    ValueList list(*format);
    const std::vector<double> &values = list.all();
    size_t step = values.size() > 40000 ? 61 : 1; // TF32
    for (size_t i = 0; i < values.size(); i += step) {
      double low = values[i];
      double high = i + 1 < values.size() ? values[i + 1] : 2 * low - values[i - 1];
      double middle = low + (high - low) / 2;
      for (double point : {std::nextafter(low, high), middle, std::nextafter(middle, low),
                           std::nextafter(middle, high), std::nextafter(high, low), 2 * high})
        for (double value : {point, -point})
          for (Rounding rounding : kRoundings) {
            uint64_t want = list.round(value, rounding);
            ASSERT_EQ(encode(*format, value, rounding), want)
                << describe(*format) << " " << value << " " << static_cast<int>(rounding);
            uint64_t limited = std::fabs(value) > values.back()
                                   ? format->maxFinite() | (value < 0 ? format->signBit() : 0)
                                   : want;
            ASSERT_EQ(encode(*format, value, rounding, true), limited) << describe(*format) << " " << value;
            ASSERT_EQ(encode(*format, value, rounding, false, true), value < 0 ? 0 : want);
          }
    }
  }
}

TEST(NumFormatTest, SpecialValues) {
  for (Rounding rounding : kRoundings) {
    EXPECT_EQ(encode(F16, kNaN, rounding), 0x7fffU);
    EXPECT_EQ(encode(BF16, -kNaN, rounding), 0x7fffU);
    EXPECT_EQ(encode(F32, kNaN, rounding), 0x7fffffffU);
    EXPECT_EQ(encode(TF32, kNaN, rounding), 0x7fffffffU);
    EXPECT_EQ(encode(E4M3, kNaN, rounding, true), 0x7fU);
    EXPECT_EQ(encode(E5M2, -kNaN, rounding, true), 0x7fU);
    // Formats without NaN: positive MAX_NORM.
    EXPECT_EQ(encode(E2M1, -kNaN, rounding, true), 0x7U);
    EXPECT_EQ(encode(E2M3, kNaN, rounding, true), 0x1fU);
    EXPECT_EQ(encode(E3M2, kNaN, rounding, true, true), 0x1fU);
    EXPECT_EQ(encode(F16, kInfinity, rounding), 0x7c00U);
    EXPECT_EQ(encode(F16, -kInfinity, rounding), 0xfc00U);
    EXPECT_EQ(encode(F16, -kInfinity, rounding, true), 0xfbffU);
    EXPECT_EQ(encode(BF16, kInfinity, rounding, true), 0x7f7fU);
    EXPECT_EQ(encode(TF32, kInfinity, rounding, true), 0x7f7fe000U);
    EXPECT_EQ(encode(E4M3, kInfinity, rounding, true), 0x7eU);
    EXPECT_EQ(encode(E5M2, -kInfinity, rounding, true), 0xfbU);
    EXPECT_EQ(encode(E2M1, -kInfinity, rounding, true), 0xfU);
    EXPECT_EQ(encode(F16, -0.0, rounding), 0x8000U);
    EXPECT_EQ(encode(F16, -0.0, rounding, false, true), 0U);
    EXPECT_EQ(encode(E4M3, -0.0, rounding, true), 0x80U);
    EXPECT_EQ(encode(F16, -kInfinity, rounding, false, true), 0U);
    EXPECT_EQ(encode(F16, kNaN, rounding, true, true), 0x7fffU);
  }
}

TEST(NumFormatTest, CastsOfTheProject) {
  // Saturating, NaN to 0x7f in both formats, -0 and subnormal numbers kept.
  auto e4m3 = [](double x) { return encode(E4M3, x, Rounding::NearestEven, true); };
  auto e5m2 = [](double x) { return encode(E5M2, x, Rounding::NearestEven, true); };
  EXPECT_EQ(e4m3(500), 0x7eU);
  EXPECT_EQ(e4m3(-464.5), 0xfeU);
  EXPECT_EQ(e4m3(0x1p-9), 0x01U);
  EXPECT_EQ(e4m3(0x1p-10), 0x00U);
  EXPECT_EQ(e4m3(0x1.8p-10), 0x01U);
  EXPECT_EQ(e5m2(1e9), 0x7bU);
  EXPECT_EQ(e5m2(-0x1p-17), 0x80U);
}

TEST(NumFormatTest, ScalesRoundUp) {
  auto up = [](double x) { return encode(UE8M0, x, Rounding::Up, true); };
  // A block's scale, amax / 448 or amax / 57344.
  EXPECT_EQ(up(448.0 / 448), 127U);
  EXPECT_EQ(up(449.0 / 448), 128U);
  EXPECT_EQ(up(57344.0 / 57344), 127U);
  EXPECT_EQ(up(0), 0U);
  EXPECT_EQ(up(kInfinity), 254U);
  EXPECT_EQ(up(kNaN), 255U);
  for (uint64_t code = 0; code < 255; ++code) {
    double value = decode(UE8M0, code);
    EXPECT_EQ(encode(UE8M0, value, Rounding::Up), code);
    EXPECT_EQ(encode(UE8M0, value, Rounding::Zero), code);
    EXPECT_EQ(encode(UE8M0, -value, Rounding::Zero), code); // the sign has no place
    EXPECT_EQ(encode(UE8M0, value * 1.0001, Rounding::Zero), code);
    EXPECT_EQ(encode(UE8M0, value * 1.0001, Rounding::Up, true), std::min<uint64_t>(code + 1, 254));
    EXPECT_EQ(encode(UE8M0, value * 1.9999, Rounding::Up), code + 1);
  }
  EXPECT_EQ(encode(UE8M0, 0x1p-140, Rounding::Up), 0U);
  EXPECT_EQ(encode(UE8M0, kInfinity, Rounding::Up), 255U);
  EXPECT_EQ(encode(UE8M0, kInfinity, Rounding::Zero), 255U);
  EXPECT_EQ(encode(UE8M0, kInfinity, Rounding::Zero, true), 254U);
}

TEST(NumFormatTest, FastPathsAgree) {
  for (uint32_t half = 0; half < 0x10000; ++half) {
    auto bits = static_cast<uint16_t>(half);
    double value = decode(F16, bits);
    if (std::isnan(value))
      ASSERT_EQ(bitsOf(halfToFloat(bits)), 0x7fffffffU);
    else
      ASSERT_EQ(bitsOf(halfToFloat(bits)), bitsOf(static_cast<float>(value))) << half;
    double brain = decode(BF16, bits);
    ASSERT_TRUE(std::isnan(brain) ? std::isnan(bfloatToFloat(bits)) : bfloatToFloat(bits) == brain) << half;
  }
  // All floats but for the lowest bits, and around each point where f16 rounds.
  for (uint64_t bits = 0; bits < (uint64_t(1) << 32); bits += 1021) {
    float value = floatOf(static_cast<uint32_t>(bits));
    ASSERT_EQ(floatToHalf(value), encode(F16, value, Rounding::NearestEven)) << bits;
    ASSERT_EQ(floatToBFloat(value), encode(BF16, value, Rounding::NearestEven)) << bits;
  }
  for (uint64_t top = 0; top < (uint64_t(1) << 32); top += 1 << 12)
    for (uint64_t low : {0x000U, 0x001U, 0xfffU}) {
      float value = floatOf(static_cast<uint32_t>(top | low));
      ASSERT_EQ(floatToHalf(value), encode(F16, value, Rounding::NearestEven)) << top;
      ASSERT_EQ(floatToBFloat(value), encode(BF16, value, Rounding::NearestEven)) << top;
    }
}

TEST(NumFormatTest, TablesAgree) {
  for (const Format *format : {&E4M3, &E5M2, &E2M3, &E3M2, &E2M1, &UE8M0, &UE4M3})
    for (unsigned code = 0; code < 256; ++code) {
      double value = decode(*format, code);
      float got = floatTable(*format)[code];
      if (std::isnan(value))
        EXPECT_EQ(bitsOf(got), 0x7fffffffU);
      else
        EXPECT_EQ(bitsOf(static_cast<double>(got)), bitsOf(value)) << describe(*format) << " " << code;
    }
}

TEST(NumFormatTest, DoublesRoundToFloats) {
  RandomDoubles random(7, -160, 130);
  ValueList list(F16);
  for (int i = 0; i < 1000000; ++i) {
    double value = random();
    ASSERT_EQ(encode(F32, value, Rounding::NearestEven), bitsOf(static_cast<float>(value))) << value;
    for (Rounding rounding : {Rounding::Zero, Rounding::Down, Rounding::Up})
      ASSERT_EQ(encode(F32, value, rounding), bitsOf(roundToFloat(value, rounding))) << value;
    ASSERT_EQ(encode(F64, value, Rounding::NearestEven), bitsOf(value));
  }
}

TEST(NumFormatTest, StochasticRoundingAddsBits) {
  // f16 and bf16 of an f32 drop 13 and 16 bits: an integer addition.
  RandomDoubles random(11, -13, 14);
  std::mt19937 bits(12);
  for (int i = 0; i < 200000; ++i) {
    auto value = static_cast<float>(random());
    auto draw = static_cast<uint32_t>(bits());
    uint32_t sum = (bitsOf(value) & 0x7fffffffU) + (draw & 0x1fffU);
    uint32_t half = ((sum >> 13) - (112U << 10)) | (value < 0 ? 0x8000U : 0);
    ASSERT_EQ(encodeStochastic(F16, value, draw, 13), half) << value;
    ASSERT_EQ(encodeStochastic(BF16, value, draw, 16), (bitsOf(value) + (draw & 0xffffU)) >> 16) << value;
  }
  // Of all draws as many round up as the value lies between its neighbours.
  for (auto [value, ups] : {std::pair{1.0 + 0.125 * 0.25, 16384U},
                            {1.0, 0U},
                            {-0x1p-9 * 0.75, 49152U},
                            {0x1p-60, 0U},
                            {1.0 + 0.125 * (1 - 0x1p-17), 65535U}}) {
    uint64_t low = encode(E4M3, value, Rounding::Zero, true);
    unsigned count = 0;
    for (uint32_t draw = 0; draw < 0x10000; ++draw)
      count += encodeStochastic(E4M3, value, draw, 16, true) == low + 1;
    EXPECT_EQ(count, ups) << value;
  }
  EXPECT_EQ(encodeStochastic(E2M1, 5.0, 0x80, 8, true), 7U);
  EXPECT_EQ(encodeStochastic(E2M1, 5.0, 0x7f, 8, true), 6U);
  EXPECT_EQ(encodeStochastic(E2M1, kNaN, 0, 8, true), 7U);
  EXPECT_EQ(encodeStochastic(E4M3, 460.0, 0xffff, 16, true), 0x7eU);
  EXPECT_EQ(encodeStochastic(F16, 65519.0, 0x1fff, 13), 0x7c00U);
  EXPECT_EQ(encodeStochastic(F16, -1.0, 0x1fff, 13, false, true), 0U);
  EXPECT_EQ(encodeStochastic(F16, kInfinity, 0, 13, true), 0x7bffU);
}

} // namespace
