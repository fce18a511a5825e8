// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Common parts of the tests of num/: a rounding that knows a format by the list of its
// values alone, and numbers to try.

#ifndef FP8EMU_TEST_NUMREFERENCE_H
#define FP8EMU_TEST_NUMREFERENCE_H

#include "num/Format.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace fp8emu::num::test {

/// 113 bits: holds products and many sums of doubles exactly.
__extension__ using Exact = __float128;

/// The finite values of a format that are not negative, in order; the index is the code.
class ValueList {
public:
  explicit ValueList(const Format &format) : format(format) {
    for (uint64_t code = 0; code <= format.maxFiniteCode(); ++code)
      values.push_back(decode(format, code << format.unusedBits));
  }

  /// The rounding of `value`, neither NaN nor infinite, without saturation; found by
  /// comparing, where encode shifts bits.
  uint64_t round(Exact value, Rounding rounding) const {
    bool negative = value < 0;
    Exact magnitude = negative ? -value : value;
    auto above = std::lower_bound(values.begin(), values.end(), magnitude,
                                  [](double a, Exact b) { return static_cast<Exact>(a) < b; });
    size_t up = static_cast<size_t>(above - values.begin());
    if (up < values.size() && static_cast<Exact>(values[up]) == magnitude)
      return stored(up, negative);
    size_t down = up - 1; // magnitude > 0, the first value
    // Past the last one as if there were another.
    Exact last = values.back(), step = last - static_cast<Exact>(values[values.size() - 2]);
    Exact upper = up < values.size() ? static_cast<Exact>(values[up]) : last + step;
    return stored(
        takesUpper(static_cast<Exact>(values[down]), magnitude, upper, negative, down, rounding) ? up : down,
        negative);
  }

  const std::vector<double> &all() const { return values; }

private:
  static bool takesUpper(Exact lower, Exact value, Exact upper, bool negative, size_t code,
                         Rounding rounding) {
    Exact below = value - lower, above = upper - value;
    switch (rounding) {
    case Rounding::NearestEven:
      return above < below || (above == below && code % 2 == 1);
    case Rounding::NearestAway:
      return above <= below;
    case Rounding::Zero:
      return false;
    case Rounding::Down:
      return negative;
    case Rounding::Up:
      return !negative;
    }
    return false;
  }

  uint64_t stored(size_t code, bool negative) const {
    uint64_t bits = code << format.unusedBits;
    if (code == values.size()) {
      if (!format.hasNaN())
        bits = format.maxFinite();
      else // E4M3 has a NaN in the place of infinity
        bits = format.hasInfinity() ? format.infinityCode() << format.unusedBits : format.canonicalNaN();
    }
    return bits | (negative ? format.signBit() : 0);
  }

  const Format &format;
  std::vector<double> values;
};

/// Bits of floats of every kind: all exponents, mantissas near their ends and random.
inline std::vector<float> manyFloats(unsigned count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> result;
  for (uint32_t bits :
       {0U,          1U,          2U,          0x7fffffU,   0x800000U,   0x800001U,   0x3f800000U,
        0x3f7fffffU, 0x3f800001U, 0x7f7fffffU, 0x7f800000U, 0x7f800001U, 0x7fc00000U, 0x7fffffffU,
        0x40490fdbU, 0x3f000000U, 0x3fc00000U, 0x4b000000U, 0x4f000000U, 0x5f000000U, 0x7e800000U})
    for (uint32_t sign : {0U, 0x80000000U})
      result.push_back(floatOf(bits | sign));
  while (result.size() < count)
    result.push_back(floatOf(static_cast<uint32_t>(random())));
  return result;
}

/// Doubles with exponents in [low, high].
class RandomDoubles {
public:
  RandomDoubles(uint64_t seed, int low, int high) : random(seed), exponents(low, high) {}

  double operator()() {
    uint64_t bits = random();
    // Many with few bits, that ties and exact results occur.
    if (bits & 1)
      bits &= ~((uint64_t(1) << (random() % 52)) - 1);
    double fraction = doubleOf((bits & ((uint64_t(1) << 52) - 1)) | (uint64_t(1023) << 52));
    return std::ldexp(random() & 1 ? -fraction : fraction, exponents(random));
  }

private:
  std::mt19937_64 random;
  std::uniform_int_distribution<int> exponents;
};

} // namespace fp8emu::num::test

#endif // FP8EMU_TEST_NUMREFERENCE_H
