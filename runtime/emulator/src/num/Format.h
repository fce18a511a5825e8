// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The number formats of PTX (ISA 5.2.3 and 5.2.4) and conversion between them by
// way of doubles, which hold every value of each. Inlined with a constant format,
// `encode` and `decode` come down to a few integer operations.

#ifndef FP8EMU_NUM_FORMAT_H
#define FP8EMU_NUM_FORMAT_H

#include "Bits.h"
#include "Rounding.h"

#include <cassert>
#include <cstdint>

namespace fp8emu::num {

/// The codes that mean NaN.
enum class NaNCoding : uint8_t {
  /// None: every code is a number.
  None,
  /// All of exponent and mantissa set, and nothing else.
  AllOnes,
  /// The largest exponent with any mantissa but 0, which is infinity.
  IEEE
};

/// A binary floating-point format: sign, exponent, mantissa from the top bit down.
struct Format {
  unsigned exponentBits;
  unsigned mantissaBits;
  /// Of the exponent: code e of a normal number means 2^(e - bias).
  int bias;
  NaNCoding nans = NaNCoding::IEEE;
  bool isSigned = true;
  /// Without subnormals (UE8M0): code 0 is 2^-bias and there is no zero.
  bool hasZero = true;
  /// Bits below the mantissa that the hardware ignores and conversions leave 0:
  /// TF32 is kept in the place of an f32.
  unsigned unusedBits = 0;

