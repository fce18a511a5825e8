// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic in f16 and bf16 (PTX ISA 9.7.4), each operation rounded once, to nearest
// even. Values are their bits; the format is a template argument, F16 or BF16. NaN
// results are 0x7fff.

#ifndef FP8EMU_NUM_HALF_H
#define FP8EMU_NUM_HALF_H

#include "Arith.h"
#include "Format.h"

#include <cstdint>

namespace fp8emu::num {

/// Modifiers of add, sub, mul and fma; `relu` and `oob` are fma's alone.
struct HalfMod {
  bool ftz = false;
  bool sat = false;
  bool relu = false;
  bool oob = false;
};

/// The NaN that tensor copies fill with where the tensor map asks for it and that
/// fma.oob takes for zero, in both formats. PTX (ISA 5.5.3.3) does not tell its bits.
inline constexpr uint16_t kOutOfBoundsNaN = 0x7ffe;

/// The value, as an f32 that holds it exactly.
template <const Format &format>
inline float toFloat(uint16_t bits) {
  return format.exponentBits == 5 ? halfToFloat(bits) : bfloatToFloat(bits);
}

/// An f32 to nearest even.
template <const Format &format>
inline uint16_t fromFloat(float value) {
  return format.exponentBits == 5 ? floatToHalf(value) : floatToBFloat(value);
}

/// A double to nearest even. By way of an f32 that is rounded to odd, which where it
/// is too small or too large for one has bits enough for these formats yet.
template <const Format &format>
inline uint16_t fromDouble(double value) {
  auto single = static_cast<float>(value);
  double error = value - static_cast<double>(single);
  bool inexact = error < 0 || error > 0;
  uint32_t bits = bitsOf(single);
  // Cut towards zero, then odd.
  uint32_t cut = bits - ((error > 0) != (value > 0) ? 1U : 0U);
  return fromFloat<format>(inexact ? floatOf(cut | 1U) : single);
}

/// A zero of the sign for subnormal numbers.
template <const Format &format>
inline uint16_t flushHalf(uint16_t bits) {
  return (bits & format.infinityCode()) == 0 ? bits & 0x8000U : bits;
}

namespace detail {

template <const Format &format>
inline uint16_t finishHalf(uint16_t result, HalfMod mod) {
  constexpr auto infinity = static_cast<uint16_t>(format.infinityCode());
  constexpr auto one = static_cast<uint16_t>(uint64_t(format.bias) << format.mantissaBits);
  bool negative = (result & 0x8000U) != 0, nan = (result & 0x7fffU) > infinity;
  if (mod.ftz)
    result = flushHalf<format>(result);
  if (mod.sat)
    result = nan || negative ? 0 : (result > one ? one : result);
  if (mod.relu)
    result = negative && !nan ? 0 : result;
  return result;
}

} // namespace detail

// Two values or products of theirs, and their sums, go through f32 (f16) or double
// (bf16, whose products may be too small for f32): twice the bits of the format and
// two more make the second rounding harmless for one operation; fma, with operands
// farther apart, rounds to odd first.

template <const Format &format>
inline uint16_t add(uint16_t a, uint16_t b, HalfMod mod = {}) {
  if (mod.ftz) {
    a = flushHalf<format>(a);
    b = flushHalf<format>(b);
  }
  // The sum of two bf16 has no more bits below f32's least than they themselves.
  return detail::finishHalf<format>(fromFloat<format>(toFloat<format>(a) + toFloat<format>(b)), mod);
}

template <const Format &format>
inline uint16_t sub(uint16_t a, uint16_t b, HalfMod mod = {}) {
  return add<format>(a, b ^ 0x8000U, mod);
}

template <const Format &format>
inline uint16_t mul(uint16_t a, uint16_t b, HalfMod mod = {}) {
  if (mod.ftz) {
    a = flushHalf<format>(a);
    b = flushHalf<format>(b);
  }
  if (format.exponentBits == 5)
    return detail::finishHalf<format>(fromFloat<format>(toFloat<format>(a) * toFloat<format>(b)), mod);
  double product = static_cast<double>(toFloat<format>(a)) * toFloat<format>(b);
  return detail::finishHalf<format>(fromDouble<format>(product), mod);
}

template <const Format &format>
inline uint16_t fma(uint16_t a, uint16_t b, uint16_t c, HalfMod mod = {}) {
  // "If either of the operands is OOB NaN" (ISA 9.7.4.4), of either sign.
  bool oob = mod.oob && ((a & 0x7fffU) == kOutOfBoundsNaN || (b & 0x7fffU) == kOutOfBoundsNaN ||
                         (c & 0x7fffU) == kOutOfBoundsNaN);
  if (mod.ftz) {
    a = flushHalf<format>(a);
    b = flushHalf<format>(b);
    c = flushHalf<format>(c);
  }
  double product = static_cast<double>(toFloat<format>(a)) * toFloat<format>(b);
  uint16_t result = fromDouble<format>(addToOdd(product, toFloat<format>(c)));
  return oob ? 0 : detail::finishHalf<format>(result, mod);
}

template <const Format &format>
inline uint16_t neg(uint16_t a, bool ftz = false) {
  a ^= 0x8000U;
  return ftz ? flushHalf<format>(a) : a;
}

template <const Format &format>
inline uint16_t abs(uint16_t a, bool ftz = false) {
  a &= 0x7fffU;
  return ftz ? flushHalf<format>(a) : a;
}

namespace detail {

template <const Format &format, bool isMax>
inline uint16_t minMaxHalf(uint16_t a, uint16_t b, MinMax mod) {
  if (mod.ftz) {
    a = flushHalf<format>(a);
    b = flushHalf<format>(b);
  }
  mod.ftz = false; // or f32's would be flushed, bf16's are f32's own
  float result = minMax<isMax>(toFloat<format>(a), toFloat<format>(b), mod);
  return fromFloat<format>(result); // exact
}

} // namespace detail

template <const Format &format>
inline uint16_t min(uint16_t a, uint16_t b, MinMax mod = {}) {
  return detail::minMaxHalf<format, false>(a, b, mod);
}

template <const Format &format>
inline uint16_t max(uint16_t a, uint16_t b, MinMax mod = {}) {
  return detail::minMaxHalf<format, true>(a, b, mod);
}

} // namespace fp8emu::num

#endif // FP8EMU_NUM_HALF_H
