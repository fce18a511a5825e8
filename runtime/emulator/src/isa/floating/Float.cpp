// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic in f32, f64 and pairs of f32 (PTX ISA 9.7.3), and in f32 with f16 or bf16
// operands (9.7.5). Approximate functions are in Approximate.cpp, f16 and bf16 in
// Half.cpp; both share opcodes with these.

#include "FloatDecoders.h"
#include "FloatModes.h"

#include "isa/Families.h"

using namespace fp8emu;
using ptx::Type;

namespace {

/// .sat: clamped to [0, 1], 0 for NaN (PTX ISA 9.7.3.3).
float saturateIf(FloatMode m, float value) { return m.sat ? num::saturate(value) : value; }

struct Add {
  float operator()(float a, float b, FloatMode m) const {
    return saturateIf(m, num::add(a, b, m.rounding, m.ftz));
  }
  double operator()(double a, double b, FloatMode m) const { return num::add(a, b, m.rounding); }
};
struct Sub {
  float operator()(float a, float b, FloatMode m) const {
    return saturateIf(m, num::sub(a, b, m.rounding, m.ftz));
  }
  double operator()(double a, double b, FloatMode m) const { return num::sub(a, b, m.rounding); }
};
struct Mul {
  float operator()(float a, float b, FloatMode m) const {
    return saturateIf(m, num::mul(a, b, m.rounding, m.ftz));
  }
  double operator()(double a, double b, FloatMode m) const { return num::mul(a, b, m.rounding); }
};
struct Fma {
  float operator()(float a, float b, float c, FloatMode m) const {
    return saturateIf(m, num::fma(a, b, c, m.rounding, m.ftz));
  }
  double operator()(double a, double b, double c, FloatMode m) const { return num::fma(a, b, c, m.rounding); }
};
struct Div {
  float operator()(float a, float b, FloatMode m) const { return num::div(a, b, m.rounding, m.ftz); }
  double operator()(double a, double b, FloatMode m) const { return num::div(a, b, m.rounding); }
};
struct Rcp {
  float operator()(float a, FloatMode m) const { return num::rcp(a, m.rounding, m.ftz); }
  double operator()(double a, FloatMode m) const { return num::rcp(a, m.rounding); }
};
struct Sqrt {
  float operator()(float a, FloatMode m) const { return num::sqrt(a, m.rounding, m.ftz); }
  double operator()(double a, FloatMode m) const { return num::sqrt(a, m.rounding); }
};
struct Neg {
  float operator()(float a, FloatMode m) const { return num::neg(a, m.ftz); }
  double operator()(double a, FloatMode) const { return num::neg(a); }
};
struct Abs {
  float operator()(float a, FloatMode m) const { return num::abs(a, m.ftz); }
  double operator()(double a, FloatMode) const { return num::abs(a); }
};
template <bool isMax>
struct Choose {
  float operator()(float a, float b, num::MinMax m) const {
    return isMax ? num::max(a, b, m) : num::min(a, b, m);
  }
  float operator()(float a, float b, float c, num::MinMax m) const {
    return isMax ? num::max(a, b, c, m) : num::min(a, b, c, m);
  }
  double operator()(double a, double b, num::MinMax) const { return isMax ? num::max(a, b) : num::min(a, b); }
};

/// Two f32 in a 64-bit register.
struct F32x2 {
  float low, high;
};
template <class F>
struct Pairwise {
  F32x2 operator()(F32x2 a, F32x2 b, FloatMode m) const {
    return {F()(a.low, b.low, m), F()(a.high, b.high, m)};
  }
  F32x2 operator()(F32x2 a, F32x2 b, F32x2 c, FloatMode m) const {
    return {F()(a.low, b.low, c.low, m), F()(a.high, b.high, c.high, m)};
  }
};

/// All operands but the last are of the 16-bit format.
template <class F, const num::Format &format>
struct Mixed {
  float operator()(uint16_t a, float c, FloatMode m) const { return F()(num::toFloat<format>(a), c, m); }
  float operator()(uint16_t a, uint16_t b, float c, FloatMode m) const {
    return F()(num::toFloat<format>(a), num::toFloat<format>(b), c, m);
  }
};

template <class F, class T, unsigned sources>
void setHandler(Op &op, const FloatMode &mode) {
  if constexpr (sources == 1)
    setModed<F, T, T>(op, mode);
  else if constexpr (sources == 2)
    setModed<F, T, T, T>(op, mode);
  else
    setModed<F, T, T, T, T>(op, mode);
}

[[noreturn]] void badType(const Decoder &decoder, Type type) {
  decoder.fail("." + std::string(ptx::name(type)) + " is not a type of this instruction");
}

/// .rn, .rz, .rm or .rp; .rn where none is there.
num::Rounding takeRounding(Decoder &decoder, bool required) {
  constexpr num::Rounding kRoundings[] = {num::Rounding::NearestEven, num::Rounding::Zero,
                                          num::Rounding::Down, num::Rounding::Up};
  int rounding =
      required ? decoder.needOneOf({"rn", "rz", "rm", "rp"}) : decoder.takeOneOf({"rn", "rz", "rm", "rp"});
  return kRoundings[rounding < 0 ? 0 : rounding];
}

template <class F, const num::Format &format, unsigned sources>
void setMixed(Op &op, const FloatMode &mode) {
  using M = Mixed<F, format>;
  if constexpr (sources == 2)
    setModed<M, float, uint16_t, float>(op, mode);
  else
    setModed<M, float, uint16_t, uint16_t, float>(op, mode);
}

/// add, sub and fma of f32 with f16 or bf16 operands (PTX ISA 9.7.5): no .ftz.
template <class F, unsigned sources>
void decodeMixed(Decoder &decoder, FloatMode mode) {
  Type type = decoder.takeType();
  if (type != Type::F16 && type != Type::BF16)
    badType(decoder, type);
  mode.sat = decoder.take("sat");
  decoder.expectOperands(sources + 1);
  Op &op = decoder.op();
  op.d = decoder.destination(0, Type::F32);
  op.a = decoder.source(1, type);
  op.b = decoder.source(2, sources == 2 ? Type::F32 : type);
  if (sources == 3)
    op.c = decoder.source(3, Type::F32);
  type == Type::F16 ? setMixed<F, num::F16, sources>(op, mode) : setMixed<F, num::BF16, sources>(op, mode);
}

/// add, sub, mul and fma.
template <class F, unsigned sources>
void decodeArithmetic(Decoder &decoder, HalfOperation half) {
  constexpr bool isFma = sources == 3;
  Op &op = decoder.op();
  bool isPair = decoder.take("f32x2");
  Type type = isPair ? Type::F32x2 : decoder.takeType();
  if (isHalf(type))
    return decodeHalfArithmetic(decoder, type, half);
  FloatMode mode;
  mode.rounding = takeRounding(decoder, /*required=*/isFma);
  if constexpr (!std::is_same<F, Mul>::value)
    if (type == Type::F32 && decoder.hasType())
      return decodeMixed<F, sources>(decoder, mode);
  mode.ftz = (isPair || type == Type::F32) && decoder.take("ftz");
  mode.sat = type == Type::F32 && decoder.take("sat");
  decodeLanes(decoder, type, sources);
  if (isPair)
    return setHandler<Pairwise<F>, F32x2, sources>(op, mode);
  if (type == Type::F32)
    return setHandler<F, float, sources>(op, mode);
  if (type == Type::F64)
    return setHandler<F, double, sources>(op, mode);
  badType(decoder, type);
}

/// Instructions on f32 and f64, `mode` but for .ftz of f32.
template <class F, unsigned sources>
void decodeScalar(Decoder &decoder, Type type, FloatMode mode) {
  mode.ftz = type == Type::F32 && decoder.take("ftz");
  decodeLanes(decoder, type, sources);
  if (type == Type::F32)
    return setHandler<F, float, sources>(decoder.op(), mode);
  if (type == Type::F64)
    return setHandler<F, double, sources>(decoder.op(), mode);
  badType(decoder, type);
}

template <class F, unsigned sources>
void decodeRounded(Decoder &decoder) {
  FloatMode mode;
  mode.rounding = takeRounding(decoder, /*required=*/true);
  decodeScalar<F, sources>(decoder, decoder.takeType(), mode);
}

void decodeSqrt(Decoder &decoder) {
  decoder.take("approx") ? decodeApproximateSqrt(decoder) : decodeRounded<Sqrt, 1>(decoder);
}
void decodeRcp(Decoder &decoder) {
  decoder.take("approx") ? decodeApproximateRcp(decoder) : decodeRounded<Rcp, 1>(decoder);
}

template <class F>
void decodeSign(Decoder &decoder, HalfOperation half) {
  Type type = decoder.takeType();
  if (isHalf(type))
    return decodeHalfArithmetic(decoder, type, half);
  decodeScalar<F, 1>(decoder, type, FloatMode());
}

/// .xorsign comes with .abs; .abs alone is for three operands (PTX ISA 9.7.3.11).
template <bool isMax>
void decodeChoose(Decoder &decoder) {
  Type type = decoder.takeType();
  if (isHalf(type))
    return decodeHalfArithmetic(decoder, type, isMax ? HalfOperation::Max : HalfOperation::Min);
  Op &op = decoder.op();
  num::MinMax mode;
  if (type == Type::F64) {
    decodeLanes(decoder, type, 2);
    return setModed<Choose<isMax>, double, double, double>(op, mode);
  }
  if (type != Type::F32)
    badType(decoder, type);
  bool isThree = decoder.operands() == 4;
  mode.ftz = decoder.take("ftz");
  mode.nan = decoder.take("NaN");
  mode.xorsign = !isThree && decoder.take("xorsign");
  mode.abs = (isThree || mode.xorsign) && decoder.take("abs");
  if (mode.xorsign && !mode.abs)
    decoder.fail(".xorsign needs .abs");
  decodeLanes(decoder, type, isThree ? 3 : 2);
  isThree ? setModed<Choose<isMax>, float, float, float, float>(op, mode)
          : setModed<Choose<isMax>, float, float, float>(op, mode);
}

struct Copysign {
  template <class T>
  T operator()(T a, T b) const {
    return num::copysign(a, b);
  }
};

void decodeCopysign(Decoder &decoder) {
  Type type = decoder.takeType();
  decodeLanes(decoder, type, 2);
  if (type != Type::F32 && type != Type::F64)
    badType(decoder, type);
  decoder.op().handler = type == Type::F32 ? &binaryLanes<float, float, float, Copysign>
                                           : &binaryLanes<double, double, double, Copysign>;
}

template <class T>
void testProperty(Warp &warp, const Op &op, Mask mask) {
  const T *a = warp.values<T>(op.a);
  auto property = num::Property(op.flags);
  Mask result = 0;
  forLanes(mask, [&](unsigned lane) { result |= Mask(num::testp(property, a[lane])) << lane; });
  Mask &d = warp.predicate(op.d);
  d = (d & ~mask) | (result & mask);
}

void decodeTestp(Decoder &decoder) {
  decoder.expectOperands(2);
  Op &op = decoder.op();
  op.flags =
      uint8_t(decoder.needOneOf({"finite", "infinite", "number", "notanumber", "normal", "subnormal"}));
  Type type = decoder.takeType();
  if (type != Type::F32 && type != Type::F64)
    badType(decoder, type);
  op.d = decoder.predicateDestination(decoder.operand(0));
  op.a = decoder.source(1, type);
  op.handler = type == Type::F32 ? &testProperty<float> : &testProperty<double>;
}

} // namespace

