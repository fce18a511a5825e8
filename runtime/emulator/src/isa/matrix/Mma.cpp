// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mma.sync (PTX ISA 9.7.14.5.14): one warp multiplies fragments in its registers. The
// product of four small matrices, .m8n8k4 of f16: MmaQuad.cpp.

#include "Mma.h"
#include "SumModel.h"

#include "exec/profile/Profile.h"
#include "isa/Families.h"

#include <algorithm>

using namespace fp8emu;
using ptx::Type;

namespace {

/// The registers of an instruction, in the order of op.list: d, a, b, c, then with block
/// scales the data, byte and lane selector of A's, and those of B's.
struct OwnRegisters {
  explicit OwnRegisters(Warp &warp, const Op &op, const Product &p) {
    const Ref *refs = warp.list(op);
    auto find = [&](auto &out, unsigned count) {
      findRegisters(warp, refs, count, out);
      refs += count;
    };
    find(d, p.registersOf(p.d));
    find(a, countA = p.registersA());
    find(b, countB = p.registersB());
    find(c, p.registersOf(p.c));
    scales = refs;
  }
  std::array<uint8_t *, 8> d, a, b, c;
  unsigned countA, countB;
  const Ref *scales;
};

/// A selector: the same in all lanes, below `limit` and a multiple of `step`.
unsigned selector(Warp &warp, Ref ref, unsigned limit, unsigned step) {
  const uint16_t *values = warp.values<uint16_t>(ref);
  unsigned value = values[0];
  if (value >= limit || value % step != 0)
    warp.fault(FaultKind::IllegalOperand,
               "the selector " + std::to_string(value) + " of a scale is out of range (PTX ISA Table 37)");
  for (unsigned lane = 1; lane < kLanes; ++lane)
    if (values[lane] != value)
      warp.fault(FaultKind::IllegalOperand, "the selectors of scales differ between lanes", Mask(1) << lane);
  return value;
}

/// Scale factors (PTX ISA 9.7.14.3): of A's rows q and q + 8 those in the pair of lanes
/// of group q that is selected; of B's column q that in the selected lane.
Scales findScales(Warp &warp, const Product &p, const Ref *refs) {
  Scales out;
  const float *table = num::floatTable(*p.scaleFormat);
  unsigned bytes = p.scales == 1 ? 4 : p.scales == 2 ? 4 : 1;
  auto read = [&](Ref data, unsigned lane, unsigned byte, float *to) {
    uint32_t word = warp.values<uint32_t>(data)[lane];
    for (unsigned i = 0; i < p.scales; ++i)
      to[i] = table[word >> 8 * (byte + i) & 0xff];
  };
  unsigned byteA = selector(warp, refs[1], bytes, p.scales == 2 ? 2 : 1),
           pairA = selector(warp, refs[2], 2, 1);
  unsigned byteB = selector(warp, refs[4], bytes, p.scales == 2 ? 2 : 1),
           laneB = selector(warp, refs[5], 4, 1);
  for (unsigned row = 0; row < p.shape.m; ++row)
    read(refs[0], row % 8 * 4 + pairA * 2 + row / 8, byteA, out.a.data() + row * p.scales);
  for (unsigned column = 0; column < p.shape.n; ++column)
    read(refs[3], column * 4 + laneB, byteB, out.b.data() + column * p.scales);
  return out;
}

template <class V>
void product(Warp &warp, const Op &op, Mask mask) {
  if (!wholeWarp(warp, mask))
    return;
  const Product &p = *static_cast<const Product *>(op.payload);
  countProduct(warp, p.shape.m, p.shape.n, p.shape.k);
  OwnRegisters registers(warp, op, p);
  Multiplicand<V> a(p.shape.k), b(p.shape.k);
  unpackFragments(p.a, registers.a.data(), registers.countA, p.shape.m, p.shape.k, a);
  unpackFragments(p.b, registers.b.data(), registers.countB, p.shape.n, p.shape.k, b);
  Sums sums;
  gatherSums(p, registers.c.data(), sums);
  if (p.scales) {
    Scales scales = findScales(warp, p, registers.scales);
    multiply(p, sumModel(warp), a, b, sums, &scales);
  } else {
    multiply(p, sumModel(warp), a, b, sums);
  }
  scatterSums(p, sums, registers.d.data());
}

enum Kind { None, F8F6F4, MxF8F6F4, MxF4, MxF4NvF4 };

/// .block_scale{.scale_vec::NX}, .stype: only what PTX ISA Table 36 has.
void takeScales(Decoder &decoder, Product &p, Kind kind) {
  decoder.needOneOf({"block_scale"});
  int vector = decoder.takeOneOf({"scale_vec::1X", "scale_vec::2X", "scale_vec::4X"});
  p.scales = vector >= 0 ? 1U << vector : kind == MxF8F6F4 ? 1 : kind == MxF4 ? 2 : 0;
  bool isUE4M3 = decoder.needOneOf({"ue8m0", "ue4m3"}) == 1;
  p.scaleFormat = isUE4M3 ? &num::UE4M3 : &num::UE8M0;
  bool valid = kind == MxF8F6F4 ? p.scales == 1 && !isUE4M3
               : kind == MxF4   ? p.scales == 2 && !isUE4M3
                                : p.scales == 4 || (p.scales == 2 && !isUE4M3);
  if (!valid)
    decoder.fail("there is no such combination of kind, scale vector and type of scales (PTX ISA 9.7.14.3)");
}

/// Whether it is of 6 or 4 bits in a byte.
bool narrow(const Element &element) {
  return element.kind == Element::Float && element.bits == 8 && element.format != &num::E4M3 &&
         element.format != &num::E5M2;
}

/// FP4 without containers: two in a byte.
void packFourBits(Decoder &decoder, Element &element) {
  if (element.format != &num::E2M1)
    decoder.fail("the multiplicands of this kind are .e2m1");
  element.bits = 4;
  element.shift = 0;
}

/// The shapes of 9.7.14.1 by the bits of an element.
bool hasShape(const Product &p, Kind kind) {
  auto is = [&](std::initializer_list<Shape> shapes) {
    return std::find(shapes.begin(), shapes.end(), p.shape) != shapes.end();
  };
  if (kind != None)
    return is({{16, 8, kind >= MxF4 ? 64U : 32U}});
  switch (p.a.bits) {
  case 64:
    return is({{8, 8, 4}, {16, 8, 4}, {16, 8, 8}, {16, 8, 16}});
  case 32:
    return is({{16, 8, 4}, {16, 8, 8}});
  case 16:
    return is({{16, 8, 8}, {16, 8, 16}});
  case 8:
    return is({{16, 8, 16}, {16, 8, 32}}) || (p.a.kind == Element::Integer && is({{8, 8, 16}}));
  case 4:
    return is({{8, 8, 32}, {16, 8, 32}, {16, 8, 64}});
  default:
    return is({{8, 8, 128}, {16, 8, 128}, {16, 8, 256}});
  }
}

bool accumulatorFits(const Product &p) {
  switch (p.a.kind) {
  case Element::Double:
    return p.d == Accumulator::F64;
  case Element::Float:
    return p.d == Accumulator::F32 ||
           (p.d == Accumulator::F16 && p.a.bits <= 16 && p.a.format != &num::BF16 && !p.scales);
  default:
    return p.d == Accumulator::S32;
  }
}

void checkTypes(Decoder &decoder, const Product &p, Kind kind) {
  bool mixed = p.a.kind == p.b.kind && p.a.bits == p.b.bits && (p.a.bits <= 8 || p.a.format == p.b.format);
  if (!mixed || p.c != p.d || !accumulatorFits(p))
    decoder.fail("there is no such combination of types (PTX ISA 9.7.14.2)");
  if ((kind == None && (narrow(p.a) || narrow(p.b))) || (kind != None && p.a.kind != Element::Float))
    decoder.fail("these types need another .kind");
  if (kind != None && p.a.bits > 8)
    decoder.fail("these types have no .kind");
  if (!hasShape(p, kind))
    decoder.fail("there is no such shape for these types (PTX ISA 9.7.14.1)");
}

/// A register with the scales, and the selectors: {byte, lane}.
void decodeScales(Decoder &decoder, unsigned first) {
  decoder.list(fragmentSource(decoder, decoder.operand(first), 1));
  decoder.list(fragmentSource(decoder, decoder.operand(first + 1), 2, Type::U16));
}

void decodeMma(Decoder &decoder) {
  takeAligned(decoder);
  Product p;
  p.shape = takeShape(decoder);
  Kind kind = Kind(decoder.takeOneOf({"kind::f8f6f4", "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4"}) + 1);
  const auto &modifiers = decoder.instruction().modifiers;
  bool isDouble = std::find(modifiers.begin(), modifiers.end(), "f64") != modifiers.end();
  if (p.shape == Shape{8, 8, 4} && !isDouble)
    return decodeMmaQuad(decoder, p);
  decoder.needOneOf({"row"});
  decoder.needOneOf({"col"});
  if (kind >= MxF8F6F4)
    takeScales(decoder, p, kind);
  takeProductTypes(decoder, p);
  if (kind >= MxF4) {
    packFourBits(decoder, p.a);
    packFourBits(decoder, p.b);
  }
  checkTypes(decoder, p, kind);
  setSum(p, warpUnit(decoder));
  decoder.expectOperands(p.scales ? 8 : 4);
  decodeFragments(decoder, p);
  if (p.scales) {
    decodeScales(decoder, 4);
    decodeScales(decoder, 6);
  }
  keepProduct(decoder, p);
}

} // namespace

