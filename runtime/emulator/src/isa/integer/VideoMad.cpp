// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// vmad (PTX ISA 9.7.18.1.3): a b + c of parts of registers, negated, averaged, scaled,
// saturated.

#include "Video.h"

#include "isa/Families.h"
#include "isa/Lanes.h"

#include <algorithm>

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

namespace {

/// The payload of an op (Op::payload).
struct VideoMad {
  VideoPart partA, partB;
  bool signedA, signedB, signedResult, saturates, plusOne, negatesProduct, negatesC;
  unsigned shift;
};

/// As the text of the ISA: a negation is a complement and one more in the sum.
uint32_t evaluate(const VideoMad &mad, uint32_t a, uint32_t b, uint32_t c) {
  __int128 value = __int128(extract(mad.partA, a, mad.signedA)) * extract(mad.partB, b, mad.signedB);
  if (mad.negatesProduct)
    value = ~value;
  if (mad.negatesC)
    c = ~c;
  value += extract(VideoPart(), c, mad.signedResult);
  value += mad.plusOne || mad.negatesProduct || mad.negatesC;
  // 64 bits of the scaled sum stay.
  auto bits = uint64_t(value >> mad.shift);
  if (!mad.saturates)
    return uint32_t(bits);
  if (mad.signedResult)
    return uint32_t(std::clamp<int64_t>(int64_t(bits), INT32_MIN, INT32_MAX));
  return uint32_t(std::min<uint64_t>(bits, UINT32_MAX));
}

void run(Warp &warp, const Op &op, Mask mask) {
  const auto &mad = *static_cast<const VideoMad *>(op.payload);
  const uint32_t *a = warp.values<uint32_t>(op.a);
  const uint32_t *b = warp.values<uint32_t>(op.b);
  const uint32_t *c = warp.values<uint32_t>(op.c);
  uint32_t *d = warp.values<uint32_t>(op.d);
  forLanes(mask, [&](unsigned lane) { d[lane] = evaluate(mad, a[lane], b[lane], c[lane]); });
}

/// The operand without its negation, which `negated` has then.
Operand withoutNegation(Operand operand, bool &negated) {
  negated = operand.negated;
  operand.negated = false;
  return operand;
}

void decode(Decoder &decoder) {
  auto mad = std::make_shared<VideoMad>();
  const bool signedD = takeVideoSign(decoder);
  mad->signedA = takeVideoSign(decoder);
  mad->signedB = takeVideoSign(decoder);
  mad->plusOne = decoder.take("po");
  mad->saturates = decoder.take("sat");
  const int scale = decoder.takeOneOf({"shr7", "shr15"});
  mad->shift = scale < 0 ? 0 : scale == 0 ? 7 : 15;
  decoder.expectOperands(4);
  bool negatesA = false, negatesB = false;
  const Operand a = withoutNegation(decoder.operand(1), negatesA);
  const Operand b = withoutNegation(decoder.operand(2), negatesB);
  const Operand c = withoutNegation(decoder.operand(3), mad->negatesC);
  mad->negatesProduct = negatesA != negatesB;
  if (mad->plusOne && (negatesA || negatesB || mad->negatesC))
    decoder.fail("no operand is negated with .po");
  if (mad->negatesProduct && mad->negatesC)
    decoder.fail("the product or c is negated, not both");
  mad->signedResult = mad->signedA || mad->signedB || mad->negatesProduct || mad->negatesC;
  Op &op = decoder.op();
  op.d = decoder.destination(0, signedD ? Type::S32 : Type::U32);
  op.a = videoSource(decoder, a, mad->signedA, mad->partA);
  op.b = videoSource(decoder, b, mad->signedB, mad->partB);
  op.c = decoder.source(c, mad->signedResult ? Type::S32 : Type::U32);
  decoder.keep<VideoMad>(mad);
  op.handler = &run;
}

} // namespace

FamilyList fp8emu::videoMadInstructions() { return {{"vmad", decode}}; }