bool fp8emu::isHalf(Type type) {
  return type == Type::F16 || type == Type::F16x2 || type == Type::BF16 || type == Type::BF16x2;
}

bool fp8emu::isFloatInstruction(const Decoder &decoder) {
  for (const std::string &modifier : decoder.instruction().modifiers)
    for (const char *type : {"f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64"})
      if (modifier == type)
        return true;
  return false;
}

void fp8emu::decodeFloatAdd(Decoder &decoder) { decodeArithmetic<Add, 2>(decoder, HalfOperation::Add); }
void fp8emu::decodeFloatSub(Decoder &decoder) { decodeArithmetic<Sub, 2>(decoder, HalfOperation::Sub); }
void fp8emu::decodeFloatMul(Decoder &decoder) { decodeArithmetic<Mul, 2>(decoder, HalfOperation::Mul); }

/// fma, and mad, which is the same but only of f32 and f64 (PTX ISA 9.7.3.7).
void fp8emu::decodeFloatFma(Decoder &decoder) {
  if (decoder.instruction().opcode == "fma")
    return decodeArithmetic<Fma, 3>(decoder, HalfOperation::Fma);
  FloatMode mode;
  mode.rounding = takeRounding(decoder, /*required=*/true);
  Type type = decoder.takeType();
  mode.sat = type == Type::F32 && decoder.take("sat");
  decodeScalar<Fma, 3>(decoder, type, mode);
}

void fp8emu::decodeFloatDiv(Decoder &decoder) {
  int approximate = decoder.takeOneOf({"approx", "full"});
  approximate >= 0 ? decodeApproximateDiv(decoder, /*isFull=*/approximate == 1)
                   : decodeRounded<Div, 2>(decoder);
}

void fp8emu::decodeFloatNeg(Decoder &decoder) { decodeSign<Neg>(decoder, HalfOperation::Neg); }
void fp8emu::decodeFloatAbs(Decoder &decoder) { decodeSign<Abs>(decoder, HalfOperation::Abs); }
void fp8emu::decodeFloatMinMax(Decoder &decoder, bool isMax) {
  isMax ? decodeChoose<true>(decoder) : decodeChoose<false>(decoder);
}

FamilyList fp8emu::floatInstructions() {
  return {{"fma", decodeFloatFma},
          {"sqrt", decodeSqrt},
          {"rcp", decodeRcp},
          {"copysign", decodeCopysign},
          {"testp", decodeTestp}};
}