void fp8emu::keepProduct(Decoder &decoder, const Product &p) {
  decoder.keep(std::make_shared<const Product>(p));
  decoder.op().handler =
      forElement(p.a.kind, [](auto value) -> Handler { return &product<decltype(value)>; });
}

/// Of bits: which of .and and .xor; -1 for none.
static int takeBitOperation(Decoder &decoder) {
  int operation = decoder.takeOneOf({"and", "xor"});
  if (operation >= 0)
    decoder.needOneOf({"popc"});
  return operation;
}

/// f64's rounding, -1 for none, which is the first.
static int takeProductRounding(Decoder &decoder) { return decoder.takeOneOf({"rn", "rz", "rm", "rp"}); }

static void findTypes(Decoder &decoder, Product &p) {
  p.d = takeAccumulator(decoder);
  std::string second = decoder.takeAny(), third = decoder.takeAny();
  // wmma names the multiplicands only where they are not f16.
  bool isShort = third.empty() && decoder.instruction().opcode == "wmma";
  p.a = findElement(decoder, isShort ? "f16" : second);
  p.b = findElement(decoder, isShort ? "f16" : third);
  p.c = isShort ? findAccumulator(decoder, second) : takeAccumulator(decoder);
}

void fp8emu::takeProductTypes(Decoder &decoder, Product &p) {
  static const num::Rounding roundings[] = {num::Rounding::NearestEven, num::Rounding::Zero,
                                            num::Rounding::Down, num::Rounding::Up};
  int operation = takeBitOperation(decoder), rounding = takeProductRounding(decoder);
  p.satfinite = decoder.take("satfinite");
  findTypes(decoder, p);
  if (p.satfinite && p.a.kind != Element::Integer)
    decoder.fail(".satfinite is for integers");
  if ((p.a.kind == Element::Bit) != (operation >= 0))
    decoder.fail(operation < 0 ? ".and.popc or .xor.popc is missing" : ".popc is for .b1");
  if (rounding >= 0 && p.a.kind != Element::Double)
    decoder.fail("a rounding is for .f64");
  p.isXor = operation == 1;
  p.rounding = roundings[std::max(0, rounding)];
}

void fp8emu::decodeFragments(Decoder &decoder, const Product &p) {
  Type a = p.a.kind == Element::Double ? Type::F64 : Type::B32;
  decoder.list(fragmentDestination(decoder, decoder.operand(0), p.registersOf(p.d), registerType(p.d)));
  decoder.list(fragmentSource(decoder, decoder.operand(1), p.registersA(), a));
  decoder.list(fragmentSource(decoder, decoder.operand(2), p.registersB(), a));
  decoder.list(fragmentSource(decoder, decoder.operand(3), p.registersOf(p.c), registerType(p.c)));
}

FamilyList fp8emu::mmaInstructions() { return {{"mma", decodeMma}}; }
