// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Approximate instructions (PTX ISA 9.7.3.8, 9.7.3.13 to 9.7.3.22): their values are those of num/Approx.h.

#include "FloatDecoders.h"
#include "FloatModes.h"

#include "isa/Families.h"
#include "num/Approx.h"

using namespace fp8emu;
using ptx::Type;

namespace {

struct Rcp {
  float operator()(float a, FloatMode m) const { return num::rcpApprox(a, m.ftz); }
};
struct Sqrt {
  float operator()(float a, FloatMode m) const { return num::sqrtApprox(a, m.ftz); }
};
struct Rsqrt {
  float operator()(float a, FloatMode m) const { return num::rsqrtApprox(a, m.ftz); }
};
struct Sin {
  float operator()(float a, FloatMode m) const { return num::sinApprox(a, m.ftz); }
};
struct Cos {
  float operator()(float a, FloatMode m) const { return num::cosApprox(a, m.ftz); }
};
struct Lg2 {
  float operator()(float a, FloatMode m) const { return num::lg2Approx(a, m.ftz); }
};
struct Ex2 {
  float operator()(float a, FloatMode m) const { return num::ex2Approx(a, m.ftz); }
};
struct Tanh {
  float operator()(float a) const { return num::tanhApprox(a); }
};
struct Div {
  float operator()(float a, float b, FloatMode m) const { return num::divApprox(a, b, m.ftz); }
};
struct DivFull {
  float operator()(float a, float b, FloatMode m) const { return num::divFull(a, b, m.ftz); }
};
struct RcpF64 {
  double operator()(double a) const { return num::rcpApproxFtz(a); }
};
struct RsqrtF64 {
  double operator()(double a, FloatMode m) const {
    return m.ftz ? num::rsqrtApproxFtz(a) : num::rsqrtApprox(a);
  }
};

void expectType(Decoder &decoder, Type type, Type expected) {
  if (type != expected)
    decoder.fail("." + std::string(ptx::name(type)) + " is not a type of this instruction");
}

FloatMode takeFtz(Decoder &decoder) {
  FloatMode mode;
  mode.ftz = decoder.take("ftz");
  return mode;
}

template <class F>
void decodeF32(Decoder &decoder, Type type) {
  expectType(decoder, type, Type::F32);
  decodeLanes(decoder, type, 1);
  setModed<F, float, float>(decoder.op(), takeFtz(decoder));
}

/// sin, cos, lg2.
template <class F>
void decodeUnary(Decoder &decoder) {
  decoder.needOneOf({"approx"});
  decodeF32<F>(decoder, decoder.takeType());
}

void decodeRsqrt(Decoder &decoder) {
  decoder.needOneOf({"approx"});
  Type type = decoder.takeType();
  if (type != Type::F64)
    return decodeF32<Rsqrt>(decoder, type);
  decodeLanes(decoder, type, 1);
  setModed<RsqrtF64, double, double>(decoder.op(), takeFtz(decoder));
}

void decodeEx2(Decoder &decoder) {
  decoder.needOneOf({"approx"});
  Type type = decoder.takeType();
  isHalf(type) ? decodeHalfArithmetic(decoder, type, HalfOperation::Ex2) : decodeF32<Ex2>(decoder, type);
}

/// Without .ftz: subnormal numbers are supported (PTX ISA 9.7.3.22).
void decodeTanh(Decoder &decoder) {
  decoder.needOneOf({"approx"});
  Type type = decoder.takeType();
  if (isHalf(type))
    return decodeHalfArithmetic(decoder, type, HalfOperation::Tanh);
  expectType(decoder, type, Type::F32);
  decodeLanes(decoder, type, 1);
  decoder.op().handler = &unaryLanes<float, float, Tanh>;
}

} // namespace

void fp8emu::decodeApproximateDiv(Decoder &decoder, bool isFull) {
  Type type = decoder.takeType();
  expectType(decoder, type, Type::F32);
  decodeLanes(decoder, type, 2);
  isFull ? setModed<DivFull, float, float, float>(decoder.op(), takeFtz(decoder))
         : setModed<Div, float, float, float>(decoder.op(), takeFtz(decoder));
}

/// That of f64 is with .ftz alone (PTX ISA 9.7.3.14).
void fp8emu::decodeApproximateRcp(Decoder &decoder) {
  Type type = decoder.takeType();
  if (type != Type::F64)
    return decodeF32<Rcp>(decoder, type);
  decoder.needOneOf({"ftz"});
  decodeLanes(decoder, type, 1);
  decoder.op().handler = &unaryLanes<double, double, RcpF64>;
}

void fp8emu::decodeApproximateSqrt(Decoder &decoder) { decodeF32<Sqrt>(decoder, decoder.takeType()); }

FamilyList fp8emu::approximateInstructions() {
  return {{"rsqrt", decodeRsqrt},    {"sin", decodeUnary<Sin>}, {"cos", decodeUnary<Cos>},
          {"lg2", decodeUnary<Lg2>}, {"ex2", decodeEx2},        {"tanh", decodeTanh}};
}
