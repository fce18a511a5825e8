// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The models of a tensor core's sum. Products are formed as doubles, which hold them
// exactly with their scales: 22 bits, and exponents from -290 to 290.

#include "DotProduct.h"

#include "Arith.h"
#include "Convert.h"
#include "ExactSum.h"
#include "Half.h"

#include <array>
#include <cassert>
#include <cmath>

using namespace fp8emu;
using namespace fp8emu::num;

namespace {

double powerOfTwo(int exponent) { return doubleOf(static_cast<uint64_t>(exponent + 1023) << 52); }

/// Of a float that is not 0, NaN or infinite; f32's subnormal ones count as of -126.
int exponentOf(float value) {
  int biased = static_cast<int>(bitsOf(value) >> 23 & 0xffU);
  return (biased == 0 ? 1 : biased) - 127;
}

/// The operands, with the scales of their blocks if there are any.
struct Operands {
  const float *a;
  const float *b;
  unsigned k;
  const float *scaleA = nullptr;
  const float *scaleB = nullptr;
  unsigned block = 1;

  double scale(unsigned i) const { return static_cast<double>(scaleA[i / block]) * scaleB[i / block]; }
};

/// Their products, exactly.
class Products {
public:
  explicit Products(const Operands &operands) : count(operands.k) {
    assert(count <= values.size());
    for (unsigned i = 0; i < count; ++i)
      values[i] = static_cast<double>(operands.a[i]) * operands.b[i];
    if (operands.scaleA)
      for (unsigned i = 0; i < count; ++i)
        values[i] *= operands.scale(i);
  }

  const double *begin() const { return values.data(); }
  const double *end() const { return values.data() + count; }
  double operator[](unsigned i) const { return values[i]; }

  /// The sum as infinities and NaNs make it; finite where there are none. Sums of
  /// finite numbers overflow no double.
  double special(double c) const {
    for (double product : *this)
      c += product;
    return c;
  }

private:
  std::array<double, 256> values; // K is 128 at most
  unsigned count;
};

float sumInOrder(const Operands &operands, float c) {
  for (unsigned i = 0; i < operands.k; ++i) {
    float product = operands.a[i] * operands.b[i];
    double exact = static_cast<double>(operands.a[i]) * operands.b[i];
    // They agree but where bf16 and tf32 leave the range of f32.
    if (static_cast<double>(product) == exact)
      c += product;
    else
      c = roundToFloat(addToOdd(exact, c), Rounding::NearestEven);
  }
  return canonical(c);
}

float sumInOrder(const Products &products, float c) {
  for (double product : products)
    c = roundToFloat(addToOdd(product, c), Rounding::NearestEven);
  return canonical(c);
}

/// Of a double that is not subnormal; -1023 for zeros.
int exponentOf(double value) { return static_cast<int>(bitsOf(value) >> 52 & 0x7ffU) - 1023; }

/// The exact sum, rounded to odd.
double sumExactly(const Products &products, double c) {
  int least = 1024, largest = -1024;
  auto see = [&](double term) {
    int exponent = exponentOf(term);
    least = term != 0 ? std::min(least, exponent) : least;
    largest = term != 0 ? std::max(largest, exponent) : largest;
  };
  see(c);
  for (double product : products)
    see(product);
  // No term has more than 24 bits: often 64 hold them all, and their sum.
  constexpr int bits = 24, spread = 64 - 1 - 9 - bits;
  if (largest - least < spread) {
    double scale = powerOfTwo(bits - 1 - least);
    auto total = static_cast<int64_t>(c * scale);
    for (double product : products)
      total += static_cast<int64_t>(product * scale);
    return detail::integerToOdd(total) * powerOfTwo(least - (bits - 1));
  }
  ExactSum sum;
  sum.add(c);
  for (double product : products)
    sum.add(product);
  return sum.roundedToOdd();
}

/// The terms of one group, aligned to the largest exponent among them.
class Alignment {
public:
  explicit Alignment(const Truncation &truncation)
      : fractionBits(truncation.fractionBits), largest(truncation.leastExponent) {}

