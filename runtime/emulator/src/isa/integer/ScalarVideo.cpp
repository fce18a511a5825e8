// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scalar video instructions (PTX ISA 9.7.18.1): an operation on bytes, halves or words of
// two registers, its result saturated and then combined with a third operand. vmad is in
// VideoMad.cpp.

#include "Video.h"

#include "isa/Families.h"
#include "isa/Lanes.h"

#include <algorithm>
#include <limits>

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

namespace {

enum Operation : uint8_t { Add, Sub, AbsDifference, Minimum, Maximum, ShiftLeft, ShiftRight, Compare };
/// The operation with c, none, or the merge of a part of d with c.
enum Second : int8_t { Nothing = -1, AddC, MinimumC, MaximumC, Merge };

/// The payload of an op (Op::payload).
struct ScalarVideo {
  Operation operation;
  VideoComparison comparison;
  VideoPart partA, partB, partD;
  bool signedA, signedB, signedD, saturates, wraps;
  Second second;
};

/// The value without its limits: 33 bits shifted left by 32 at most.
using Wide = __int128;

unsigned shiftAmount(const ScalarVideo &video, int64_t b) {
  return unsigned(video.wraps ? b & 31 : std::min<int64_t>(b, 32));
}

Wide compute(const ScalarVideo &video, int64_t a, int64_t b) {
  switch (video.operation) {
  case Add:
    return a + b;
  case Sub:
    return a - b;
  case AbsDifference:
    return std::abs(a - b);
  case Minimum:
    return std::min(a, b);
  case Maximum:
    return std::max(a, b);
  case ShiftLeft:
    return Wide(a) * (Wide(1) << shiftAmount(video, b));
  case ShiftRight:
    return a >> shiftAmount(video, b);
  case Compare:
    return holds(video.comparison, a, b);
  }
  return 0;
}

/// .sat: to the range of the part of d that is written.
Wide saturated(const ScalarVideo &video, Wide value) {
  const Wide one = 1;
  const unsigned bits = video.partD.bits;
  const Wide low = video.signedD ? -(one << (bits - 1)) : 0;
  const Wide high = (one << (video.signedD ? bits - 1 : bits)) - 1;
  return std::clamp(value, low, high);
}

/// The intermediate result has 33 bits, a sign among them.
int64_t in33Bits(Wide value) { return int64_t(uint64_t(value) << 31) >> 31; }

uint32_t merged(VideoPart part, uint32_t value, uint32_t c) {
  if (part.bits == 32)
    return value;
  const uint32_t mask = ((1u << part.bits) - 1) << part.shift;
  return (value << part.shift & mask) | (c & ~mask);
}

uint32_t evaluate(const ScalarVideo &video, uint32_t a, uint32_t b, uint32_t c) {
  Wide value = compute(video, extract(video.partA, a, video.signedA), extract(video.partB, b, video.signedB));
  int64_t result = in33Bits(video.saturates ? saturated(video, value) : value);
  int64_t third = extract(VideoPart(), c, video.signedD);
  switch (video.second) {
  case AddC:
    return uint32_t(result + third);
  case MinimumC:
    return uint32_t(std::min(result, third));
  case MaximumC:
    return uint32_t(std::max(result, third));
  case Merge:
    return merged(video.partD, uint32_t(result), c);
  case Nothing:
    break;
  }
  return uint32_t(result);
}

void run(Warp &warp, const Op &op, Mask mask) {
  const auto &video = *static_cast<const ScalarVideo *>(op.payload);
  const uint32_t *a = warp.values<uint32_t>(op.a);
  const uint32_t *b = warp.values<uint32_t>(op.b);
  const uint32_t *c = warp.values<uint32_t>(op.c);
  uint32_t *d = warp.values<uint32_t>(op.d);
  forLanes(mask, [&](unsigned lane) { d[lane] = evaluate(video, a[lane], b[lane], c[lane]); });
}

void takeTypes(Decoder &decoder, ScalarVideo &video) {
  // vset's result is unsigned and has no type.
  video.signedD = video.operation != Compare && takeVideoSign(decoder);
  video.signedA = takeVideoSign(decoder);
  video.signedB = takeVideoSign(decoder);
  const bool shifts = video.operation == ShiftLeft || video.operation == ShiftRight;
  if (shifts && video.signedB)
    decoder.fail("a shift's amount is .u32");
  video.wraps = shifts && decoder.needOneOf({"clamp", "wrap"}) == 1;
}

template <Operation O>
void decode(Decoder &decoder) {
  auto video = std::make_shared<ScalarVideo>();
  video->operation = O;
  takeTypes(decoder, *video);
  if (O == Compare)
    video->comparison = takeVideoComparison(decoder);
  video->saturates = O != Compare && decoder.take("sat");
  video->second = Second(decoder.takeOneOf({"add", "min", "max"}));
  Op &op = decoder.op();
  op.d = videoDestination(decoder, decoder.operand(0), video->signedD, video->partD);
  if (video->partD.bits != 32 && video->second != Nothing)
    decoder.fail(decoder.operand(0), "a part of a register is written without .add, .min and .max");
  if (video->partD.bits != 32)
    video->second = Merge;
  // ptxas takes a third source without an operation too, and d is all of the result then.
  decoder.expectOperands(video->second == Nothing ? 3 : 4, 4);
  op.a = videoSource(decoder, decoder.operand(1), video->signedA, video->partA);
  op.b = videoSource(decoder, decoder.operand(2), video->signedB, video->partB);
  op.c = decoder.operands() > 3 ? decoder.source(3, video->signedD ? Type::S32 : Type::U32)
                                : decoder.constant(0, 4);
  decoder.keep<ScalarVideo>(video);
  op.handler = &run;
}

} // namespace

FamilyList fp8emu::scalarVideoInstructions() {
  return {{"vadd", decode<Add>},        {"vsub", decode<Sub>},     {"vabsdiff", decode<AbsDifference>},
          {"vmin", decode<Minimum>},    {"vmax", decode<Maximum>}, {"vshl", decode<ShiftLeft>},
          {"vshr", decode<ShiftRight>}, {"vset", decode<Compare>}};
}
