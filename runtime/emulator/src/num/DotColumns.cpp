// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A product of two operands of at most 12 significant bits is exact in f32, and a term of a truncating sum
// fits 32 bits once it is cut. Other numbers (far from 1, infinities and NaNs) are left to the model of
// DotProduct.cpp, column by column.

#include "DotColumns.h"

#include "Arith.h"

#include <cassert>
#include <cstring>

using namespace fp8emu;
using namespace fp8emu::num;

namespace {

/// The exponent of a number that is 0, and less than any sum of two others.
constexpr int kNone = -4000;
/// Exponents of operands whose products have all their bits in a normal number of f32.
constexpr int kNarrow = 62;
/// The exponent of a group's largest term beyond which its sum may not fit f32.
constexpr int kLargest = 124;

/// Subnormal operands count as of the format's least exponent; infinities and NaNs are beyond all others.
int exponentOf(float value, int least) {
  int biased = static_cast<int>(bitsOf(value) >> 23 & 0xffU);
  return value == 0 ? kNone : biased == 0xff ? -kNone : std::max(std::max(biased, 1) - 127, least);
}

bool isNarrow(int exponent) { return exponent == kNone || (exponent >= -kNarrow && exponent <= kNarrow); }

} // namespace

struct DotColumns::Row {
  const float *values;
  /// Of block scales, which are powers of two.
  const float *scale, *scales;
  std::array<int32_t, kMaxK> exponents;

  /// Of the scales of a column and of the row; beyond all others where one of them is no power of two.
  int scaleExponent(unsigned column) const {
    double factor = scales ? static_cast<double>(*scale) * scales[column] : 1.0;
    uint64_t bits = bitsOf(factor);
    bool isPower = factor > 0 && isFinite(factor) && (bits << 12) == 0;
    return isPower ? static_cast<int>(bits >> 52) - 1023 : -4 * kNone;
  }
};

DotColumns::DotColumns(const Sum &sum, const float *columns, unsigned count, unsigned k)
    : sum(sum), columns(columns), count(count), k(k) {
  assert(count <= kMaxCount && has(sum, k, /*scaled=*/false));
  for (unsigned i = 0; i < (count + kWidth - 1) / kWidth * kWidth; ++i)
    for (unsigned j = 0; j < k; ++j) {
      float value = i < count ? columns[i * k + j] : 0.0f;
      int exponent = exponentOf(value, sum.leastExponentB);
      narrow &= isNarrow(exponent);
      values[i / kWidth * k + j][i % kWidth] = value;
      exponents[i / kWidth * k + j][i % kWidth] = exponent;
    }
}

/// By the model itself.
float DotColumns::one(const Row &row, unsigned column, float c) const {
  const float *values = columns + size_t(column) * k;
  return row.scales ? num::dotScaled(sum, c, row.values, values, k, row.scale, row.scales + column, k)
                    : num::dot(sum, c, row.values, values, k);
}

/// Calls `f(block, c)` with eight sums at a time; whatever it leaves in them are the new ones. Lanes in the
/// mask that it returns are computed one by one.
template <class F>
[[gnu::always_inline]] inline void DotColumns::forBlocks(const Row &row, float *sums, F f) const {
  for (unsigned first = 0; first < count; first += kWidth) {
    unsigned bytes = std::min(kWidth, count - first) * sizeof(float);
    Floats c = {};
    std::memcpy(&c, sums + first, bytes);
    Integers left = f(first / kWidth, c);
    for (unsigned i = 0; i < bytes / sizeof(float); ++i)
      sums[first + i] = left[i] ? one(row, first + i, sums[first + i]) : c[i];
  }
}

