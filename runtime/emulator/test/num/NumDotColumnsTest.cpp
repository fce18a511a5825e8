// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums by vectors beside those of one element at a time, which NumDotProductTest examines.

#include "num/Bits.h"
#include "num/DotColumns.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

using namespace fp8emu::num;

namespace {

using Operands = std::vector<float>;

/// How far numbers lie apart: exponents within so many of `middle`, or any bits of the format.
struct Spread {
  int middle, width;
};
constexpr Spread kAnyBits = {0, 0};
const Spread kSpreads[] = {kAnyBits, {0, 1}, {0, 6}, {0, 14}, {-50, 30}, {-100, 40}, {100, 28}};

float randomValue(std::mt19937 &random, const Format &format, Spread spread) {
  if (spread.width == kAnyBits.width)
    return static_cast<float>(decode(format, random() & ((uint64_t(1) << format.width()) - 1)));
  if (random() % 8 == 0)
    return random() & 1 ? 0.0f : -0.0f;
  double value =
      std::ldexp(1 + static_cast<double>(random() % (1 << 24)) / (1 << 24),
                 static_cast<int>(random() % (2 * spread.width + 1)) - spread.width + spread.middle);
  uint64_t bits = encode(format, random() & 1 ? value : -value, Rounding::NearestEven, true);
  return static_cast<float>(decode(format, bits));
}

Operands randomOperands(std::mt19937 &random, const Format &format, Spread spread, unsigned count) {
  Operands result(count);
  for (float &value : result)
    value = randomValue(random, format, spread);
  return result;
}

Sum makeSum(SumModel model, TensorUnit unit, const Format &a, const Format &b) {
  Sum sum;
  sum.model = model;
  sum.leastExponentA = a.minExponent();
  sum.leastExponentB = b.minExponent();
  sum.truncation = truncation(unit, a, false);
  return sum;
}

void expectTheSame(const Sum &sum, const Operands &row, const Operands &columns, const Operands &addends,
                   const float *scale = nullptr, const float *scales = nullptr) {
  auto k = static_cast<unsigned>(row.size()), count = static_cast<unsigned>(addends.size());
  ASSERT_TRUE(DotColumns::has(sum, k, scales));
  Operands got = addends;
  DotColumns(sum, columns.data(), count, k).dot(row.data(), got.data(), scale, scales);
  for (unsigned i = 0; i < count; ++i) {
    const float *column = columns.data() + i * k;
    float want = scales ? dotScaled(sum, addends[i], row.data(), column, k, scale, scales + i, k)
                        : dot(sum, addends[i], row.data(), column, k);
    ASSERT_EQ(bitsOf(got[i]), bitsOf(want)) << "column " << i << ": " << got[i] << ", expected " << want;
  }
}

TEST(NumDotColumnsTest, EachColumnIsTheDotProduct) {
  const unsigned seed = 51;
  std::mt19937 random(seed);
  for (SumModel model : {SumModel::Truncating, SumModel::KOrderF32})
    for (TensorUnit unit :
         {TensorUnit::Ampere, TensorUnit::Ada, TensorUnit::HopperWarpgroup, TensorUnit::Blackwell})
      for (const Format *format : {&F16, &BF16, &TF32, &E4M3, &E5M2, &E2M3, &E2M1})
        for (int i = 0; i < 400; ++i) {
          const Format &other = format->width() <= 8 && i % 3 == 0 ? E5M2 : *format;
          Spread spread = kSpreads[random() % std::size(kSpreads)];
          unsigned k = 8U << random() % 3, count = 1 + random() % 40;
          Operands row = randomOperands(random, *format, spread, k);
          Operands columns = randomOperands(random, other, spread, k * count);
          Spread ofSums = {2 * spread.middle, spread.width ? 1 + static_cast<int>(random() % 20) : 0};
          Operands addends =
              i % 4 ? randomOperands(random, F32, ofSums, count) : Operands(count, i % 8 ? 0.0f : -0.0f);
          SCOPED_TRACE("seed " + std::to_string(seed) + ", unit " + std::to_string(int(unit)) + ", round " +
                       std::to_string(i));
          expectTheSame(makeSum(model, unit, *format, other), row, columns, addends);
          if (HasFatalFailure())
            return;
        }
}

TEST(NumDotColumnsTest, TermsAsLargeAsTheyCanBe) {
  // All of the sum's bits are used: 32 products of the largest numbers, and of one sign.
  for (const Format *format : {&E4M3, &E5M2, &F16, &BF16})
    for (TensorUnit unit : {TensorUnit::Ada, TensorUnit::HopperWarpgroup, TensorUnit::Blackwell})
      for (float size : {1.875f, 1.75f, 1.9921875f})
        for (float sign : {1.0f, -1.0f})
          expectTheSame(makeSum(SumModel::Truncating, unit, *format, *format), Operands(32, size),
                        Operands(size_t(32) * 16, sign * size), Operands(16, sign * 1.9999999f));
}

TEST(NumDotColumnsTest, BlockScales) {
  const unsigned seed = 52;
  std::mt19937 random(seed);
  for (int i = 0; i < 3000; ++i) {
    const Format &format = i % 2 ? E4M3 : E5M2;
    Sum sum = makeSum(SumModel::Truncating, TensorUnit::Blackwell, format, format);
    sum.truncation = scaledTruncation(32);
    Spread spread = kSpreads[random() % 4];
    unsigned count = 1 + random() % 24;
    // Any scale at times, NaN among them.
    int width = i % 5 ? 5 : 128;
    Operands scales(count + 1);
    for (float &scale : scales)
      scale = floatTable(UE8M0)[std::min(255U, static_cast<unsigned>(std::max(0, 127 - width)) +
                                                   static_cast<unsigned>(random() % (2 * width + 1)))];
    Operands row = randomOperands(random, format, spread, 32);
    Operands columns = randomOperands(random, format, spread, 32 * count);
    Operands addends = randomOperands(random, F32, {0, 20}, count);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(i));
    expectTheSame(sum, row, columns, addends, &scales[count], scales.data());
    if (HasFatalFailure())
      return;
  }
}

} // namespace
