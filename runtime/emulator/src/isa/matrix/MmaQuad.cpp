// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mma.m8n8k4 of f16 (PTX ISA 9.7.14.5.1), Volta's: four products at once, each of eight
// lanes, with fragments unlike all others.

#include "Mma.h"
#include "SumModel.h"

#include "exec/profile/Profile.h"

#include <cstring>

using namespace fp8emu;

namespace {

/// Half `index` of a lane's packed registers.
uint8_t *half(Warp &warp, const Ref *refs, unsigned lane, unsigned index) {
  return warp.values<uint8_t>(refs[index / 2]) + lane * 4 + index % 2 * 2;
}

/// Element `index` of an accumulator.
uint8_t *sumPlace(Warp &warp, const Ref *refs, Accumulator type, unsigned lane, unsigned index) {
  return type == Accumulator::F16 ? half(warp, refs, lane, index)
                                  : warp.values<uint8_t>(refs[index]) + lane * 4;
}

template <class F>
void forSums(unsigned which, Accumulator type, F f) {
  for (unsigned lane = 0; lane < kLanes; ++lane)
    if (quad::product(lane) == which)
      for (unsigned i = 0; i < 8; ++i) {
        Place place = quad::accumulatorPlace(type == Accumulator::F32, lane, i);
        f(lane, i, place.row * 8 + place.column);
      }
}

/// op.flags: bit 0 where A lies by rows, bit 1 where B lies by columns.
void products(Warp &warp, const Op &op, Mask mask) {
  if (!wholeWarp(warp, mask))
    return;
  const Product &p = *static_cast<const Product *>(op.payload);
  const Ref *d = warp.list(op), *a = d + (p.d == Accumulator::F16 ? 4 : 8), *b = a + 2, *c = b + 2;
  std::array<Sums, 4> sums;
  for (unsigned which = 0; which < 4; ++which) {
    Multiplicand<float> rows(4), columns(4);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      if (quad::product(lane) == which)
        for (unsigned i = 0; i < 4; ++i) {
          Place inA = quad::multiplicandPlace(op.flags & 1, lane, i),
                inB = quad::multiplicandPlace(op.flags & 2, lane, i);
          unpack(p.a, half(warp, a, lane, i), 1, rows.at(inA.row, inA.column));
          unpack(p.b, half(warp, b, lane, i), 1, columns.at(inB.row, inB.column));
        }
    forSums(which, p.c, [&](unsigned lane, unsigned i, unsigned place) {
      sums[which][place] = 0;
      std::memcpy(&sums[which][place], sumPlace(warp, c, p.c, lane, i), p.c == Accumulator::F16 ? 2 : 4);
    });
    countProduct(warp, 8, 8, 4);
    multiply(p, sumModel(warp), rows, columns, sums[which]);
  }
  for (unsigned which = 0; which < 4; ++which)
    forSums(which, p.d, [&](unsigned lane, unsigned i, unsigned place) {
      std::memcpy(sumPlace(warp, d, p.d, lane, i), &sums[which][place], p.d == Accumulator::F16 ? 2 : 4);
    });
}

} // namespace

void fp8emu::decodeMmaQuad(Decoder &decoder, Product &p) {
  bool byRows = takeNext(decoder, {"row", "col"}) == 0, byColumns = takeNext(decoder, {"row", "col"}) == 1;
  takeProductTypes(decoder, p);
  bool f16 = p.a.format == &num::F16 && p.b.format == &num::F16;
  bool sums = p.d == Accumulator::F32 ? p.c == Accumulator::F16 || p.c == Accumulator::F32
                                      : p.d == Accumulator::F16 && p.c == Accumulator::F16;
  if (!f16 || !sums)
    decoder.fail("there is no such combination of types (PTX ISA 9.7.14.5.14)");
  setSum(p, warpUnit(decoder));
  decoder.expectOperands(4);
  auto registers = [](Accumulator type) { return type == Accumulator::F16 ? 4U : 8U; };
  decoder.list(fragmentDestination(decoder, decoder.operand(0), registers(p.d)));
  decoder.list(fragmentSource(decoder, decoder.operand(1), 2));
  decoder.list(fragmentSource(decoder, decoder.operand(2), 2));
  decoder.list(fragmentSource(decoder, decoder.operand(3), registers(p.c)));
  decoder.op().flags = uint8_t(byRows | byColumns << 1);
  decoder.keep(std::make_shared<const Product>(p));
  decoder.op().handler = &products;
}
