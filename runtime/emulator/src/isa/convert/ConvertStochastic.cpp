// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cvt.rs: f32 rounded towards or away from zero as random bits have it (PTX ISA
// 9.7.9.21), two to f16x2 and bf16x2, four to the narrow types.

#include "ConvertLanes.h"

using namespace fp8emu;
using num::Format;
using ptx::Type;

namespace {

uint32_t reverse(uint32_t bits, unsigned width) {
  uint32_t out = 0;
  for (unsigned i = 0; i < width; ++i)
    out |= (bits >> i & 1) << (width - 1 - i);
  return out;
}

template <const Format &to>
uint32_t encodeNumber(float value, uint32_t random, unsigned bits, CvtMode mode) {
  return uint32_t(num::encodeStochastic(to, value, random, bits, mode.satfinite, mode.relu));
}

/// Each has its half of the random bits, of which f16 uses 13.
template <const Format &to>
void roundTwo(Warp &warp, const Op &op, Mask mask) {
  constexpr unsigned kBits = 23 - to.mantissaBits;
  uint32_t *d = warp.values<uint32_t>(op.d);
  const float *a = warp.values<float>(op.a);
  const float *b = warp.values<float>(op.b);
  const uint32_t *random = warp.values<uint32_t>(op.c);
  CvtMode mode = CvtMode::unpack(op.flags);
  forLanes(mask, [=](unsigned lane) {
    uint32_t high = encodeNumber<to>(a[lane], random[lane] >> 16, kBits, mode);
    uint32_t low = encodeNumber<to>(b[lane], random[lane], kBits, mode);
    d[lane] = high << 16 | low;
  });
}

/// The 16 random bits of each of four numbers, the lowest in the result first. PTX says
/// which half, or, for 4-bit numbers, which bytes two of them share; that the upper one
/// of the two takes them in reverse is what others have measured on hardware.
void shareRandom(const Format &to, uint32_t random, uint32_t *out) {
  uint32_t lower = random & 0xffff, upper = random >> 16;
  if (to.width() == 4) {
    uint32_t bytes = lower;
    lower = (upper & 0xff) << 8 | (bytes & 0xff);
    upper = (upper & 0xff00) | bytes >> 8;
  }
  out[0] = lower;
  out[1] = reverse(lower, 16);
  out[2] = upper;
  out[3] = reverse(upper, 16);
}

template <const Format &to>
void roundFour(Warp &warp, const Op &op, Mask mask) {
  using Raw = std::conditional_t<to.width() == 4, uint16_t, uint32_t>;
  Raw *d = warp.values<Raw>(op.d);
  const Ref *sources = warp.list(op);
  const float *values[4];
  for (unsigned i = 0; i < 4; ++i)
    values[i] = warp.values<float>(sources[3 - i]);
  const uint32_t *random = warp.values<uint32_t>(op.c);
  CvtMode mode = CvtMode::unpack(op.flags);
  forLanes(mask, [=](unsigned lane) {
    uint32_t bits[4], out = 0;
    shareRandom(to, random[lane], bits);
    for (unsigned i = 0; i < 4; ++i)
      out |= encodeNumber<to>(values[i][lane], bits[i], 16, mode) << i * slotBits(to);
    d[lane] = Raw(out);
  });
}

Handler fourHandler(const Format *format) {
  return format == &num::E4M3   ? &roundFour<num::E4M3>
         : format == &num::E5M2 ? &roundFour<num::E5M2>
         : format == &num::E2M3 ? &roundFour<num::E2M3>
         : format == &num::E3M2 ? &roundFour<num::E3M2>
                                : &roundFour<num::E2M1>;
}

/// A register of bits alone, as one of .bf16x2 is.
constexpr Type kRandomBits = Type::BF16x2;

/// cvt.rs{.relu}{.satfinite}.f16x2.f32 d, a, b, rbits
void decodeTwo(Decoder &decoder, const Conversion &c) {
  decoder.expectOperands(4);
  Op &op = decoder.op();
  op.a = decoder.source(1, Type::F32);
  op.b = decoder.source(2, Type::F32);
  op.c = decoder.source(3, kRandomBits);
  op.d = decoder.destination(0, c.to->type);
  op.handler = c.to->format == &num::F16 ? &roundTwo<num::F16> : &roundTwo<num::BF16>;
}

/// cvt.rs{.relu}.satfinite.e4m3x4.f32 d, {a, b, e, f}, rbits
void decodeFour(Decoder &decoder, const Conversion &c) {
  if (!c.mode.satfinite)
    decoder.fail(".satfinite is missing");
  decoder.expectOperands(3);
  const ptx::Operand &vector = decoder.operand(1);
  if (vector.kind != ptx::Operand::Kind::Vector || vector.parts.size() != 4)
    decoder.fail(vector, "four registers in braces are expected");
  std::vector<Ref> sources;
  for (const ptx::Operand &part : vector.parts)
    sources.push_back(decoder.source(part, Type::F32));
  decoder.list(sources);
  Op &op = decoder.op();
  op.d = decoder.destination(0, c.to->type);
  op.c = decoder.source(2, kRandomBits);
  op.handler = fourHandler(c.to->format);
}

} // namespace

void fp8emu::decodeStochasticConversion(Decoder &decoder, const Conversion &c) {
  bool isHalf = c.to->count == 2 && (c.to->format == &num::F16 || c.to->format == &num::BF16);
  if (!c.isFrom(Type::F32) || (!isHalf && c.to->count != 4))
    decoder.fail(".rs is for .f32 to pairs of 16 bits or four narrow numbers");
  if (c.mode.ftz || c.mode.sat || c.scaled)
    decoder.fail("of .rs, .relu and .satfinite are all modifiers");
  decoder.op().flags = c.mode.pack();
  isHalf ? decodeTwo(decoder, c) : decodeFour(decoder, c);
}
