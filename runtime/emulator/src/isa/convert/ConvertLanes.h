// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the numbers that cvt converts lie in registers, and the choice of C++ types for the
// types of a conversion.

#ifndef FP8EMU_ISA_CONVERT_CONVERTLANES_H
#define FP8EMU_ISA_CONVERT_CONVERTLANES_H

#include "Convert.h"

#include "num/Half.h"

#include <type_traits>

namespace fp8emu {

/// A 16-bit float, of the format as a template argument: its bits.
template <const num::Format &format>
struct HalfBits {
  uint16_t bits;
};
using F16Bits = HalfBits<num::F16>;
using BF16Bits = HalfBits<num::BF16>;
struct TF32Bits {
  uint32_t bits;
};

/// The bits that a lane of a register holds for a `T`, and the value to compute with.
template <class T>
struct Lane {
  using Raw = T;
  static T load(Raw raw) { return raw; }
  static Raw store(T value) { return value; }
};
/// 8 bits in registers of 16, extended.
template <>
struct Lane<uint8_t> {
  using Raw = uint16_t;
  static uint8_t load(Raw raw) { return uint8_t(raw); }
  static Raw store(uint8_t value) { return value; }
};
template <>
struct Lane<int8_t> {
  using Raw = uint16_t;
  static int8_t load(Raw raw) { return int8_t(raw); }
  static Raw store(int8_t value) { return uint16_t(int16_t(value)); }
};
template <const num::Format &format>
struct Lane<HalfBits<format>> {
  using Raw = uint16_t;
  static float load(Raw raw) { return num::toFloat<format>(raw); }
  static Raw store(HalfBits<format> value) { return value.bits; }
};
template <>
struct Lane<TF32Bits> {
  using Raw = uint32_t;
  static Raw store(TF32Bits value) { return value.bits; }
};

/// `F` has a static member `convert<To, From>(value, mode)`.
template <class F, class To, class From>
void convertLanes(Warp &warp, const Op &op, Mask mask) {
  auto *d = warp.values<typename Lane<To>::Raw>(op.d);
  const auto *a = warp.values<typename Lane<From>::Raw>(op.a);
  CvtMode mode = CvtMode::unpack(op.flags);
  forLanes(mask, [=](unsigned lane) {
    d[lane] = Lane<To>::store(F::template convert<To, From>(Lane<From>::load(a[lane]), mode));
  });
}

/// The same, the mode known to the compiler.
template <class F, class To, class From, uint8_t flags>
void convertLanesFixed(Warp &warp, const Op &op, Mask mask) {
  auto *d = warp.values<typename Lane<To>::Raw>(op.d);
  const auto *a = warp.values<typename Lane<From>::Raw>(op.a);
  forLanes(mask, [=](unsigned lane) {
    d[lane] =
        Lane<To>::store(F::template convert<To, From>(Lane<From>::load(a[lane]), CvtMode::unpack(flags)));
  });
}

/// Bits from one number to the next where several share a register: those of 6 bits
/// lie in bytes.
constexpr unsigned slotBits(const num::Format &format) { return format.width() == 6 ? 8 : format.width(); }

/// Calls `make` with a value of the type's kind of number.
template <class Make>
Handler forCvtInteger(Decoder &decoder, const CvtType &type, Make make) {
  if (type.type == ptx::Type::U8)
    return make(uint8_t());
  if (type.type == ptx::Type::S8)
    return make(int8_t());
  return forInteger(decoder, type.type, make);
}

template <class Make>
Handler forCvtFloat(const CvtType &type, Make make) {
  switch (type.type) {
  case ptx::Type::F16:
    return make(F16Bits());
  case ptx::Type::BF16:
    return make(BF16Bits());
  case ptx::Type::F32:
    return make(float());
  default:
    return make(double());
  }
}

} // namespace fp8emu

#endif // FP8EMU_ISA_CONVERT_CONVERTLANES_H
