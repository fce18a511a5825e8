// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cvt.pack (PTX ISA 9.7.9.22): two integers, clamped, put into the low bits of a
// register, above them what a third has there.

#include "Convert.h"

#include <algorithm>

using namespace fp8emu;
using ptx::Type;

namespace {

/// op.small is the width, op.flags whether it is signed.
void packLanes(Warp &warp, const Op &op, Mask mask) {
  unsigned width = op.small;
  bool isSigned = op.flags;
  int32_t low = isSigned ? -(1 << (width - 1)) : 0;
  int32_t high = (1 << (width - isSigned)) - 1;
  uint32_t ones = (1U << width) - 1;
  uint32_t *d = warp.values<uint32_t>(op.d);
  const int32_t *a = warp.values<int32_t>(op.a);
  const int32_t *b = warp.values<int32_t>(op.b);
  const uint32_t *c = op.c ? warp.values<uint32_t>(op.c) : nullptr;
  forLanes(mask, [=](unsigned lane) {
    uint32_t first = uint32_t(std::clamp(a[lane], low, high)) & ones;
    uint32_t second = uint32_t(std::clamp(b[lane], low, high)) & ones;
    uint32_t rest = c ? c[lane] << 2 * width : 0;
    d[lane] = rest | first << width | second;
  });
}

} // namespace

void fp8emu::decodeConvertPack(Decoder &decoder) {
  constexpr unsigned kWidths[] = {16, 8, 4, 2};
  decoder.needOneOf({"sat"});
  Op &op = decoder.op();
  int to = decoder.needOneOf({"u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"});
  decoder.needOneOf({"s32"});
  bool hasRest = to >= 2;
  if (hasRest)
    decoder.needOneOf({"b32"});
  op.small = uint16_t(kWidths[to / 2]);
  op.flags = to % 2;
  decoder.expectOperands(hasRest ? 4 : 3);
  op.d = decoder.destination(0, Type::U32);
  op.a = decoder.source(1, Type::S32);
  op.b = decoder.source(2, Type::S32);
  if (hasRest)
    op.c = decoder.source(3, Type::B32);
  op.handler = &packLanes;
}
