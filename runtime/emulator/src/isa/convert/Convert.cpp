// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cvt (PTX ISA 9.7.9.21): its modifiers, and which of them go together.

#include "Convert.h"

#include "isa/Families.h"

#include <memory>

using namespace fp8emu;
using num::Rounding;
using ptx::Type;

namespace {

/// Registers of packed numbers are of bits alone, as those of .bf16 and .bf16x2 are.
constexpr Type kBits16 = Type::BF16, kBits32 = Type::BF16x2;

const CvtType kTypes[] = {{CvtType::Integer, "u8", Type::U8},
                          {CvtType::Integer, "s8", Type::S8},
                          {CvtType::Integer, "u16", Type::U16},
                          {CvtType::Integer, "s16", Type::S16},
                          {CvtType::Integer, "u32", Type::U32},
                          {CvtType::Integer, "s32", Type::S32},
                          {CvtType::Integer, "u64", Type::U64},
                          {CvtType::Integer, "s64", Type::S64},
                          {CvtType::Float, "f16", Type::F16, &num::F16},
                          {CvtType::Float, "bf16", Type::BF16, &num::BF16},
                          {CvtType::Float, "f32", Type::F32, &num::F32},
                          {CvtType::Float, "f64", Type::F64, &num::F64},
                          {CvtType::Float, "tf32", kBits32, &num::TF32},
                          {CvtType::Packed, "f16x2", Type::F16x2, &num::F16, 2},
                          {CvtType::Packed, "bf16x2", Type::BF16x2, &num::BF16, 2},
                          {CvtType::Packed, "e4m3x2", kBits16, &num::E4M3, 2},
                          {CvtType::Packed, "e5m2x2", kBits16, &num::E5M2, 2},
                          {CvtType::Packed, "e2m3x2", kBits16, &num::E2M3, 2},
                          {CvtType::Packed, "e3m2x2", kBits16, &num::E3M2, 2},
                          {CvtType::Packed, "e2m1x2", Type::B8, &num::E2M1, 2},
                          {CvtType::Packed, "ue8m0x2", kBits16, &num::UE8M0, 2},
                          {CvtType::FixedPoint, "s2f6x2", kBits16, nullptr, 2},
                          {CvtType::Packed, "e4m3x4", kBits32, &num::E4M3, 4},
                          {CvtType::Packed, "e5m2x4", kBits32, &num::E5M2, 4},
                          {CvtType::Packed, "e2m3x4", kBits32, &num::E2M3, 4},
                          {CvtType::Packed, "e3m2x4", kBits32, &num::E3M2, 4},
                          {CvtType::Packed, "e2m1x4", kBits16, &num::E2M1, 4}};

struct RoundingName {
  const char *name;
  CvtRounding kind;
  Rounding rounding;
};
constexpr RoundingName kRoundings[] = {
    {"rn", CvtRounding::Float, Rounding::NearestEven}, {"rna", CvtRounding::Float, Rounding::NearestAway},
    {"rz", CvtRounding::Float, Rounding::Zero},        {"rm", CvtRounding::Float, Rounding::Down},
    {"rp", CvtRounding::Float, Rounding::Up},          {"rni", CvtRounding::Integral, Rounding::NearestEven},
    {"rzi", CvtRounding::Integral, Rounding::Zero},    {"rmi", CvtRounding::Integral, Rounding::Down},
    {"rpi", CvtRounding::Integral, Rounding::Up},      {"rs", CvtRounding::Stochastic, Rounding::Zero}};

bool takeRounding(Decoder &decoder, Conversion &c, const std::string &name) {
  for (const RoundingName &known : kRoundings)
    if (name == known.name) {
      if (c.kind != CvtRounding::None)
        decoder.fail("." + name + " is a second rounding");
      c.kind = known.kind;
      c.mode.rounding = known.rounding;
      return true;
    }
  return false;
}

/// The first type is the destination's.
bool takeNumber(Conversion &c, const std::string &name) {
  for (const CvtType &known : kTypes)
    if (name == known.name && !c.from) {
      (c.to ? c.from : c.to) = &known;
      return true;
    }
  return false;
}

bool takeFlag(Conversion &c, const std::string &name) {
  const std::pair<const char *, bool *> flags[] = {{"ftz", &c.mode.ftz},
                                                   {"sat", &c.mode.sat},
                                                   {"relu", &c.mode.relu},
                                                   {"satfinite", &c.mode.satfinite},
                                                   {"scaled::n2::ue8m0", &c.scaled}};
  for (const auto &[known, flag] : flags)
    if (name == known && !*flag)
      return *flag = true;
  return false;
}

Conversion takeConversion(Decoder &decoder) {
  Conversion c;
  for (std::string name = decoder.takeAny(); !name.empty(); name = decoder.takeAny())
    if (!takeRounding(decoder, c, name) && !takeNumber(c, name) && !takeFlag(c, name))
      decoder.fail("." + name + " is not known here");
  if (!c.from)
    decoder.fail("a type is missing");
  c.mode.integral = c.kind == CvtRounding::Integral;
  return c;
}

void forbid(Decoder &decoder, bool is, const char *what) {
  if (is)
    decoder.fail(std::string(what) + " is not for this conversion");
}

/// The rounding that there may be between numbers that are not packed.
CvtRounding allowedRounding(const Conversion &c) {
  bool toFloat = c.to->kind == CvtType::Float, fromFloat = c.from->kind == CvtType::Float;
  if (!toFloat)
    return fromFloat ? CvtRounding::Integral : CvtRounding::None;
  if (c.to == c.from)
    return CvtRounding::Integral;
  bool isWider = fromFloat && ptx::byteSize(c.to->type) > ptx::byteSize(c.from->type);
  // From bf16 ptxas takes a rounding even where there is nothing to round.
  return isWider && !c.isFrom(Type::BF16) ? CvtRounding::None : CvtRounding::Float;
}

void checkRounding(Decoder &decoder, const Conversion &c) {
  CvtRounding allowed = allowedRounding(c);
  // Between f16 and bf16, of one size, it may be left out, and is .rn then.
  bool betweenFloats = c.to->kind == CvtType::Float && c.from->kind == CvtType::Float;
  bool isNarrower = ptx::byteSize(c.to->type) < ptx::byteSize(c.from->type);
  bool isNeeded = allowed != CvtRounding::None && (!betweenFloats || isNarrower);
  if (isNeeded && c.kind == CvtRounding::None)
    decoder.fail(allowed == CvtRounding::Integral ? "one of .rni, .rzi, .rmi, .rpi is missing"
                                                  : "one of .rn, .rz, .rm, .rp is missing");
  bool isAway = c.mode.rounding == Rounding::NearestAway;
  forbid(decoder, (c.kind != CvtRounding::None && c.kind != allowed) || isAway, "this rounding");
}

/// Whether an integer type holds all values of another.
bool holds(Type type, Type other) {
  unsigned bytes = ptx::byteSize(type), otherBytes = ptx::byteSize(other);
  return isSigned(type) == isSigned(other) ? bytes >= otherBytes : isSigned(type) && bytes > otherBytes;
}

/// .ftz is for f32 on either side; .sat where there is something to clamp, and not for
/// floats with bf16; .relu and .satfinite for f32 to
/// f16 and bf16, rounded to nearest or towards zero.
void checkFlags(Decoder &decoder, const Conversion &c) {
  bool hasF32 = c.isTo(Type::F32) || c.isFrom(Type::F32),
       hasBF16 = c.isTo(Type::BF16) || c.isFrom(Type::BF16);
  forbid(decoder, c.mode.ftz && !hasF32, ".ftz");
  bool betweenIntegers = c.to->kind == CvtType::Integer && c.from->kind == CvtType::Integer;
  bool saturates =
      betweenIntegers ? !holds(c.to->type, c.from->type) : c.to->kind == CvtType::Integer || !hasBF16;
  forbid(decoder, c.mode.sat && !saturates, ".sat");
  bool clamps = c.isFrom(Type::F32) && (c.isTo(Type::F16) || c.isTo(Type::BF16)) && !c.mode.ftz &&
                !c.mode.sat &&
                (c.mode.rounding == Rounding::NearestEven || c.mode.rounding == Rounding::Zero);
  forbid(decoder, c.mode.relu && !clamps, ".relu");
  forbid(decoder, c.mode.satfinite && !clamps, ".satfinite");
}

/// cvt.rna{.satfinite}.tf32.f32 and cvt.{rn,rz}{.satfinite}{.relu}.tf32.f32
void checkTF32(Decoder &decoder, const Conversion &c) {
  if (!c.isFrom(Type::F32))
    decoder.fail(".tf32 is made of .f32 alone");
  Rounding rounding = c.mode.rounding;
  if (c.kind != CvtRounding::Float || rounding == Rounding::Down || rounding == Rounding::Up)
    decoder.fail("one of .rn, .rna, .rz is needed");
  forbid(decoder, c.mode.relu && rounding == Rounding::NearestAway, ".relu");
  forbid(decoder, c.mode.ftz, ".ftz");
  forbid(decoder, c.mode.sat, ".sat");
}

void decodeScalar(Decoder &decoder, const Conversion &c) {
  decoder.expectOperands(2);
  forbid(decoder, c.scaled, ".scaled");
  if (c.to->format == &num::TF32)
    checkTF32(decoder, c);
  else if (c.from->format == &num::TF32)
    decoder.fail("nothing is made of .tf32");
  else
    checkRounding(decoder, c), checkFlags(decoder, c);
  Op &op = decoder.op();
  op.flags = c.mode.pack();
  bool isInteger = c.to->kind == CvtType::Integer && c.from->kind == CvtType::Integer;
  op.handler = isInteger ? integerConversion(decoder, c) : floatConversion(decoder, c);
  setWideOperands(decoder, c);
}

void decodeConvert(Decoder &decoder) {
  if (decoder.take("pack"))
    return decodeConvertPack(decoder);
  Conversion conversion = takeConversion(decoder);
  auto has = [&](CvtType::Kind kind) { return conversion.to->kind == kind || conversion.from->kind == kind; };
  has(CvtType::FixedPoint) ? decodeFixedPointConversion(decoder, conversion)
  : has(CvtType::Packed)   ? decodePackedConversion(decoder, conversion)
                           : decodeScalar(decoder, conversion);
}

/// A conversion between registers that are wider than the types.
struct WideConversion {
  Op inner;
  unsigned destinationBytes, toBytes, sourceBytes, fromBytes;
  bool isSigned;
};

template <class To, class From>
void copyLanes(Warp &warp, Ref to, Ref from, Mask mask) {
  To *d = warp.values<To>(to);
  const From *a = warp.values<From>(from);
  forLanes(mask, [=](unsigned lane) { d[lane] = To(a[lane]); });
}

void narrow(Warp &warp, Ref to, unsigned toBytes, Ref from, unsigned fromBytes, Mask mask) {
  if (toBytes == 4)
    return copyLanes<uint32_t, uint64_t>(warp, to, from, mask);
  fromBytes == 4 ? copyLanes<uint16_t, uint32_t>(warp, to, from, mask)
                 : copyLanes<uint16_t, uint64_t>(warp, to, from, mask);
}

void extend(Warp &warp, Ref to, unsigned toBytes, Ref from, unsigned fromBytes, bool isSigned, Mask mask) {
  if (fromBytes == 4)
    return isSigned ? copyLanes<int64_t, int32_t>(warp, to, from, mask)
                    : copyLanes<uint64_t, uint32_t>(warp, to, from, mask);
  if (toBytes == 4)
    return isSigned ? copyLanes<int32_t, int16_t>(warp, to, from, mask)
                    : copyLanes<uint32_t, uint16_t>(warp, to, from, mask);
  isSigned ? copyLanes<int64_t, int16_t>(warp, to, from, mask)
           : copyLanes<uint64_t, uint16_t>(warp, to, from, mask);
}

void convertWide(Warp &warp, const Op &op, Mask mask) {
  const auto &wide = *static_cast<const WideConversion *>(op.payload);
  if (wide.sourceBytes != wide.fromBytes)
    narrow(warp, wide.inner.a, wide.fromBytes, op.a, wide.sourceBytes, mask);
  wide.inner.handler(warp, wide.inner, mask);
  if (wide.destinationBytes != wide.toBytes)
    extend(warp, op.d, wide.destinationBytes, wide.inner.d, wide.toBytes, wide.isSigned, mask);
}

/// The op as it is becomes the inner one, on values in scratch memory where registers
/// are wider. A source and a destination there may be one: handlers read first.
void wrap(Decoder &decoder, WideConversion wide) {
  Op &op = decoder.op();
  wide.inner = op;
  if (wide.sourceBytes != wide.fromBytes)
    wide.inner.a = decoder.scratch(wide.fromBytes);
  if (wide.destinationBytes != wide.toBytes)
    wide.inner.d = decoder.scratch(wide.toBytes);
  decoder.keep<WideConversion>(std::make_shared<WideConversion>(wide));
  op.handler = &convertWide;
}

} // namespace

