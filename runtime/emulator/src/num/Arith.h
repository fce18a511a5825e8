// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic in f32 and f64 with PTX's roundings (ISA 9.7.3), correctly rounded, and
// what both share with the 16-bit formats of Half.h. An f32 NaN result is always
// 0x7fffffff, which is what hardware gives where PTX leaves the NaN open.
//
// The roundings are arguments so that one name serves; called with a constant, the
// inline functions come down to a host operation and a blend for NaN. They take it
// that the host rounds to nearest even, keeps subnormals, and that the compiler
// fuses no multiplication with an addition (-ffp-contract=off).

#ifndef FP8EMU_NUM_ARITH_H
#define FP8EMU_NUM_ARITH_H

#include "Bits.h"
#include "Rounding.h"

#include <cmath>
#include <cstdint>

namespace fp8emu::num {

/// 0x7fffffff for every NaN. In integers: a compiler may take one NaN for another in a
/// choice between floats.
inline float canonical(float value) {
  uint32_t bits = bitsOf(value);
  return floatOf((bits & 0x7fffffffU) > 0x7f800000U ? 0x7fffffffU : bits);
}

/// .ftz: a zero of the sign for subnormal numbers.
inline float flush(float value) {
  uint32_t bits = bitsOf(value);
  return (bits & 0x7f800000U) == 0 ? floatOf(bits & 0x80000000U) : value;
}
inline float flushIf(bool ftz, float value) { return ftz ? flush(value) : value; }

/// .sat: clamped to [0, 1]; +0 for NaN and -0.
inline float saturate(float value) { return value > 0 ? (value < 1 ? value : 1.0f) : 0.0f; }
inline double saturate(double value) { return value > 0 ? (value < 1 ? value : 1.0) : 0.0; }

namespace detail {

/// An f32 result from the double that stands for the exact one (see roundToOdd);
/// `negativeZero` makes an exact zero -0.
inline float finish(double exact, Rounding rounding, bool ftz) {
  return flushIf(ftz, canonical(roundToFloat(exact, rounding)));
}

/// The exact sum of two doubles that are f32 numbers or their products, rounded to
/// odd. Numbers that cancel give +0, rounding down -0 (IEEE 754 6.3).
inline double sumToOdd(double a, double b, Rounding rounding) {
  double sum = addToOdd(a, b);
  bool bothPositive = ((bitsOf(a) | bitsOf(b)) >> 63) == 0;
  return rounding == Rounding::Down && sum == 0 && !bothPositive ? -0.0 : sum;
}

} // namespace detail

inline float add(float a, float b, Rounding rounding = Rounding::NearestEven, bool ftz = false) {
  a = flushIf(ftz, a);
  b = flushIf(ftz, b);
  if (rounding == Rounding::NearestEven)
    return flushIf(ftz, canonical(a + b));
  return detail::finish(detail::sumToOdd(a, b, rounding), rounding, ftz);
}

inline float sub(float a, float b, Rounding rounding = Rounding::NearestEven, bool ftz = false) {
  return add(a, -b, rounding, ftz);
}

inline float mul(float a, float b, Rounding rounding = Rounding::NearestEven, bool ftz = false) {
  a = flushIf(ftz, a);
  b = flushIf(ftz, b);
  if (rounding == Rounding::NearestEven)
    return flushIf(ftz, canonical(a * b));
  return detail::finish(static_cast<double>(a) * b, rounding, ftz); // the product is exact
}

/// a * b + c with one rounding.
inline float fma(float a, float b, float c, Rounding rounding = Rounding::NearestEven, bool ftz = false) {
  a = flushIf(ftz, a);
  b = flushIf(ftz, b);
  c = flushIf(ftz, c);
#ifdef __FMA__
  if (rounding == Rounding::NearestEven)
    return flushIf(ftz, canonical(__builtin_fmaf(a, b, c)));
#endif
  return detail::finish(detail::sumToOdd(static_cast<double>(a) * b, c, rounding), rounding, ftz);
}

// A quotient or a root of floats that is no float and not half-way between two of
// them is farther from all of those than a double's rounding moves it: rounding
// twice is as rounding once, in every direction.

inline float div(float a, float b, Rounding rounding = Rounding::NearestEven, bool ftz = false) {
  a = flushIf(ftz, a);
  b = flushIf(ftz, b);
  if (rounding == Rounding::NearestEven)
    return flushIf(ftz, canonical(a / b));
  return detail::finish(static_cast<double>(a) / b, rounding, ftz);
}

inline float rcp(float a, Rounding rounding = Rounding::NearestEven, bool ftz = false) {
  return div(1.0f, a, rounding, ftz);
}

inline float sqrt(float a, Rounding rounding = Rounding::NearestEven, bool ftz = false) {
  a = flushIf(ftz, a);
  return detail::finish(__builtin_sqrt(static_cast<double>(a)), rounding, ftz);
}

namespace detail {

enum class Operation : uint8_t { Add, Mul, Fma, Div, Sqrt };

/// The operation under the host's own directed rounding.
double directed(Operation operation, double a, double b, double c, Rounding rounding);

} // namespace detail

// f64: NaNs are the host's, which keeps payloads as PTX asks (ISA 9.7.3).

inline double add(double a, double b, Rounding rounding = Rounding::NearestEven) {
  return rounding == Rounding::NearestEven ? a + b
                                           : detail::directed(detail::Operation::Add, a, b, 0, rounding);
}

inline double sub(double a, double b, Rounding rounding = Rounding::NearestEven) {
  return rounding == Rounding::NearestEven ? a - b
                                           : detail::directed(detail::Operation::Add, a, -b, 0, rounding);
}

inline double mul(double a, double b, Rounding rounding = Rounding::NearestEven) {
  return rounding == Rounding::NearestEven ? a * b
                                           : detail::directed(detail::Operation::Mul, a, b, 0, rounding);
}

inline double fma(double a, double b, double c, Rounding rounding = Rounding::NearestEven) {
  return rounding == Rounding::NearestEven ? __builtin_fma(a, b, c)
                                           : detail::directed(detail::Operation::Fma, a, b, c, rounding);
}

inline double div(double a, double b, Rounding rounding = Rounding::NearestEven) {
  return rounding == Rounding::NearestEven ? a / b
                                           : detail::directed(detail::Operation::Div, a, b, 0, rounding);
}

inline double rcp(double a, Rounding rounding = Rounding::NearestEven) { return div(1.0, a, rounding); }

inline double sqrt(double a, Rounding rounding = Rounding::NearestEven) {
  return rounding == Rounding::NearestEven ? __builtin_sqrt(a)
                                           : detail::directed(detail::Operation::Sqrt, a, 0, 0, rounding);
}

// Signs; NaNs are numbers here.

inline float neg(float a, bool ftz = false) { return flushIf(ftz, floatOf(bitsOf(a) ^ 0x80000000U)); }
inline float abs(float a, bool ftz = false) { return flushIf(ftz, floatOf(bitsOf(a) & 0x7fffffffU)); }
inline double neg(double a) { return doubleOf(bitsOf(a) ^ (uint64_t(1) << 63)); }
inline double abs(double a) { return doubleOf(bitsOf(a) & ~(uint64_t(1) << 63)); }

/// The value of `b` with the sign of `a` (ISA 9.7.3.2: in this order).
inline float copysign(float a, float b) {
  return floatOf((bitsOf(a) & 0x80000000U) | (bitsOf(b) & 0x7fffffffU));
}
inline double copysign(double a, double b) {
  constexpr uint64_t sign = uint64_t(1) << 63;
  return doubleOf((bitsOf(a) & sign) | (bitsOf(b) & ~sign));
}

/// The modifiers of min and max (ISA 9.7.3.11). In instructions `xorsign` comes with
/// `abs` always, `abs` without it in those of three operands.
struct MinMax {
  bool ftz = false;
  /// The result is NaN if any operand is, instead of when all are.
  bool nan = false;
  bool abs = false;
  bool xorsign = false;
};

namespace detail {

/// The smaller or the larger; -0 is less than +0.
template <bool isMax>
inline float choose(float a, float b) {
  uint32_t both = isMax ? bitsOf(a) & bitsOf(b) : bitsOf(a) | bitsOf(b); // of equal numbers
  bool first = isMax ? a > b : a < b;
  return a == b ? floatOf(both) : (first ? a : b);
}

template <bool isMax>
inline float minMax(float a, float b, MinMax mod) {
  a = flushIf(mod.ftz, a);
  b = flushIf(mod.ftz, b);
  uint32_t sign = (bitsOf(a) ^ bitsOf(b)) & 0x80000000U;
  if (mod.abs || mod.xorsign) {
    a = num::abs(a);
    b = num::abs(b);
  }
  float chosen = choose<isMax>(a, b);
  if (mod.xorsign)
    chosen = floatOf((bitsOf(chosen) & 0x7fffffffU) | sign);
  // Of one number and a NaN: the number, with the sign all the same.
  float other = isNaN(a) ? b : a;
  if (mod.xorsign)
    other = floatOf((bitsOf(other) & 0x7fffffffU) | sign);
  bool anyNaN = isNaN(a) || isNaN(b), allNaN = isNaN(a) && isNaN(b);
  uint32_t result = anyNaN ? bitsOf(other) : bitsOf(chosen);
  return floatOf(allNaN || (mod.nan && anyNaN) ? 0x7fffffffU : result);
}

} // namespace detail

inline float min(float a, float b, MinMax mod = {}) { return detail::minMax<false>(a, b, mod); }
inline float max(float a, float b, MinMax mod = {}) { return detail::minMax<true>(a, b, mod); }
/// Of three operands; without `xorsign`.
inline float min(float a, float b, float c, MinMax mod) { return min(min(a, b, mod), c, mod); }
inline float max(float a, float b, float c, MinMax mod) { return max(max(a, b, mod), c, mod); }

double min(double a, double b);
double max(double a, double b);

/// testp (ISA 9.7.3.1): zeros are normal numbers.
enum class Property : uint8_t { Finite, Infinite, Number, NotANumber, Normal, Subnormal };

bool testp(Property property, float value);
bool testp(Property property, double value);

} // namespace fp8emu::num

#endif // FP8EMU_NUM_ARITH_H
