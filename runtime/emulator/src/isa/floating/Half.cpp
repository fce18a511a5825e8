// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic in f16, bf16 and pairs of them (PTX ISA 9.7.4). bf16 has neither .ftz nor
// .sat. The opcodes are those of integers and of f32, whose decoders come here.

#include "FloatDecoders.h"
#include "FloatModes.h"

#include "isa/Families.h"
#include "num/Approx.h"

using namespace fp8emu;
using num::Format;
using num::HalfMod;
using num::MinMax;
using ptx::Type;

namespace {

template <const Format &format>
struct Add {
  uint16_t operator()(uint16_t a, uint16_t b, HalfMod m) const { return num::add<format>(a, b, m); }
};
template <const Format &format>
struct Sub {
  uint16_t operator()(uint16_t a, uint16_t b, HalfMod m) const { return num::sub<format>(a, b, m); }
};
template <const Format &format>
struct Mul {
  uint16_t operator()(uint16_t a, uint16_t b, HalfMod m) const { return num::mul<format>(a, b, m); }
};
template <const Format &format>
struct Fma {
  uint16_t operator()(uint16_t a, uint16_t b, uint16_t c, HalfMod m) const {
    return num::fma<format>(a, b, c, m);
  }
};
template <const Format &format>
struct Neg {
  uint16_t operator()(uint16_t a, HalfMod m) const { return num::neg<format>(a, m.ftz); }
};
template <const Format &format>
struct Abs {
  uint16_t operator()(uint16_t a, HalfMod m) const { return num::abs<format>(a, m.ftz); }
};
template <const Format &format>
struct Min {
  uint16_t operator()(uint16_t a, uint16_t b, MinMax m) const { return num::min<format>(a, b, m); }
};
template <const Format &format>
struct Max {
  uint16_t operator()(uint16_t a, uint16_t b, MinMax m) const { return num::max<format>(a, b, m); }
};
template <const Format &format>
struct Tanh {
  uint16_t operator()(uint16_t a, HalfMod) const { return num::tanhApprox<format>(a); }
};
template <const Format &format>
struct Ex2 {
  uint16_t operator()(uint16_t a, HalfMod m) const { return num::ex2Approx<format>(a, m.ftz); }
};

/// `F` of both halves of 32 bits.
template <class F>
struct Pairwise {
  template <class Mode>
  uint32_t operator()(uint32_t a, Mode m) const {
    return join(F()(low(a), m), F()(high(a), m));
  }
  template <class Mode>
  uint32_t operator()(uint32_t a, uint32_t b, Mode m) const {
    return join(F()(low(a), low(b), m), F()(high(a), high(b), m));
  }
  template <class Mode>
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c, Mode m) const {
    return join(F()(low(a), low(b), low(c), m), F()(high(a), high(b), high(c), m));
  }

private:
  static uint16_t low(uint32_t pair) { return uint16_t(pair); }
  static uint16_t high(uint32_t pair) { return uint16_t(pair >> 16); }
  static uint32_t join(uint16_t low, uint16_t high) { return low | uint32_t(high) << 16; }
};

template <class F, class T, unsigned sources, class Mode>
void setSources(Op &op, const Mode &mode) {
  if constexpr (sources == 1)
    setModed<F, T, T>(op, mode);
  else if constexpr (sources == 2)
    setModed<F, T, T, T>(op, mode);
  else
    setModed<F, T, T, T, T>(op, mode);
}

bool isBF16(Type type) { return type == Type::BF16 || type == Type::BF16x2; }

template <template <const Format &> class F, unsigned sources, class Mode>
void decode(Decoder &decoder, Type type, const Mode &mode) {
  decodeLanes(decoder, type, sources);
  Op &op = decoder.op();
  switch (type) {
  case Type::F16:
    return setSources<F<num::F16>, uint16_t, sources>(op, mode);
  case Type::BF16:
    return setSources<F<num::BF16>, uint16_t, sources>(op, mode);
  case Type::F16x2:
    return setSources<Pairwise<F<num::F16>>, uint32_t, sources>(op, mode);
  default:
    return setSources<Pairwise<F<num::BF16>>, uint32_t, sources>(op, mode);
  }
}

/// add, sub and mul: {.rn}, and of f16 {.ftz}{.sat}.
HalfMod takeMode(Decoder &decoder, Type type) {
  HalfMod mode;
  decoder.take("rn");
  mode.ftz = !isBF16(type) && decoder.take("ftz");
  mode.sat = !isBF16(type) && decoder.take("sat");
  return mode;
}

/// fma: .rn, then {.ftz}{.sat} or {.ftz}.relu of f16, {.relu} of bf16, or .oob{.relu}
/// (PTX ISA 9.7.4.4).
HalfMod takeFmaMode(Decoder &decoder, Type type) {
  decoder.needOneOf({"rn"});
  HalfMod mode;
  mode.oob = decoder.take("oob");
  mode.relu = decoder.take("relu");
  mode.ftz = !isBF16(type) && !mode.oob && decoder.take("ftz");
  mode.sat = !isBF16(type) && !mode.oob && !mode.relu && decoder.take("sat");
  return mode;
}

/// min and max: {.ftz}{.NaN}{.xorsign.abs}, .ftz of f16 only.
MinMax takeMinMax(Decoder &decoder, Type type) {
  MinMax mode;
  mode.ftz = !isBF16(type) && decoder.take("ftz");
  mode.nan = decoder.take("NaN");
  mode.xorsign = decoder.take("xorsign");
  mode.abs = mode.xorsign && decoder.take("abs");
  if (mode.xorsign && !mode.abs)
    decoder.fail(".xorsign needs .abs");
  return mode;
}

HalfMod takeFtz(Decoder &decoder, Type type) {
  HalfMod mode;
  mode.ftz = !isBF16(type) && decoder.take("ftz");
  return mode;
}

/// ex2: bf16 has .ftz always, f16 never (PTX ISA 9.7.4.10).
HalfMod takeEx2Mode(Decoder &decoder, Type type) {
  HalfMod mode;
  mode.ftz = isBF16(type) && decoder.needOneOf({"ftz"}) == 0;
  return mode;
}

} // namespace

void fp8emu::decodeHalfArithmetic(Decoder &decoder, Type type, HalfOperation operation) {
  switch (operation) {
  case HalfOperation::Add:
    return decode<Add, 2>(decoder, type, takeMode(decoder, type));
  case HalfOperation::Sub:
    return decode<Sub, 2>(decoder, type, takeMode(decoder, type));
  case HalfOperation::Mul:
    return decode<Mul, 2>(decoder, type, takeMode(decoder, type));
  case HalfOperation::Fma:
    return decode<Fma, 3>(decoder, type, takeFmaMode(decoder, type));
  case HalfOperation::Neg:
    return decode<Neg, 1>(decoder, type, takeFtz(decoder, type));
  case HalfOperation::Abs:
    return decode<Abs, 1>(decoder, type, takeFtz(decoder, type));
  case HalfOperation::Min:
    return decode<Min, 2>(decoder, type, takeMinMax(decoder, type));
  case HalfOperation::Max:
    return decode<Max, 2>(decoder, type, takeMinMax(decoder, type));
  case HalfOperation::Tanh:
    return decode<Tanh, 1>(decoder, type, HalfMod());
  case HalfOperation::Ex2:
    return decode<Ex2, 1>(decoder, type, takeEx2Mode(decoder, type));
  }
}

/// All of its opcodes are shared: with integers, or with f32.
FamilyList fp8emu::halfInstructions() { return {}; }