void fp8emu::setWideDestination(Decoder &decoder, Type type) {
  WideConversion wide{};
  wide.toBytes = laneBytes(type);
  decoder.op().d = decoder.wideDestination(decoder.operand(0), type, wide.destinationBytes);
  if (wide.destinationBytes != wide.toBytes)
    wrap(decoder, wide);
}

void fp8emu::setWideOperands(Decoder &decoder, const Conversion &c) {
  WideConversion wide{};
  wide.destinationBytes = wide.toBytes = laneBytes(c.to->type);
  wide.sourceBytes = wide.fromBytes = laneBytes(c.from->type);
  wide.isSigned = isSigned(c.to->type);
  Op &op = decoder.op();
  const bool isExact = c.isTo(Type::BF16) || c.isFrom(Type::BF16);
  op.d = isExact || c.to->format == &num::TF32
             ? decoder.destination(0, c.to->type)
             : decoder.wideDestination(decoder.operand(0), c.to->type, wide.destinationBytes);
  op.a = isExact ? decoder.source(1, c.from->type)
                 : decoder.wideSource(decoder.operand(1), c.from->type, wide.sourceBytes);
  if (wide.destinationBytes != wide.toBytes || wide.sourceBytes != wide.fromBytes)
    wrap(decoder, wide);
}

FamilyList fp8emu::convertInstructions() { return {{"cvt", decodeConvert}}; }