  /// Says that there is a term of this exponent.
  void see(int exponent) { largest = std::max(largest, exponent); }
  /// After all were seen.
  void fix() { scale = powerOfTwo(fractionBits - largest); }
  void add(double term) { sum += static_cast<int64_t>(term * scale); } // cut towards zero
  double value() const { return static_cast<double>(sum) * powerOfTwo(largest - fractionBits); }

private:
  int fractionBits;
  int largest;
  double scale = 1;
  int64_t sum = 0;
};

/// One group, not yet cut to the result. A product counts as of the sum of its factors'
/// exponents although it may be twice as large; one that is zero as of none.
double sumGroup(const Sum &sum, const Operands &operands, const Products &products, unsigned begin,
                unsigned end, float c) {
  Alignment alignment(sum.truncation);
  alignment.see(c != 0 ? exponentOf(c) : sum.truncation.leastExponent);
  for (unsigned i = begin; i < end; ++i) {
    int exponent = std::max(exponentOf(operands.a[i]), sum.leastExponentA) +
                   std::max(exponentOf(operands.b[i]), sum.leastExponentB);
    if (operands.scaleA)
      exponent += exponentOf(operands.scale(i));
    alignment.see(products[i] != 0 ? exponent : sum.truncation.leastExponent);
  }
  alignment.fix();
  alignment.add(c);
  for (unsigned i = begin; i < end; ++i)
    alignment.add(products[i]);
  return alignment.value();
}

/// A group's sum cut to an f32; beyond its range infinite, unlike in rounding to zero,
/// and never -0.
float cutToFloat(double value, int resultBits) {
  if (std::abs(value) >= 0x1p128)
    return static_cast<float>(value);
  uint32_t bits = bitsOf(roundToFloat(value, Rounding::Zero)) & ~0U << (23 - resultBits);
  return floatOf(bits) == 0 ? 0.0f : floatOf(bits);
}

/// A group whose sum is infinite leaves nothing to the next: finite products do not change it.
float sumTruncating(const Sum &sum, const Operands &operands, const Products &products, float c) {
  for (unsigned i = 0; i < operands.k && isFinite(c); i += sum.truncation.group) {
    unsigned end = std::min(operands.k, i + sum.truncation.group);
    c = cutToFloat(sumGroup(sum, operands, products, i, end, c), sum.truncation.resultBits);
  }
  return c;
}

uint16_t sumTruncatingHalf(const Sum &sum, const Operands &operands, const Products &products, uint16_t c) {
  for (unsigned i = 0; i < operands.k && isFinite(halfToFloat(c)); i += sum.truncation.group) {
    unsigned end = std::min(operands.k, i + sum.truncation.group);
    c = fromDouble<F16>(sumGroup(sum, operands, products, i, end, halfToFloat(c)));
  }
  return c;
}

/// The operands in the order in which two f16 instructions take them, and the sum that
/// these make.
class HalfOrder {
public:
  HalfOrder(const Sum &given, const Operands &operands) : sum(given), k(operands.k) {
    sum.leastExponentA = sum.leastExponentB = F16.minExponent();
    assert(k <= a.size() && !operands.scaleA);
    unsigned place = 0;
    for (unsigned second : {0U, 2U})
      for (unsigned i = 0; i < k; ++i)
        if ((i & 2U) == second) {
          a[place] = operands.a[i];
          b[place++] = operands.b[i];
        }
  }

  float inFloat() const { return sumTruncating(sum, operands(), Products(operands()), 0); }
  uint16_t inHalf() const { return sumTruncatingHalf(sum, operands(), Products(operands()), 0); }

private:
  Operands operands() const { return {a.data(), b.data(), k}; }

