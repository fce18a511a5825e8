// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cvt between integers and floats and between floats, one number each (PTX ISA
// 9.7.9.21).

#include "ConvertLanes.h"

#include "num/Convert.h"

using namespace fp8emu;
using num::Rounding;

namespace {

template <class T>
constexpr bool kIsInteger = std::is_integral<T>::value;

/// A value as it is to the destination's type, once .sat and rounding to an integral
/// value are done. .sat comes before rounding: its bounds are numbers of all formats.
template <class To>
struct Destination;

template <>
struct Destination<double> {
  static double round(double value, CvtMode) { return value; }
  static double plain(double value) { return value; }
  template <class Int>
  static double fromInteger(Int value, CvtMode mode) {
    return num::integerToDouble(value, mode.rounding);
  }
};

template <>
struct Destination<float> {
  static float round(double value, CvtMode mode) {
    return num::flushIf(mode.ftz, num::canonical(num::roundToFloat(value, mode.rounding)));
  }
  static float plain(double value) { return num::canonical(float(value)); }
  /// From f16 and bf16: exact.
  static float plain(float value) { return value; }
  template <class Int>
  static float fromInteger(Int value, CvtMode mode) {
    return num::integerToFloat(value, mode.rounding);
  }
};

template <const num::Format &format>
struct Destination<HalfBits<format>> {
  using Bits = HalfBits<format>;
  static Bits round(double value, CvtMode mode) {
    return {uint16_t(num::encode(format, value, mode.rounding, mode.satfinite, mode.relu))};
  }
  static Bits plain(double value) { return {num::fromDouble<format>(value)}; }
  static Bits plain(float value) { return {num::fromFloat<format>(value)}; }
  template <class Int>
  static Bits fromInteger(Int value, CvtMode mode) {
    return {uint16_t(num::integerToFormat(format, value, mode.rounding))};
  }
};

template <>
struct Destination<TF32Bits> {
  static TF32Bits round(double value, CvtMode mode) {
    return {uint32_t(num::encode(num::TF32, value, mode.rounding, mode.satfinite, mode.relu))};
  }
  static TF32Bits plain(double value) { return round(value, CvtMode()); }
};

struct ToInteger {
  template <class To, class From, class V>
  static To convert(V value, CvtMode mode) {
    if constexpr (std::is_same<From, float>::value)
      value = num::flushIf(mode.ftz, value);
    return num::toInteger<To>(value, mode.rounding);
  }
};

struct FromInteger {
  template <class To, class From>
  static To convert(From value, CvtMode mode) {
    if (mode.sat)
      return Destination<To>::round(value > 0 ? 1.0 : 0.0, mode);
    return Destination<To>::fromInteger(value, mode);
  }
};

struct BetweenFloats {
  template <class To, class From, class V>
  static To convert(V value, CvtMode mode) {
    if (mode.isPlain())
      return Destination<To>::plain(value);
    if constexpr (std::is_same<From, float>::value)
      value = num::flushIf(mode.ftz, value);
    double wide = value;
    if (mode.integral) {
      wide = num::roundIntegral(wide, mode.rounding);
      mode.rounding = Rounding::NearestEven; // exact
    }
    if (mode.sat)
      wide = num::saturate(wide);
    return Destination<To>::round(wide, mode);
  }
};

template <class F, class To, class From>
Handler handlerOf(const CvtMode &mode) {
  return mode.isPlain() ? &convertLanesFixed<F, To, From, 0> : &convertLanes<F, To, From>;
}

/// Towards zero is what kernels have.
template <class To, class From>
Handler integerHandler(const CvtMode &mode) {
  constexpr uint8_t kTowardsZero = 16 | uint8_t(Rounding::Zero) << 5;
  return mode.pack() == kTowardsZero ? &convertLanesFixed<ToInteger, To, From, kTowardsZero>
                                     : &convertLanes<ToInteger, To, From>;
}

} // namespace

Handler fp8emu::floatConversion(Decoder &decoder, const Conversion &c) {
  if (c.to->format == &num::TF32)
    return handlerOf<BetweenFloats, TF32Bits, float>(c.mode);
  if (c.to->kind == CvtType::Integer)
    return forCvtInteger(decoder, *c.to, [&](auto to) {
      return forCvtFloat(*c.from,
                         [&](auto from) { return integerHandler<decltype(to), decltype(from)>(c.mode); });
    });
  return forCvtFloat(*c.to, [&](auto to) {
    using To = decltype(to);
    if (c.from->kind == CvtType::Float)
      return forCvtFloat(*c.from,
                         [&](auto from) { return handlerOf<BetweenFloats, To, decltype(from)>(c.mode); });
    return forCvtInteger(decoder, *c.from,
                         [&](auto from) { return handlerOf<FromInteger, To, decltype(from)>(c.mode); });
  });
}
