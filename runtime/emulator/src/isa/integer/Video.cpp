// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SIMD video instructions (PTX ISA 9.7.18.2): two 16-bit or four 8-bit operations in
// 32 bits, of all parts in their order. Selectors and masks of parts are errors: no
// compiler writes them any more.

#include "Video.h"

#include "isa/Families.h"
#include "isa/Lanes.h"

#include <algorithm>

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

namespace {

enum Operation : uint8_t { Add, Sub, Average, AbsDifference, Minimum, Maximum, Compare };

/// The payload of an op (Op::payload).
struct Video {
  Operation operation;
  VideoComparison comparison;
  unsigned parts;
  bool signedA, signedB, signedD, saturates, accumulates;
};

int compute(const Video &video, int a, int b) {
  switch (video.operation) {
  case Add:
    return a + b;
  case Sub:
    return a - b;
  case Average:
    return (a + b + (a + b >= 0)) >> 1;
  case AbsDifference:
    return std::abs(a - b);
  case Minimum:
    return std::min(a, b);
  case Maximum:
    return std::max(a, b);
  case Compare:
    return holds(video.comparison, a, b);
  }
  return 0;
}

uint32_t evaluate(const Video &video, uint32_t a, uint32_t b, uint32_t c) {
  const unsigned bits = 32 / video.parts;
  const int high = video.signedD ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
  const int low = video.signedD ? -(1 << (bits - 1)) : 0;
  uint32_t out = video.accumulates ? c : 0;
  for (unsigned i = 0; i < video.parts; ++i) {
    const VideoPart part{uint8_t(i * bits), uint8_t(bits)};
    int value = compute(video, int(extract(part, a, video.signedA)), int(extract(part, b, video.signedB)));
    if (video.saturates)
      value = std::clamp(value, low, high);
    out += video.accumulates ? uint32_t(value) : (uint32_t(value) & ((1u << bits) - 1)) << i * bits;
  }
  return out;
}

void run(Warp &warp, const Op &op, Mask mask) {
  const auto &video = *static_cast<const Video *>(op.payload);
  const uint32_t *a = warp.values<uint32_t>(op.a);
  const uint32_t *b = warp.values<uint32_t>(op.b);
  const uint32_t *c = warp.values<uint32_t>(op.c);
  uint32_t *d = warp.values<uint32_t>(op.d);
  forLanes(mask, [&](unsigned lane) { d[lane] = evaluate(video, a[lane], b[lane], c[lane]); });
}

template <Operation O, unsigned Parts>
void decode(Decoder &decoder) {
  auto video = std::make_shared<Video>();
  video->operation = O;
  video->parts = Parts;
  // vset has no type of its own for the result.
  video->signedD = O == Compare ? false : takeVideoSign(decoder);
  video->signedA = takeVideoSign(decoder);
  video->signedB = takeVideoSign(decoder);
  if (O == Compare)
    video->comparison = takeVideoComparison(decoder);
  video->saturates = O != Compare && decoder.take("sat");
  video->accumulates = decoder.take("add");
  if (video->saturates && video->accumulates)
    decoder.fail("a result that is added to another cannot saturate");
  decodeLanes(decoder, Type::U32, 3);
  for (unsigned i = 1; i <= 3; ++i)
    if (decoder.isImmediate(decoder.operand(i)))
      decoder.fail(decoder.operand(i), "a register is expected");
  decoder.keep<Video>(video);
  decoder.op().handler = &run;
}

} // namespace

VideoComparison fp8emu::takeVideoComparison(Decoder &decoder) {
  return VideoComparison(decoder.needOneOf({"eq", "ne", "lt", "le", "gt", "ge"}));
}

bool fp8emu::holds(VideoComparison comparison, int64_t a, int64_t b) {
  switch (comparison) {
  case VideoComparison::Eq:
    return a == b;
  case VideoComparison::Ne:
    return a != b;
  case VideoComparison::Lt:
    return a < b;
  case VideoComparison::Le:
    return a <= b;
  case VideoComparison::Gt:
    return a > b;
  case VideoComparison::Ge:
    return a >= b;
  }
  return false;
}

bool fp8emu::takeVideoSign(Decoder &decoder) {
  Type type = decoder.takeType();
  if (type != Type::U32 && type != Type::S32)
    decoder.fail(".u32 or .s32 is expected");
  return type == Type::S32;
}

/// Takes the selector, "b0" to "h1", from the operand.
static VideoPart takePart(Operand &operand) {
  VideoPart part;
  if (!operand.text.empty()) {
    part.bits = operand.text[0] == 'b' ? 8 : 16;
    part.shift = uint8_t(part.bits * (operand.text[1] - '0'));
    operand.text.clear();
  }
  return part;
}

Ref fp8emu::videoSource(Decoder &decoder, const Operand &operand, bool isSigned, VideoPart &part) {
  Operand plain = operand;
  if (operand.kind == Operand::Kind::Register)
    part = takePart(plain);
  return decoder.source(plain, isSigned ? Type::S32 : Type::U32);
}

Ref fp8emu::videoDestination(Decoder &decoder, const Operand &operand, bool isSigned, VideoPart &part) {
  Operand plain = operand;
  if (operand.kind == Operand::Kind::Register)
    part = takePart(plain);
  return decoder.destination(plain, isSigned ? Type::S32 : Type::U32);
}

FamilyList fp8emu::videoInstructions() {
  return {{"vadd2", decode<Add, 2>},
          {"vadd4", decode<Add, 4>},
          {"vsub2", decode<Sub, 2>},
          {"vsub4", decode<Sub, 4>},
          {"vavrg2", decode<Average, 2>},
          {"vavrg4", decode<Average, 4>},
          {"vabsdiff2", decode<AbsDifference, 2>},
          {"vabsdiff4", decode<AbsDifference, 4>},
          {"vmin2", decode<Minimum, 2>},
          {"vmin4", decode<Minimum, 4>},
          {"vmax2", decode<Maximum, 2>},
          {"vmax4", decode<Maximum, 4>},
          {"vset2", decode<Compare, 2>},
          {"vset4", decode<Compare, 4>}};
}
