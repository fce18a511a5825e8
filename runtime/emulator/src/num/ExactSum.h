// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sum of doubles without any rounding.

#ifndef FP8EMU_NUM_EXACTSUM_H
#define FP8EMU_NUM_EXACTSUM_H

#include "Bits.h"

#include <array>
#include <cassert>
#include <cstdint>

namespace fp8emu::num {

/// A fixed-point number wide enough for products of any two values of 16 bits or TF32,
/// of two scales and two values of 8 bits, and for f32: from 2^-320 to 2^320.
class ExactSum {
public:
  /// Adds a finite number; at most 2^28 times.
  void add(double value) {
    uint64_t bits = bitsOf(value);
    int exponent = static_cast<int>(bits >> 52 & 0x7ffU);
    if (exponent == 0) // no product is a subnormal double
      return;
    uint64_t significand = (bits & ((uint64_t(1) << 52) - 1)) | (uint64_t(1) << 52);
    int lowest = exponent - 1023 - 52 + kPoint; // place of the last bit
    assert(lowest >= 0 && lowest + 53 < kPoint * 2);
    auto limb = static_cast<unsigned>(lowest) / 32, shift = static_cast<unsigned>(lowest) % 32;
    int64_t sign = bits >> 63 ? -1 : 1;
    // 53 bits, shifted by less than 32, lie in three limbs.
    uint64_t low = significand << shift;
    uint64_t high = shift == 0 ? 0 : significand >> (64 - shift);
    limbs[limb] += sign * static_cast<int64_t>(low & 0xffffffffU);
    limbs[limb + 1] += sign * static_cast<int64_t>(low >> 32);
    limbs[limb + 2] += sign * static_cast<int64_t>(high);
  }

  /// The sum rounded to odd (see roundToOdd), +0 if it is zero.
  double roundedToOdd() const;

private:
  static constexpr int kPoint = 384;
  static constexpr unsigned kLimbs = 2 * kPoint / 32 + 1;

  /// Of 32 bits each, the lowest first, each with a sign of its own until rounding.
  std::array<int64_t, kLimbs> limbs = {};
};

} // namespace fp8emu::num

#endif // FP8EMU_NUM_EXACTSUM_H