/// The truncating model: see Alignment in DotProduct.cpp.
[[gnu::always_inline]] inline void DotColumns::truncated(const Row &row, float *sums) const {
  const Truncation &cut = sum.truncation;
  const int fraction = cut.fractionBits, least = fraction - 126;
  const int64_t kept = ~int64_t(0) << (52 - cut.resultBits);
  forBlocks(row, sums, [&](unsigned block, Floats &c) __attribute__((always_inline)) {
    const Floats *value = &values[block * k];
    const Integers *exponent = &exponents[block * k];
    Integers shift = {}, left = {};
    if (row.scales)
      for (unsigned i = 0; i < std::min(kWidth, count - block * kWidth); ++i)
        shift[i] = row.scaleExponent(block * kWidth + i);
    for (unsigned begin = 0; begin < k; begin += cut.group) {
      unsigned end = std::min(k, begin + cut.group);
      Integers largest = Integers{} + 2 * kNone;
      for (unsigned i = begin; i < end; ++i) {
        Integers sumOfBoth = exponent[i] + row.exponents[i];
        largest = sumOfBoth > largest ? sumOfBoth : largest;
      }
      largest += shift;
      Integers bits = (Integers)c & 0x7fffffff, biased = bits >> 23;
      Integers ofAddend = (biased == 0 ? Integers{} + 1 : biased) - 127;
      ofAddend = bits == 0 ? Integers{} + 2 * kNone : ofAddend;
      largest = ofAddend > largest ? ofAddend : largest;
      Integers none = largest < kNone / 2;
      largest = largest < cut.leastExponent ? Integers{} + cut.leastExponent : largest;
      left |= (largest > kLargest) | ((largest < least) & ~none);
      largest = largest < least ? Integers{} + least : largest > kLargest ? Integers{} + kLargest : largest;

      // A term that is less than 1 with the least of all factors is less than 1 without that limit.
      Integers power = fraction - largest + shift;
      power = power < -126 ? Integers{} - 126 : power > 127 ? Integers{} + 127 : power;
      Floats factor = (Floats)(((power + 127) << 23) & ~left);
      Floats factorOfAddend = (Floats)(((fraction - largest + 127) << 23) & ~left);
      Floats addend = (Floats)((Integers)c & ~left);
      Integers cutAddend = __builtin_convertvector(addend * factorOfAddend, Integers);
      // Sixteen terms of less than 2^27 each.
      Integers even = {}, odd = {};
      unsigned i = begin;
      for (; i + 1 < end; i += 2) {
        even += __builtin_convertvector(row.values[i] * value[i] * factor, Integers);
        odd += __builtin_convertvector(row.values[i + 1] * value[i + 1] * factor, Integers);
      }
      if (i < end)
        even += __builtin_convertvector(row.values[i] * value[i] * factor, Integers);
      Doubles total = __builtin_convertvector(even, Doubles) + __builtin_convertvector(odd, Doubles) +
                      __builtin_convertvector(cutAddend, Doubles);
      Doubles unit = (Doubles)(__builtin_convertvector(largest - fraction + 1023, Longs) << 52);
      c = __builtin_convertvector((Doubles)((Longs)(total * unit) & kept), Floats);
    }
    return left;
  });
}

#ifdef __x86_64__
[[gnu::target("avx2")]] void DotColumns::truncatedWithAvx2(const Row &row, float *sums) const {
  truncated(row, sums);
}
#endif

void DotColumns::inOrder(const Row &row, float *sums) const {
  forBlocks(row, sums, [&](unsigned block, Floats &c) {
    for (unsigned i = 0; i < k; ++i)
      c += row.values[i] * values[block * k + i];
    for (unsigned i = 0; i < kWidth; ++i)
      c[i] = canonical(c[i]);
    return Integers{};
  });
}

void DotColumns::dot(const float *values, float *sums, const float *scale, const float *scales) const {
  Row row{values, scale, scales, {}};
  bool all = narrow;
  for (unsigned i = 0; i < k; ++i) {
    row.exponents[i] = exponentOf(values[i], sum.leastExponentA);
    all &= isNarrow(row.exponents[i]);
  }
  if (!all) {
    for (unsigned i = 0; i < count; ++i)
      sums[i] = one(row, i, sums[i]);
    return;
  }
  if (sum.model == SumModel::KOrderF32)
    return inOrder(row, sums);
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) // the emulator itself is compiled for any x86-64
    return truncatedWithAvx2(row, sums);
#endif
  truncated(row, sums);
}