  Sum sum;
  unsigned k;
  std::array<float, 32> a;
  std::array<float, 32> b;
};

/// With 4-bit operands and their scales: 16 products are added exactly, and that sum
/// times the scales' significands is a term of the scales' exponents.
double sumScaledGroups(const Sum &sum, const Operands &operands, const Products &products, float c) {
  constexpr unsigned width = 16;
  Alignment alignment(sum.truncation);
  alignment.see(c != 0 ? exponentOf(c) : sum.truncation.leastExponent);
  for (unsigned i = 0; i < operands.k; i += width)
    alignment.see(std::max(exponentOf(operands.scaleA[i / operands.block]), sum.leastExponentScale) +
                  std::max(exponentOf(operands.scaleB[i / operands.block]), sum.leastExponentScale));
  alignment.fix();
  alignment.add(c);
  for (unsigned i = 0; i < operands.k; i += width) {
    double group = 0;
    for (unsigned j = i; j < std::min(operands.k, i + width); ++j)
      group += products[j];
    alignment.add(group);
  }
  return alignment.value();
}

} // namespace

Truncation num::truncation(TensorUnit unit, const Format &input, bool halfResult) {
  bool fp8 = input.width() <= 8, tf32 = input.unusedBits != 0;
  Truncation result;
  bool older = unit == TensorUnit::Ampere || unit == TensorUnit::Ada;
  result.fractionBits = older ? 24 : 25;
  result.viaHalf = fp8 && unit == TensorUnit::HopperWarp;
  result.group = (older ? 8 : 16) * (fp8 && !result.viaHalf ? 2 : 1) / (tf32 ? 2 : 1);
  // Six or seven places below the smallest normal number of the result.
  result.leastExponent = (halfResult ? F16 : F32).minExponent() - (older ? 6 : 7);
  if (fp8 && (unit == TensorUnit::Ada || unit == TensorUnit::HopperWarpgroup)) {
    result.fractionBits = 13;
    result.resultBits = 13;
  }
  return result;
}

Truncation num::scaledTruncation(unsigned k) {
  Truncation result;
  result.fractionBits = k >= 64 ? 35 : 25;
  result.group = k;
  return result;
}

float num::dot(const Sum &sum, float c, const float *a, const float *b, unsigned k) {
  Operands operands{a, b, k};
  if (sum.model == SumModel::KOrderF32)
    return sumInOrder(operands, c);
  Products products(operands);
  if (double got = products.special(c); !isFinite(got))
    return canonical(static_cast<float>(got));
  if (sum.model == SumModel::ExactOnce)
    return roundToFloat(sumExactly(products, c), Rounding::NearestEven);
  if (sum.truncation.viaHalf)
    return HalfOrder(sum, operands).inFloat() + c;
  return sumTruncating(sum, operands, products, c);
}

uint16_t num::dotHalf(const Sum &sum, uint16_t c, const float *a, const float *b, unsigned k) {
  Operands operands{a, b, k};
  float addend = halfToFloat(c);
  if (sum.model == SumModel::KOrderF32)
    return floatToHalf(sumInOrder(operands, addend));
  Products products(operands);
  if (double got = products.special(addend); !isFinite(got))
    return floatToHalf(static_cast<float>(got));
  if (sum.model == SumModel::ExactOnce)
    return fromDouble<F16>(sumExactly(products, addend));
  if (sum.truncation.viaHalf)
    return add<F16>(HalfOrder(sum, operands).inHalf(), c);
  return sumTruncatingHalf(sum, operands, products, c);
}

float num::dotScaled(const Sum &sum, float c, const float *a, const float *b, unsigned k, const float *scaleA,
                     const float *scaleB, unsigned block) {
  Operands operands{a, b, k, scaleA, scaleB, block};
  Products products(operands);
  if (double got = products.special(c); !isFinite(got))
    return canonical(static_cast<float>(got));
  if (sum.model == SumModel::KOrderF32)
    return sumInOrder(products, c);
  if (sum.model == SumModel::ExactOnce)
    return roundToFloat(sumExactly(products, c), Rounding::NearestEven);
  if (k < 64)
    return sumTruncating(sum, operands, products, c);
  return cutToFloat(sumScaledGroups(sum, operands, products, c), sum.truncation.resultBits);
}
