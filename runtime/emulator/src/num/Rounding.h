// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rounding, and the one step that all directed rounding goes through: from a
// double that still knows on which side of every float the exact value lies.

#ifndef FP8EMU_NUM_ROUNDING_H
#define FP8EMU_NUM_ROUNDING_H

#include "Bits.h"

#include <cstdint>

namespace fp8emu::num {

/// The modifiers .rn, .rna, .rz, .rm and .rp (PTX ISA 9.7.9.21), and for integers
/// .rni, .rzi, .rmi and .rpi.
enum class Rounding : uint8_t { NearestEven, NearestAway, Zero, Down, Up };

/// The double that rounding to odd makes of the exact value `sum` + `error`, where
/// `sum` is that value rounded to nearest: if bits are lost, the last one is 1.
/// Rounding it again to 51 bits or fewer, in any direction, is then as rounding
/// the exact value once.
inline double roundToOdd(double sum, double error) {
  bool inexact = error < 0 || error > 0; // not where `sum` is infinite or NaN
  uint64_t bits = bitsOf(sum);
  uint64_t step = (error > 0) == (sum > 0) ? 1 : ~uint64_t(0);
  return inexact && !(bits & 1) ? doubleOf(bits + step) : sum;
}

/// a + b rounded to odd (Knuth's two-sum gives the error of the addition).
inline double addToOdd(double a, double b) {
  double sum = a + b;
  double bPart = sum - a;
  double error = (a - (sum - bPart)) + (b - bPart);
  return roundToOdd(sum, error);
}

/// The float that `value` rounds to, in any direction but NearestAway. A NaN stays one.
inline float roundToFloat(double value, Rounding rounding) {
  auto nearest = static_cast<float>(value);
  if (rounding == Rounding::NearestEven)
    return nearest;
  double got = nearest;
  bool above = got > value, below = got < value, negative = (bitsOf(value) >> 63) != 0;
  bool wantDown = rounding == Rounding::Down || (rounding == Rounding::Zero && !negative);
  bool wantUp = rounding == Rounding::Up || (rounding == Rounding::Zero && negative);
  uint32_t bits = bitsOf(nearest); // of the sign of `value`: one less is nearer to zero
  if (above && wantDown)
    return floatOf(negative ? bits + 1 : bits - 1);
  if (below && wantUp)
    return floatOf(negative ? bits - 1 : bits + 1);
  return nearest;
}

} // namespace fp8emu::num

#endif // FP8EMU_NUM_ROUNDING_H
