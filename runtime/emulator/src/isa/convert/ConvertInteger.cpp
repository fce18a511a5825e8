// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cvt between integers: cut off or extended as the source's type says, or clamped with
// .sat (PTX ISA 9.7.9.21).

#include "ConvertLanes.h"

#include "num/Convert.h"

using namespace fp8emu;

namespace {

struct Wrap {
  template <class To, class From>
  static To convert(From value, CvtMode) {
    return To(value);
  }
};

struct Clamp {
  template <class To, class From>
  static To convert(From value, CvtMode) {
    return num::saturateInteger<To>(value);
  }
};

} // namespace

Handler fp8emu::integerConversion(Decoder &decoder, const Conversion &conversion) {
  bool clamps = conversion.mode.sat;
  return forCvtInteger(decoder, *conversion.to, [&](auto to) {
    return forCvtInteger(decoder, *conversion.from, [&](auto from) -> Handler {
      using To = decltype(to);
      using From = decltype(from);
      return clamps ? &convertLanesFixed<Clamp, To, From, 0> : &convertLanesFixed<Wrap, To, From, 0>;
    });
  });
}
