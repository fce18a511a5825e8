// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tensor cores' sums: probes of the kind with which hardware was examined, and
// random operands against sums in wide integers.

#include "NumReference.h"
#include "num/DotProduct.h"
#include "num/Half.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

using namespace fp8emu::num;
using namespace fp8emu::num::test;

namespace {

using Operands = std::vector<float>;

const float kInf = std::numeric_limits<float>::infinity();

Sum truncating(TensorUnit unit, const Format &format, bool halfResult = false) {
  Sum sum;
  sum.model = SumModel::Truncating;
  sum.leastExponentA = sum.leastExponentB = format.minExponent();
  sum.truncation = truncation(unit, format, halfResult);
  return sum;
}

Sum inModel(SumModel model) {
  Sum sum;
  sum.model = model;
  return sum;
}

float run(const Sum &sum, float c, const Operands &a, const Operands &b) {
  return dot(sum, c, a.data(), b.data(), static_cast<unsigned>(a.size()));
}

using Places = std::vector<std::pair<unsigned, float>>;

/// Of K 32, with products of these values in these places.
float probe(const Sum &sum, float c, const Places &places) {
  Operands a(32, 0), b(32, 0);
  for (auto [place, value] : places) {
    // Each product as two factors in the range of E4M3.
    float factor = std::fabs(value) < 0x1p-6f ? 0x1p-6f : 1.0f;
    a[place] = factor;
    b[place] = value / factor;
  }
  return run(sum, c, a, b);
}

TEST(NumDotProductTest, HopperKeepsThirteenBitsOfFp8) {
  Sum sum = truncating(TensorUnit::HopperWarpgroup, E4M3);
  EXPECT_EQ(probe(sum, 0, {{0, 1.0f}, {1, 0x1p-13f}}), 1 + 0x1p-13f);
  EXPECT_EQ(probe(sum, 0, {{0, 1.0f}, {1, 0x1p-14f}}), 1.0f);
  // Each is lost, though four of them would count.
  EXPECT_EQ(probe(sum, 0, {{0, 1.0f}, {1, 0x1p-14f}, {2, 0x1p-14f}, {9, 0x1p-14f}, {31, 0x1p-14f}}), 1.0f);
  // Towards zero, of either sign.
  EXPECT_EQ(probe(sum, 0, {{0, 1.0f}, {1, -0x1p-14f}}), 1.0f);
  EXPECT_EQ(probe(sum, 0, {{0, -1.0f}, {1, -0x1.8p-13f}}), -1 - 0x1p-13f);
  // The addend is one of the terms, and is cut as they are.
  EXPECT_EQ(probe(sum, 0x1p-14f, {{0, 1.0f}}), 1.0f);
  EXPECT_EQ(probe(sum, 1024.0f, {{0, 0x1p-4f}}), 1024.0f);
  EXPECT_EQ(probe(sum, 1024.0f, {{0, 0x1p-3f}}), 1024.125f);
  EXPECT_EQ(probe(sum, 0x1.000002p0f, {}), 1.0f);
  // No bit below the 13th of the sum either.
  EXPECT_EQ(probe(sum, 0, {{0, 1.0f}, {1, 1.0f}, {2, 0x1p-13f}}), 2.0f);
  // Terms that cancel leave the others as they were cut.
  EXPECT_EQ(probe(sum, 0, {{0, 256.0f}, {1, -256.0f}, {2, 0x1p-5f}, {3, 0x1p-6f}}), 0x1p-5f);
  float nothing = probe(sum, 0, {{0, 1.0f}, {1, -1.0f}, {2, -0x1p-14f}});
  EXPECT_EQ(bitsOf(nothing), 0U);
}

TEST(NumDotProductTest, ProductsCountAsOfTheirFactorsExponents) {
  // 1.875 * 1.875 is above 2, yet aligned as of exponent 0; its own last bit is kept.
  Sum sum = truncating(TensorUnit::HopperWarpgroup, E4M3);
  Operands a(32, 0), b(32, 0);
  a[0] = b[0] = 1.875f;
  a[1] = 0x1p-6f;
  b[1] = 0x1p-7f;
  EXPECT_EQ(run(sum, 0, a, b), 3.515625f); // 13 bits below 2 do not hold 2^-13
  a[2] = 1.0f;
  b[2] = -1.75f;
  EXPECT_EQ(run(sum, 0, a, b), 1.765625f + 0x1p-13f); // but it was in the sum
  // A subnormal factor counts as of the least normal exponent: 2^-9 as 2^-6.
  Operands small(32, 0), ones(32, 0);
  small[0] = 0x1p-9f;
  ones[0] = 1.0f;
  EXPECT_EQ(run(sum, 0x1p-19f, small, ones), 0x1p-9f + 0x1p-19f);
  EXPECT_EQ(run(sum, 0x1p-20f, small, ones), 0x1p-9f);
  small[0] = 0x1p-6f;
  EXPECT_EQ(run(sum, 0x1p-20f, small, ones), 0x1p-6f);
}

TEST(NumDotProductTest, AdaAddsSixteenProductsAtATime) {
  Sum ada = truncating(TensorUnit::Ada, E4M3), hopper = truncating(TensorUnit::HopperWarpgroup, E4M3);
  // The second half cancels the first, whose small product was lost by then.
  Places places = {{0, 256.0f}, {1, 0x1p-6f}, {16, -256.0f}};
  EXPECT_EQ(probe(ada, 0, places), 0.0f);
  EXPECT_EQ(probe(hopper, 0, places), 0.0f);
  // Only one of the halves has a large product.
  places = {{0, 0x1p-6f}, {16, 256.0f}, {17, -256.0f}};
  EXPECT_EQ(probe(ada, 0, places), 0.0f);
  places = {{0, 256.0f}, {1, -256.0f}, {16, 0x1p-6f}};
  EXPECT_EQ(probe(ada, 0, places), 0x1p-6f);
  EXPECT_EQ(probe(hopper, 0, places), 0.0f);
}

TEST(NumDotProductTest, WiderUnitsKeepMore) {
  // One bit less than they keep is cut off; results in f32 hide what is below 2^-23.
  auto lost = [](TensorUnit unit, const Format &format, int exponent) {
    Sum sum = truncating(unit, format);
    Operands a(8, 0), b(8, 0);
    a[0] = b[0] = 1.0f;
    a[1] = -1.0f;
    b[1] = 1.0f;
    a[2] = std::ldexp(1.0f, exponent / 2);
    b[2] = std::ldexp(1.0f, exponent - exponent / 2);
    return run(sum, 0, a, b) == 0;
  };
  EXPECT_FALSE(lost(TensorUnit::Ampere, F16, -24));
  EXPECT_TRUE(lost(TensorUnit::Ampere, F16, -25));
  EXPECT_FALSE(lost(TensorUnit::Ada, BF16, -24));
  EXPECT_TRUE(lost(TensorUnit::Ada, BF16, -25));
  for (TensorUnit unit : {TensorUnit::HopperWarp, TensorUnit::HopperWarpgroup, TensorUnit::Blackwell})
    for (const Format *format : {&F16, &BF16, &TF32}) {
      EXPECT_FALSE(lost(unit, *format, -25));
      EXPECT_TRUE(lost(unit, *format, -26));
    }
  EXPECT_FALSE(lost(TensorUnit::Blackwell, E5M2, -25));
  EXPECT_TRUE(lost(TensorUnit::Blackwell, E5M2, -26));
  EXPECT_EQ(truncation(TensorUnit::Ampere, TF32, false).group, 4U);
  EXPECT_EQ(truncation(TensorUnit::Ada, F16, false).group, 8U);
  EXPECT_EQ(truncation(TensorUnit::HopperWarpgroup, TF32, false).group, 8U);
  EXPECT_EQ(truncation(TensorUnit::HopperWarpgroup, F16, false).group, 16U);
  EXPECT_EQ(truncation(TensorUnit::Blackwell, E4M3, false).group, 32U);
}

TEST(NumDotProductTest, Fp8ByWayOfHalf) {
  Sum sum = truncating(TensorUnit::HopperWarp, E4M3);
  // The addend comes last, to nearest even.
  EXPECT_EQ(probe(sum, 0x1p24f, {{0, 1.0f}}), 0x1p24f);
  EXPECT_EQ(probe(sum, 0x1p24f, {{0, 1.0f}, {3, 2.0f}}), 0x1p24f + 4);
  EXPECT_EQ(probe(sum, 1.0f, {{0, 0x1p-12f}, {1, 0x1p-12f}}), 1 + 0x1p-11f);
  // Half of the products are added first: those with k % 4 < 2.
  Sum half = truncating(TensorUnit::HopperWarp, E4M3, true);
  Operands a(32, 0), b(32, 0);
  a[0] = b[0] = 1.0f;
  a[5] = b[5] = 0x1p-5f; // with 1 in the first: in f16 1 + 2^-10
  a[2] = b[2] = 0x1p-6f;
  a[3] = b[3] = 0x1p-6f; // 2^-12 twice in the second: half a unit, to even
  EXPECT_EQ(dotHalf(half, 0, a.data(), b.data(), 32), 0x3c02);
  std::swap(a[5], a[2]);
  std::swap(b[5], b[2]);
  // 1 + 2^-12 is 1, then 2^-10 + 2^-12 rounds to one unit.
  EXPECT_EQ(dotHalf(half, 0, a.data(), b.data(), 32), 0x3c01);
  EXPECT_EQ(dotHalf(half, 0xbc00, a.data(), b.data(), 32), 0x1400); // minus one, at the end
}

/// The sum of one group as its definition says, in integers of 128 bits.
float referenceGroup(const Sum &sum, float c, const float *a, const float *b, unsigned k) {
  struct Term {
    __extension__ using Wide = __int128;
    Wide digits; // times 2^(exponent - 60)
    int exponent;
  };
  std::vector<Term> terms;
  auto split = [](float value, int least) {
    int exponent = std::max(std::ilogb(value), least);
    return std::pair(static_cast<int64_t>(std::ldexp(static_cast<double>(value), 30 - exponent)), exponent);
  };
  int largest = sum.truncation.leastExponent;
  for (unsigned i = 0; i < k; ++i) {
    if (a[i] == 0 || b[i] == 0)
      continue;
    auto [x, xExponent] = split(a[i], sum.leastExponentA);
    auto [y, yExponent] = split(b[i], sum.leastExponentB);
    terms.push_back({static_cast<Term::Wide>(x) * y, xExponent + yExponent});
  }
  if (c != 0) {
    auto [digits, exponent] = split(c, -126);
    terms.push_back({static_cast<Term::Wide>(digits) * (1 << 30), exponent});
  }
  for (const Term &term : terms)
    largest = std::max(largest, term.exponent);
  Term::Wide total = 0;
  for (const Term &term : terms) {
    int cut = std::min(60 - sum.truncation.fractionBits + largest - term.exponent, 126);
    Term::Wide size = (term.digits < 0 ? -term.digits : term.digits) >> cut;
    total += term.digits < 0 ? -size : size;
  }
  // To `resultBits` below its leading one, or below 2^-126.
  Term::Wide size = total < 0 ? -total : total;
  int unit = largest - sum.truncation.fractionBits, lead = unit - 1;
  for (Term::Wide rest = size; rest != 0; rest /= 2)
    ++lead;
  int cut = std::max(lead, -126) - sum.truncation.resultBits - unit;
  if (cut > 0)
    size = size >> cut << cut;
  double value = std::ldexp(static_cast<double>(size), unit);
  return static_cast<float>(total < 0 && value != 0 ? -value : value);
}

/// Of a format, with exponents in a range at random that most sums cut something.
Operands randomOperands(std::mt19937 &random, const Format &format, unsigned k) {
  Operands result;
  int spread = static_cast<int>(random() % 12);
  while (result.size() < k) {
    double value = std::ldexp(1 + static_cast<double>(random() % 1024) / 1024,
                              static_cast<int>(random() % (2 * spread + 1)) - spread);
    if (random() % 16 == 0)
      value = 0;
    uint64_t bits = encode(format, random() & 1 ? value : -value, Rounding::NearestEven, true);
    result.push_back(static_cast<float>(decode(format, bits)));
  }
  return result;
}

TEST(NumDotProductTest, TruncatingAsDefined) {
  std::mt19937 random(31);
  for (TensorUnit unit :
       {TensorUnit::Ampere, TensorUnit::Ada, TensorUnit::HopperWarpgroup, TensorUnit::Blackwell})
    for (const Format *format : {&F16, &BF16, &TF32, &E4M3, &E5M2}) {
      Sum sum = truncating(unit, *format);
      for (int i = 0; i < 2000; ++i) {
        Operands a = randomOperands(random, *format, 32), b = randomOperands(random, *format, 32);
        float c = i % 5 == 0 ? 0 : randomOperands(random, F32, 1)[0];
        float want = c;
        for (unsigned j = 0; j < 32; j += sum.truncation.group)
          want = referenceGroup(sum, want, &a[j], &b[j], sum.truncation.group);
        ASSERT_EQ(bitsOf(run(sum, c, a, b)), bitsOf(want)) << static_cast<int>(unit) << " " << i;
      }
    }
}

TEST(NumDotProductTest, ExactRoundsOnce) {
  std::mt19937 random(32);
  Sum sum = inModel(SumModel::ExactOnce);
  for (const Format *format : {&F16, &BF16, &TF32, &E4M3, &E5M2})
    for (int i = 0; i < 5000; ++i) {
      Operands a = randomOperands(random, *format, 16), b = randomOperands(random, *format, 16);
      float c = randomOperands(random, F32, 1)[0];
      Exact exact = c; // spreads of 2^±24 and 24 bits stay below 113
      for (unsigned j = 0; j < 16; ++j)
        exact += static_cast<Exact>(a[j]) * b[j];
      ASSERT_EQ(run(sum, c, a, b), static_cast<float>(exact)) << i;
    }
  // From end to end of the range, and back.
  EXPECT_EQ(run(sum, 1.0f, {0x1p127f, -0x1p127f, 0x1p-133f}, {0x1p127f, 0x1p127f, 0x1p-133f}), 1.0f);
  EXPECT_EQ(run(sum, 0.0f, {0x1p127f, -0x1p127f, 0x1p-40f}, {0x1p127f, 0x1p127f, 0x1p-60f}), 0x1p-100f);
  EXPECT_EQ(run(sum, 0.0f, {0x1p-133f, 0x1p-133f}, {0x1p-133f, -0x1p-133f}), 0.0f);
  EXPECT_EQ(run(sum, -0x1p-149f, {0x1p-75f}, {0x1p-75f}), 0.0f); // a half: to even
  EXPECT_EQ(run(sum, -0x1p-149f, {0x1p-75f, -0x1p-133f}, {0x1p-75f, 0x1p-133f}), -0x1p-149f);
  EXPECT_EQ(run(sum, 1.0f, {0x1p-12f, 0x1p-60f}, {0x1p-12f, 0x1p-60f}), 1 + 0x1p-23f);
  EXPECT_EQ(run(sum, 1.0f, {0x1p-12f, -0x1p-60f}, {0x1p-12f, 0x1p-60f}), 1.0f);
  EXPECT_EQ(run(sum, 0, {0x1p127f, 0x1p127f}, {1.0f, 1.0f}), kInf);
  EXPECT_EQ(run(sum, -0x1p127f, {0x1p127f, 0x1p127f}, {1.0f, 1.0f}), 0x1p127f);
}

TEST(NumDotProductTest, InOrderRoundsEachTime) {
  Sum sum = inModel(SumModel::KOrderF32);
  EXPECT_EQ(run(sum, 0x1p24f, {1, 1, 1}, {1, 1, 1}), 0x1p24f);
  EXPECT_EQ(run(sum, 0, {1, 1, 0x1p12f}, {1, 1, 0x1p12f}), 0x1p24f + 2);
  // A product beyond f32 is not infinite yet.
  EXPECT_EQ(run(sum, -0x1.fffffep127f, {0x1p64f}, {0x1p64f}), 0x1p104f);
  EXPECT_EQ(run(sum, 0x1p-149f, {0x1p-75f}, {0x1.8p-75f}), 0x1p-148f);
  std::mt19937 random(33);
  for (int i = 0; i < 5000; ++i) {
    Operands a = randomOperands(random, TF32, 16), b = randomOperands(random, TF32, 16);
    float c = randomOperands(random, F32, 1)[0], want = c;
    for (unsigned j = 0; j < 16; ++j)
      want = std::fma(a[j], b[j], want);
    ASSERT_EQ(bitsOf(run(sum, c, a, b)), bitsOf(want));
  }
}

TEST(NumDotProductTest, SpecialValuesInAllModels) {
  for (SumModel model : {SumModel::KOrderF32, SumModel::ExactOnce, SumModel::Truncating}) {
    Sum sum = truncating(TensorUnit::HopperWarpgroup, E5M2);
    sum.model = model;
    EXPECT_EQ(run(sum, 0, {kInf, 1}, {2, 1}), kInf);
    EXPECT_EQ(run(sum, -kInf, {1, 1}, {2, 1}), -kInf);
    EXPECT_EQ(bitsOf(run(sum, 0, {kInf, kInf}, {2, -1})), 0x7fffffffU);
    EXPECT_EQ(bitsOf(run(sum, 0, {kInf, 1}, {0, 1})), 0x7fffffffU);
    EXPECT_EQ(bitsOf(run(sum, kInf, {kInf, 1}, {-1, 1})), 0x7fffffffU);
    EXPECT_EQ(bitsOf(run(sum, std::nanf(""), {1, 1}, {1, 1})), 0x7fffffffU);
    EXPECT_EQ(run(sum, 0, {}, {}), 0.0f);
    Operands a = {kInf}, b = {-1};
    EXPECT_EQ(dotHalf(sum, 0, a.data(), b.data(), 1), 0xfc00);
    EXPECT_EQ(dotHalf(sum, 0x7c00, a.data(), b.data(), 1), 0x7fff);
  }
}

TEST(NumDotProductTest, AGroupBeyondTheRangeStaysInfinite) {
  // K is of two groups: 2^200 and -2^200, in f16 2^20 and -2^20, are none of them finite.
  const Operands a = {0x1p100f, 0, 0, 0, 0, 0, 0, 0, -0x1p100f, 0, 0, 0, 0, 0, 0, 0};
  const Operands b = {0x1p100f, 0, 0, 0, 0, 0, 0, 0, 0x1p100f, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(run(truncating(TensorUnit::Ampere, BF16), 0, a, b), kInf);
  Operands halfA = a, halfB = b;
  for (Operands *operands : {&halfA, &halfB})
    for (float &value : *operands)
      value *= 0x1p-90f;
  EXPECT_EQ(
      dotHalf(truncating(TensorUnit::Ampere, F16, /*halfResult=*/true), 0, halfA.data(), halfB.data(), 16),
      0x7C00);
}

TEST(NumDotProductTest, HalfResults) {
  Operands a = {1, 0x1p-6f}, b = {1, 0x1p-5f};
  // 1 + 2^-11: a tie, to even; with the addend's 2^-14 above it.
  for (SumModel model : {SumModel::KOrderF32, SumModel::ExactOnce, SumModel::Truncating}) {
    Sum sum = truncating(TensorUnit::Blackwell, F16, true);
    sum.model = model;
    EXPECT_EQ(dotHalf(sum, 0, a.data(), b.data(), 2), 0x3c00);
    EXPECT_EQ(dotHalf(sum, 0x0400, a.data(), b.data(), 2), 0x3c01);
    EXPECT_EQ(dotHalf(sum, 0x7bff, a.data(), b.data(), 2), 0x7bff);
  }
}

TEST(NumDotProductTest, BlockScales) {
  Operands a(32, 1), b(32, 1);
  for (SumModel model : {SumModel::KOrderF32, SumModel::ExactOnce, SumModel::Truncating}) {
    Sum sum = truncating(TensorUnit::Blackwell, E4M3);
    sum.model = model;
    sum.truncation = scaledTruncation(32);
    float scaleA = 0x1p-10f, scaleB = 0x1p3f;
    EXPECT_EQ(dotScaled(sum, 0.5f, a.data(), b.data(), 32, &scaleA, &scaleB, 32), 0.75f);
    scaleA = 0x1p-127f;
    scaleB = 0x1p127f;
    EXPECT_EQ(dotScaled(sum, 0, a.data(), b.data(), 32, &scaleA, &scaleB, 32), 32.0f);
    scaleA = std::nanf("");
    EXPECT_EQ(bitsOf(dotScaled(sum, 0, a.data(), b.data(), 32, &scaleA, &scaleB, 32)), 0x7fffffffU);
  }
  // NVFP4: 64 values of E2M1, a scale of UE4M3 for each 16 of them.
  Operands x(64, 1.5f), y(64, 3);
  std::array<float, 4> scales = {448, 1, 0.5f, 0.25f}, ones = {1, 1, 1, 1};
  for (SumModel model : {SumModel::KOrderF32, SumModel::ExactOnce, SumModel::Truncating}) {
    Sum sum;
    sum.model = model;
    sum.truncation = scaledTruncation(64);
    float want = 72.0f * (448 + 1 + 0.5f + 0.25f);
    EXPECT_EQ(dotScaled(sum, 0, x.data(), y.data(), 64, scales.data(), ones.data(), 16), want);
  }
  // 35 bits below the largest scales' exponent.
  Sum sum;
  sum.model = SumModel::Truncating;
  sum.truncation = scaledTruncation(64);
  Operands one(64, 0), other(64, 0);
  one[0] = other[0] = 1;
  one[16] = -1;
  other[16] = 1;
  one[32] = other[32] = 0.5f;
  std::array<float, 4> first = {256, 256, 0x1p-9f, 1}, second = {256, 256, 0x1p-9f, 1};
  EXPECT_EQ(dotScaled(sum, 0, one.data(), other.data(), 64, first.data(), second.data(), 16), 0);
  second[2] = 0x1p-8f;
  EXPECT_EQ(dotScaled(sum, 0, one.data(), other.data(), 64, first.data(), second.data(), 16), 0x1p-19f);
}

TEST(NumDotProductTest, Integers) {
  const std::array<int8_t, 4> a = {127, -128, 3, 0};
  const std::array<uint8_t, 4> b = {255, 255, 1, 9};
  EXPECT_EQ(dotInteger(10, a.data(), b.data(), 4, false), 10 - 255 + 3);
  EXPECT_EQ(dotInteger(std::numeric_limits<int32_t>::min(), a.data(), b.data(), 2, true),
            std::numeric_limits<int32_t>::min());
  EXPECT_EQ(dotInteger(std::numeric_limits<int32_t>::min(), a.data(), b.data(), 2, false), 2147483393);
  EXPECT_EQ(dotInteger(std::numeric_limits<int32_t>::max(), b.data(), b.data(), 1, true),
            std::numeric_limits<int32_t>::max());
}

} // namespace
