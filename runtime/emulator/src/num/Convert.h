// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversions with integers on one side (PTX ISA 9.7.9.21, cvt), and rounding to an
// integral value. Between float formats: Format.h. Values of f16 and bf16 come and go
// as f32 (toFloat and fromDouble of Half.h), which holds them exactly.

#ifndef FP8EMU_NUM_CONVERT_H
#define FP8EMU_NUM_CONVERT_H

#include "Arith.h"
#include "Format.h"

#include <cstdint>
#include <limits>
#include <type_traits>

namespace fp8emu::num {

/// The integer next to `value` in the direction, for |value| < 2^63.
inline int64_t roundToInt64(double value, Rounding rounding) {
  auto whole = static_cast<int64_t>(value); // towards zero
  double rest = value - static_cast<double>(whole);
  double size = rest < 0 ? -rest : rest;
  bool away = false;
  switch (rounding) {
  case Rounding::NearestEven:
    away = size > 0.5 || (size == 0.5 && (whole & 1));
    break;
  case Rounding::NearestAway:
    away = size >= 0.5;
    break;
  case Rounding::Zero:
    break;
  case Rounding::Down:
    away = rest < 0;
    break;
  case Rounding::Up:
    away = rest > 0;
    break;
  }
  return whole + (away ? (value < 0 ? -1 : 1) : 0);
}

/// .rni, .rzi, .rmi and .rpi between floats of one type. Zeros keep their sign, and
/// so do values that become zero; an f32 NaN becomes 0x7fffffff.
inline double roundIntegral(double value, Rounding rounding) {
  if (!(num::abs(value) < 0x1p52)) // integral already, infinite or NaN
    return value;
  auto whole = static_cast<double>(roundToInt64(value, rounding));
  return num::copysign(value, whole);
}
inline float roundIntegral(float value, Rounding rounding) {
  return canonical(static_cast<float>(roundIntegral(static_cast<double>(value), rounding)));
}

/// A float to an integer, clamped to its range. NaN: 0, but the top bit alone if
/// either side has 64 bits (ISA 9.7.9.21). Without .ftz, which is done before.
template <typename Int, typename Float>
inline Int toInteger(Float value, Rounding rounding) {
  static_assert(std::is_integral_v<Int> && std::is_floating_point_v<Float>);
  using Limits = std::numeric_limits<Int>;
  constexpr bool wide = sizeof(Int) == 8 || sizeof(Float) == 8;
  if (isNaN(value))
    return wide ? static_cast<Int>(uint64_t(1) << (8 * sizeof(Int) - 1)) : Int(0);
  // The first power of two beyond the range.
  constexpr double end = 2.0 * static_cast<double>(uint64_t(1) << (Limits::digits - 1));
  if (value >= end)
    return Limits::max();
  if (value <= (std::is_signed_v<Int> ? -end : -1.0))
    return Limits::min();
  if (std::is_same_v<Int, uint64_t> && value >= 0x1p63) // integral
    return static_cast<Int>(value);
  int64_t whole = roundToInt64(value, rounding);
  if constexpr (std::is_same_v<Int, uint64_t>)
    return whole < 0 ? 0 : static_cast<Int>(whole);
  else {
    if (whole > static_cast<int64_t>(Limits::max()))
      return Limits::max();
    return whole < static_cast<int64_t>(Limits::min()) ? Limits::min() : static_cast<Int>(whole);
  }
}

namespace detail {

/// The integer rounded to odd at 53 bits.
template <typename Int>
inline double integerToOdd(Int value) {
  bool negative = value < 0;
  uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  if (magnitude >> 53 != 0)
    magnitude = ((magnitude >> 11) | ((magnitude & 0x7ffU) != 0)) << 11;
  auto result = static_cast<double>(magnitude); // exact
  return negative ? -result : result;
}

} // namespace detail

/// An integer to f32.
template <typename Int>
inline float integerToFloat(Int value, Rounding rounding) {
  if (rounding == Rounding::NearestEven)
    return static_cast<float>(value);
  return roundToFloat(detail::integerToOdd(value), rounding);
}

/// An integer to f64.
template <typename Int>
inline double integerToDouble(Int value, Rounding rounding) {
  auto nearest = static_cast<double>(value);
  if (sizeof(Int) < 8 || rounding == Rounding::NearestEven)
    return nearest;
  // Compared exactly; 64 bits would not hold an unsigned value rounded up to 2^64.
  __extension__ using Wide = __int128;
  Wide difference = static_cast<Wide>(nearest) - static_cast<Wide>(value);
  bool wantDown = rounding == Rounding::Down || (rounding == Rounding::Zero && value > 0);
  bool wantUp = rounding == Rounding::Up || (rounding == Rounding::Zero && value < 0);
  uint64_t bits = bitsOf(nearest);
  if (difference > 0 && wantDown)
    return doubleOf(nearest < 0 ? bits + 1 : bits - 1);
  if (difference < 0 && wantUp)
    return doubleOf(nearest < 0 ? bits - 1 : bits + 1);
  return nearest;
}

/// An integer to f16 or bf16 (any of Format.h's), its bits; rounded once.
template <typename Int>
inline uint64_t integerToFormat(const Format &format, Int value, Rounding rounding) {
  return encode(format, detail::integerToOdd(value), rounding);
}

/// .sat between integers: clamped to the range of `To`.
template <typename To, typename From>
inline To saturateInteger(From value) {
  __extension__ using Wide = __int128;
  Wide low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max(), wide = value;
  return static_cast<To>(wide < low ? low : (wide > high ? high : wide));
}

} // namespace fp8emu::num

#endif // FP8EMU_NUM_CONVERT_H
