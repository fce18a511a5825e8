// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cvt from and to s2f6x2: two signed bytes that count 64ths (PTX ISA 5.2.3, 9.7.9.21),
// each with a scale of UE8M0 where one is given.

#include "ConvertLanes.h"

#include "num/Convert.h"

#include <algorithm>

using namespace fp8emu;
using num::Rounding;
using ptx::Type;

namespace {

double scaleOf(uint32_t byte) { return num::decode(num::UE8M0, byte & 0xff); }

/// Clamped to [-2, 127/64]; NaN is the largest.
uint32_t toFixed(double value, CvtMode mode) {
  if (num::isNaN(value))
    return 127;
  double whole = num::roundIntegral(std::clamp(64 * value, -128.0, 127.0), Rounding::NearestEven);
  return uint8_t(int8_t(mode.relu && whole < 0 ? 0 : whole));
}

/// b where there is one holds the second number, else both are in a.
void toFixedLanes(Warp &warp, const Op &op, Mask mask) {
  uint16_t *d = warp.values<uint16_t>(op.d);
  const float *a = warp.values<float>(op.a);
  const float *b = op.b ? warp.values<float>(op.b) : nullptr;
  const uint32_t *pairs = warp.values<uint32_t>(op.a);
  const uint16_t *scales = warp.values<uint16_t>(op.c);
  CvtMode mode = CvtMode::unpack(op.flags);
  forLanes(mask, [=](unsigned lane) {
    double high = b ? a[lane] : num::bfloatToFloat(uint16_t(pairs[lane] >> 16));
    double low = b ? b[lane] : num::bfloatToFloat(uint16_t(pairs[lane]));
    d[lane] = uint16_t(toFixed(high / scaleOf(scales[lane] >> 8), mode) << 8 |
                       toFixed(low / scaleOf(scales[lane]), mode));
  });
}

void fromFixedLanes(Warp &warp, const Op &op, Mask mask) {
  uint32_t *d = warp.values<uint32_t>(op.d);
  const uint16_t *a = warp.values<uint16_t>(op.a);
  const uint16_t *scales = warp.values<uint16_t>(op.c);
  CvtMode mode = CvtMode::unpack(op.flags);
  forLanes(mask, [=](unsigned lane) {
    auto number = [=](unsigned shift) {
      double value = int8_t(a[lane] >> shift) / 64.0 * scaleOf(uint32_t(scales[lane]) >> shift);
      return uint32_t(num::encode(num::BF16, value, mode.rounding, mode.satfinite, mode.relu));
    };
    d[lane] = number(8) << 16 | number(0);
  });
}

} // namespace

void fp8emu::decodeFixedPointConversion(Decoder &decoder, const Conversion &c) {
  bool toFixed = c.to->kind == CvtType::FixedPoint, fromF32 = c.isFrom(Type::F32);
  if (toFixed ? !fromF32 && c.from->type != Type::BF16x2 : c.to->type != Type::BF16x2)
    decoder.fail("there is no conversion from ." + std::string(c.from->name) + " to ." + c.to->name);
  if (c.kind != CvtRounding::Float || c.mode.rounding != Rounding::NearestEven)
    decoder.fail(".rn is needed");
  if (c.mode.ftz || c.mode.sat)
    decoder.fail(".ftz and .sat are not for this conversion");
  if (toFixed && !c.mode.satfinite)
    decoder.fail(".satfinite is missing");
  unsigned sources = toFixed && fromF32 ? 2 : 1;
  decoder.expectOperands(1 + sources + c.scaled);
  Op &op = decoder.op();
  op.flags = c.mode.pack();
  op.d = decoder.destination(0, c.to->type);
  op.a = decoder.source(1, c.from->type);
  if (sources == 2)
    op.b = decoder.source(2, Type::F32);
  // Scales of 1 where none are given.
  op.c = c.scaled ? decoder.source(1 + sources, Type::B16) : decoder.constant(0x7f7f, 2);
  op.handler = toFixed ? &toFixedLanes : &fromFixedLanes;
}
