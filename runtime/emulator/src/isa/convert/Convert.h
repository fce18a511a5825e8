// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Common parts of the files of cvt: its types, which are more than those of registers, and a
// conversion as the modifiers of the instruction give it.

#ifndef FP8EMU_ISA_CONVERT_CONVERT_H
#define FP8EMU_ISA_CONVERT_CONVERT_H

#include "isa/Lanes.h"
#include "num/Format.h"

namespace fp8emu {

/// A type of cvt.
struct CvtType {
  enum Kind : uint8_t { Integer, Float, Packed, FixedPoint } kind;
  const char *name;
  /// Of registers that hold it.
  ptx::Type type;
  /// Of each number; null for integers and fixed point.
  const num::Format *format = nullptr;
  /// Numbers in one register.
  unsigned count = 1;
};

enum class CvtRounding : uint8_t {
  None,
  /// .rn, .rna, .rz, .rm, .rp
  Float,
  /// .rni, .rzi, .rmi, .rpi
  Integral,
  /// .rs
  Stochastic
};

/// The modifiers that a handler needs besides the types; kept in Op::flags.
struct CvtMode {
  bool ftz = false, sat = false, relu = false, satfinite = false, integral = false;
  num::Rounding rounding = num::Rounding::NearestEven;

  uint8_t pack() const {
    return uint8_t(ftz | sat << 1 | relu << 2 | satfinite << 3 | integral << 4 | unsigned(rounding) << 5);
  }
  static constexpr CvtMode unpack(uint8_t flags) {
    return {bool(flags & 1), bool(flags & 2),  bool(flags & 4),
            bool(flags & 8), bool(flags & 16), num::Rounding(flags >> 5)};
  }
  /// Nothing but rounding to nearest even.
  constexpr bool isPlain() const {
    return !ftz && !sat && !relu && !satfinite && !integral && rounding == num::Rounding::NearestEven;
  }
};

struct Conversion {
  const CvtType *to = nullptr, *from = nullptr;
  CvtRounding kind = CvtRounding::None;
  bool scaled = false;
  CvtMode mode;

  bool isFrom(ptx::Type type) const { return from->count == 1 && from->type == type; }
  bool isTo(ptx::Type type) const { return to->count == 1 && to->type == type; }
};

/// The handler of a conversion between numbers that fill their registers (8-bit ones
/// 16 bits): of integers (ConvertInteger.cpp), with floats (ConvertFloat.cpp).
Handler integerConversion(Decoder &decoder, const Conversion &conversion);
Handler floatConversion(Decoder &decoder, const Conversion &conversion);

/// All of a conversion where one side is packed (ConvertPacked.cpp), and of those with
/// stochastic rounding (ConvertStochastic.cpp).
void decodePackedConversion(Decoder &decoder, const Conversion &conversion);
void decodeStochasticConversion(Decoder &decoder, const Conversion &conversion);

/// All of a conversion from or to s2f6x2 (ConvertFixedPoint.cpp).
void decodeFixedPointConversion(Decoder &decoder, const Conversion &conversion);

/// The op's destination, and its source, which may be wider than their types, but for
/// bf16 and tf32 (PTX ISA 9.4.1, 9.7.9.21): then the op's handler, set before, is wrapped.
void setWideDestination(Decoder &decoder, ptx::Type type);
void setWideOperands(Decoder &decoder, const Conversion &conversion);

/// cvt.pack (ConvertPack.cpp), that modifier taken already.
void decodeConvertPack(Decoder &decoder);

} // namespace fp8emu

#endif // FP8EMU_ISA_CONVERT_CONVERT_H