  constexpr bool hasInfinity() const { return nans == NaNCoding::IEEE; }
  constexpr bool hasNaN() const { return nans != NaNCoding::None; }
  /// The exponent of the smallest normal number and of all subnormal ones.
  constexpr int minExponent() const { return hasZero ? 1 - bias : -bias; }
  /// Bits of a value with its sign, the unused ones included.
  constexpr unsigned width() const { return exponentBits + mantissaBits + unusedBits + isSigned; }
  /// All but the sign. Codes below count without the unused bits.
  constexpr uint64_t magnitudeMask() const { return (uint64_t(1) << (exponentBits + mantissaBits)) - 1; }
  constexpr uint64_t mantissaMask() const { return (uint64_t(1) << mantissaBits) - 1; }
  /// Of +infinity, where there is one.
  constexpr uint64_t infinityCode() const { return magnitudeMask() ^ mantissaMask(); }
  /// Of the largest finite value (MAX_NORM).
  constexpr uint64_t maxFiniteCode() const {
    if (nans == NaNCoding::IEEE)
      return infinityCode() - 1;
    return nans == NaNCoding::AllOnes ? magnitudeMask() - 1 : magnitudeMask();
  }
  /// As stored: the canonical NaN, 0x7f for E4M3 and E5M2, 0x7fff for F16 and BF16,
  /// 0x7fffffff for F32 and TF32, 0xff for UE8M0 (PTX ISA 9.7.9.21, as hardware does).
  constexpr uint64_t canonicalNaN() const {
    return (magnitudeMask() << unusedBits) | ((uint64_t(1) << unusedBits) - 1);
  }
  /// As stored: the largest finite value.
  constexpr uint64_t maxFinite() const { return maxFiniteCode() << unusedBits; }
  /// As stored: the sign bit; 0 in formats without one.
  constexpr uint64_t signBit() const { return isSigned ? uint64_t(1) << (width() - 1) : 0; }
};

// The formats bear the names that PTX gives them.
// NOLINTBEGIN(readability-identifier-naming)
inline constexpr Format F16{5, 10, 15};
inline constexpr Format BF16{8, 7, 127};
inline constexpr Format TF32{8, 10, 127, NaNCoding::IEEE, true, true, 13};
inline constexpr Format F32{8, 23, 127};
inline constexpr Format F64{11, 52, 1023};
inline constexpr Format E4M3{4, 3, 7, NaNCoding::AllOnes};
inline constexpr Format E5M2{5, 2, 15};
inline constexpr Format E2M3{2, 3, 1, NaNCoding::None};
inline constexpr Format E3M2{3, 2, 3, NaNCoding::None};
inline constexpr Format E2M1{2, 1, 1, NaNCoding::None};
/// Scales of block-scaled products: powers of two, and E4M3 without its sign.
inline constexpr Format UE8M0{8, 0, 127, NaNCoding::AllOnes, false, false};
inline constexpr Format UE4M3{4, 3, 7, NaNCoding::AllOnes, false};
// NOLINTEND(readability-identifier-naming)

/// The value of `bits`, exactly; bits above the format's width and its unused ones
/// are ignored. NaNs become the canonical f64 NaN, but those of F64 pass unchanged.
inline double decode(const Format &format, uint64_t bits) {
  if (format.mantissaBits == 52)
    return doubleOf(bits);
  uint64_t code = (bits >> format.unusedBits) & format.magnitudeMask();
  bool negative = (bits & format.signBit()) != 0;
  uint64_t sign = uint64_t(negative) << 63;
  if (format.hasNaN() && code > format.maxFiniteCode())
    return format.hasInfinity() && code == format.infinityCode() ? doubleOf(sign | (uint64_t(0x7ff) << 52))
                                                                 : doubleOf(uint64_t(0x7fffffffffffffff));
  uint64_t exponent = code >> format.mantissaBits, mantissa = code & format.mantissaMask();
  if (exponent == 0 && format.hasZero) {
    // mantissa * 2^(minExponent - mantissaBits), the power of two made of bits
    int power = format.minExponent() - static_cast<int>(format.mantissaBits);
    double magnitude = static_cast<double>(mantissa) * doubleOf(uint64_t(power + 1023) << 52);
    return negative ? -magnitude : magnitude;
  }
  uint64_t biased = exponent + static_cast<uint64_t>(1023 - format.bias);
  return doubleOf(sign | (biased << 52) | (mantissa << (52 - format.mantissaBits)));
}

namespace detail {

/// The magnitude of a double cut to a format: the code of the value next towards
/// zero, without limit above, and of the bits cut off the first 64.
struct Cut {
  uint64_t code;
  /// The first bit cut off is the topmost; the last is set if any below was.
  uint64_t rest;
};

inline Cut cut(const Format &format, double value) {
  uint64_t bits = bitsOf(value) & ~(uint64_t(1) << 63);
  int exponent = static_cast<int>(bits >> 52);
  uint64_t significand = bits & ((uint64_t(1) << 52) - 1);
  if (exponent != 0)
    significand |= uint64_t(1) << 52;
  exponent = (exponent == 0 ? 1 : exponent) - 1023;
  unsigned drop = 52 - format.mantissaBits;
  int least = format.minExponent();
  if (exponent < least) {
    drop += static_cast<unsigned>(least - exponent);
    exponent = least;
  }
  if (drop >= 64)
    return {0, significand != 0};
  uint64_t kept = significand >> drop;
  // A subnormal one has no leading bit that the exponent would have to take off.
  auto biased = static_cast<uint64_t>(exponent - least);
  return {(biased << format.mantissaBits) + kept, drop == 0 ? 0 : significand << (64 - drop)};
}

inline bool roundsAway(Rounding rounding, bool negative, bool odd, uint64_t rest) {
  constexpr uint64_t half = uint64_t(1) << 63;
  switch (rounding) {
  case Rounding::NearestEven:
    return rest > half || (rest == half && odd);
  case Rounding::NearestAway:
    return rest >= half;
  case Rounding::Zero:
    return false;
  case Rounding::Down:
    return negative && rest != 0;
  case Rounding::Up:
    return !negative && rest != 0;
  }
  return false;
}

/// Whether a value beyond the largest finite one becomes infinite.
inline bool overflowsToInfinity(Rounding rounding, bool negative) {
  return rounding == Rounding::NearestEven || rounding == Rounding::NearestAway ||
         rounding == (negative ? Rounding::Down : Rounding::Up);
}

/// The stored bits of a rounded `code`, which may lie beyond the finite ones.
inline uint64_t finish(const Format &format, uint64_t code, bool negative, bool toInfinity) {
  if (code > format.maxFiniteCode()) {
    if (!toInfinity || !format.hasNaN())
      code = format.maxFiniteCode();
    else if (format.hasInfinity())
      code = format.infinityCode();
    else
      return format.canonicalNaN() | (negative ? format.signBit() : 0);
  }
  return (code << format.unusedBits) | (negative ? format.signBit() : 0);
}

/// Encodes as UE8M0; the comment on encode holds for it.
inline uint64_t encodeScale(double value, Rounding rounding, bool satfinite) {
  assert((rounding == Rounding::Zero || rounding == Rounding::Up) && "UE8M0 rounds to zero or up alone");
  double magnitude = doubleOf(bitsOf(value) & ~(uint64_t(1) << 63));
  if (isNaN(value))
    return 0xff;
  if (magnitude > 0x1p127)
    return satfinite || (rounding == Rounding::Zero && isFinite(value)) ? 0xfe : 0xff;
  if (magnitude <= 0x1p-127)
    return 0;
  uint64_t bits = bitsOf(magnitude);
  bool inexact = (bits & ((uint64_t(1) << 52) - 1)) != 0;
  return (bits >> 52) - (1023 - 127) + (inexact && rounding == Rounding::Up);
}

} // namespace detail

/// `value` rounded once to `format` (PTX ISA 9.7.9.21, cvt).
///
/// NaN: the canonical NaN; the largest finite value, positive, where the format has
/// no NaN (E2M1, E2M3, E3M2). Too large: infinity or the largest finite value, as
/// the rounding has it; the largest finite value of the sign with `satfinite` (of
/// infinities too) and in formats without NaN; a NaN in E4M3 without `satfinite`,
/// which PTX does not have. `relu`: 0 for negative values, -0 included.
///
/// UE8M0 rounds to zero or up alone and takes the magnitude; a value that is not above
/// 2^-127 is code 0, 2^-127. UE4M3, which no cvt makes, takes the magnitude too.
inline uint64_t encode(const Format &format, double value, Rounding rounding, bool satfinite = false,
                       bool relu = false) {
  if (!format.hasZero)
    return detail::encodeScale(value, rounding, satfinite);
  if (isNaN(value))
    return format.hasNaN() ? format.canonicalNaN() : format.maxFinite();
  bool negative = (bitsOf(value) >> 63) != 0;
  if (relu && negative)
    return 0;
  bool infinite = !isFinite(value);
  detail::Cut cut = detail::cut(format, value);
  uint64_t code = cut.code + detail::roundsAway(rounding, negative, cut.code & 1, cut.rest);
  if (infinite)
    code = format.magnitudeMask();
  bool toInfinity = !satfinite && (infinite || detail::overflowsToInfinity(rounding, negative));
  return detail::finish(format, code, negative, toInfinity);
}

/// As encode, rounded away from zero if adding the low `randomBits` bits of `random`
/// to the bits that are cut off, at their top, carries (.rs, PTX ISA 9.7.9.21): 13
/// for F16, 16 for BF16 and the formats of 8 and 6 bits, 8 for E2M1.
uint64_t encodeStochastic(const Format &format, double value, uint32_t random, unsigned randomBits,
                          bool satfinite = false, bool relu = false);

// By bits, with NaNs as `encode` and `decode` have them; all of these vectorise.

/// f32 to f16, to nearest even.
inline uint16_t floatToHalf(float value) {
  uint32_t bits = bitsOf(value), magnitude = bits & 0x7fffffffU, sign = (bits >> 16) & 0x8000U;
  // 1/2 has in its last place 2^-24, the smallest f16: the addition rounds.
  uint32_t subnormal = bitsOf(floatOf(magnitude) + 0.5f) - bitsOf(0.5f);
  uint32_t normal = (magnitude - (112U << 23) + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
  uint32_t code = magnitude < (113U << 23) ? subnormal : normal;
  code = magnitude >= (143U << 23) ? 0x7c00U : code;
  code = magnitude > 0x7f800000U ? 0x7fffU : (code | sign);
  return static_cast<uint16_t>(code);
}

/// f16 to f32; a NaN becomes 0x7fffffff.
inline float halfToFloat(uint16_t half) {
  uint32_t magnitude = half & 0x7fffU, sign = uint32_t(half & 0x8000U) << 16;
  uint32_t bits = bitsOf(floatOf(magnitude << 13) * 0x1p112f) | sign;
  bits = magnitude >= 0x7c00U ? (0x7f800000U | sign) : bits;
  bits = magnitude > 0x7c00U ? 0x7fffffffU : bits;
  return floatOf(bits);
}

/// f32 to bf16, to nearest even.
inline uint16_t floatToBFloat(float value) {
  uint32_t bits = bitsOf(value);
  uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  return static_cast<uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? 0x7fffU : rounded);
}

/// bf16 to f32; a NaN keeps its bits, PTX leaving open which NaN results.
inline float bfloatToFloat(uint16_t bits) { return floatOf(uint32_t(bits) << 16); }

/// The values of all codes of a format of at most 8 bits, as floats; NaNs are
/// 0x7fffffff. Formats of fewer bits repeat: bits above their width are ignored.
const float *floatTable(const Format &format);

} // namespace fp8emu::num

#endif // FP8EMU_NUM_FORMAT_H
