// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Logic and shifts (PTX ISA 9.7.8), and permutes of bytes (9.7.9.7).

#include "isa/Families.h"
#include "isa/Lanes.h"

#include <algorithm>
#include <type_traits>

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

namespace {

// Logic. The same on registers and on predicates, whose lanes are the bits of a Mask.

struct And {
  template <class T>
  T operator()(T a, T b) const {
    return T(a & b);
  }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return T(a | b);
  }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return T(a ^ b);
  }
};

/// op.flags: 1 where a is negated, 2 where b is.
template <class F>
void predicateLanes(Warp &warp, const Op &op, Mask mask) {
  Mask a = warp.predicate(op.a), b = warp.predicate(op.b), &d = warp.predicate(op.d);
  Mask value = F()(op.flags & 1 ? ~a : a, op.flags & 2 ? ~b : b);
  d = (d & ~mask) | (value & mask);
}

void decodePredicates(Decoder &decoder, unsigned sources) {
  decoder.expectOperands(sources + 1);
  Op &op = decoder.op();
  bool notA = false, notB = false;
  op.d = decoder.predicateDestination(decoder.operand(0));
  op.a = decoder.predicate(decoder.operand(1), &notA);
  if (sources > 1)
    op.b = decoder.predicate(decoder.operand(2), &notB);
  op.flags = uint8_t(notA | notB << 1);
}

template <class F>
void decodeLogic(Decoder &decoder) {
  if (decoder.take("pred")) {
    decodePredicates(decoder, 2);
    decoder.op().handler = &predicateLanes<F>;
    return;
  }
  Type type = takeBits(decoder, 2);
  decodeLanes(decoder, type, 2);
  decoder.op().handler = forBits(decoder, type, [](auto v) -> Handler {
    using T = decltype(v);
    return &binaryLanes<T, T, T, F>;
  });
}

struct Not {
  template <class T>
  T operator()(T a) const {
    return T(~a);
  }
};
/// 1 for zero, 0 for anything else.
struct Cnot {
  template <class T>
  T operator()(T a) const {
    return T(a == 0);
  }
};

template <class F>
void decodeUnaryBits(Decoder &decoder) {
  Type type = takeBits(decoder, 2);
  decodeLanes(decoder, type, 1);
  decoder.op().handler = forBits(decoder, type, [](auto v) -> Handler {
    using T = decltype(v);
    return &unaryLanes<T, T, F>;
  });
}

void decodeNot(Decoder &decoder) {
  if (!decoder.take("pred"))
    return decodeUnaryBits<Not>(decoder);
  decodePredicates(decoder, 1);
  // Exclusive or with true.
  decoder.op().b = decoder.constant(1, 0);
  decoder.op().handler = &predicateLanes<Xor>;
}

// lop3: op.small is the table, bit (4a + 2b + c) of which is the result.

/// The table as a tree of choices: c, then b, then a chooses between two halves.
struct Lookup {
  uint32_t low[4], change[4];
  explicit Lookup(unsigned table) {
    for (unsigned i = 0; i < 4; ++i) {
      low[i] = table >> (2 * i) & 1 ? ~0u : 0;
      change[i] = low[i] ^ (table >> (2 * i + 1) & 1 ? ~0u : 0);
    }
  }
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    uint32_t ab[4];
    for (unsigned i = 0; i < 4; ++i)
      ab[i] = low[i] ^ (change[i] & c);
    uint32_t zero = ab[0] ^ ((ab[0] ^ ab[1]) & b), one = ab[2] ^ ((ab[2] ^ ab[3]) & b);
    return zero ^ ((zero ^ one) & a);
  }
};

void lop3(Warp &warp, const Op &op, Mask mask) {
  const Lookup lookup(op.small);
  uint32_t *d = warp.values<uint32_t>(op.d);
  const uint32_t *a = warp.values<uint32_t>(op.a), *b = warp.values<uint32_t>(op.b),
                 *c = warp.values<uint32_t>(op.c);
  forIndependentLanes(mask, [=](unsigned lane) { d[lane] = lookup(a[lane], b[lane], c[lane]); });
}

/// Of lop3 with a predicate, the operands after the first five.
struct BoolOp {
  Ref p, q;
  bool isOr = false, negated = false;
};

/// p = (d != 0) BoolOp q.
void lop3BoolOp(Warp &warp, const Op &op, Mask mask) {
  lop3(warp, op, mask);
  const BoolOp &rest = *static_cast<const BoolOp *>(op.payload);
  const uint32_t *d = warp.values<uint32_t>(op.d);
  Mask nonZero = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    nonZero |= Mask(d[lane] != 0) << lane;
  Mask q = warp.predicate(rest.q) ^ (rest.negated ? kAllLanes : 0), &p = warp.predicate(rest.p);
  Mask value = rest.isOr ? nonZero | q : nonZero & q;
  p = (p & ~mask) | (value & mask);
}

void decodeLop3(Decoder &decoder) {
  int boolOp = decoder.takeOneOf({"or", "and"});
  decoder.needOneOf({"b32"});
  decoder.expectOperands(boolOp < 0 ? 5 : 6);
  Op &op = decoder.op();
  const Operand *d = &decoder.operand(0);
  if (boolOp >= 0) {
    if (d->kind != Operand::Kind::Pair)
      decoder.fail(*d, "d|p is expected");
    auto rest = std::make_shared<BoolOp>();
    rest->p = decoder.predicateDestination(d->parts[1]);
    rest->q = decoder.predicate(decoder.operand(5), &rest->negated);
    rest->isOr = boolOp == 0;
    decoder.keep<BoolOp>(rest);
    d = &d->parts[0];
  }
  op.d = decoder.destination(*d, Type::B32);
  op.a = decoder.source(1, Type::B32);
  op.b = decoder.source(2, Type::B32);
  op.c = decoder.source(3, Type::B32);
  int64_t table = decoder.integer(decoder.operand(4));
  if (table < 0 || table > 255)
    decoder.fail(decoder.operand(4), "immLut is a number from 0 to 255");
  op.small = uint16_t(table);
  op.handler = boolOp < 0 ? &lop3 : &lop3BoolOp;
}

// Shifts. Amounts greater than the width shift everything out (PTX ISA 9.7.8.8).

template <class T>
struct ShiftLeft {
  T operator()(T a, uint32_t b) const { return b < 8 * sizeof(T) ? T(a << b) : T(0); }
};
template <class T>
struct ShiftRight {
  T operator()(T a, uint32_t b) const {
    constexpr uint32_t last = 8 * sizeof(T) - 1;
    if (std::is_signed<T>::value)
      return T(a >> std::min(b, last));
    return b <= last ? T(a >> b) : T(0);
  }
};

void decodeShiftOperands(Decoder &decoder, Type type) {
  decoder.expectOperands(3);
  decoder.op().d = decoder.destination(0, type);
  decoder.op().a = decoder.source(1, type);
  decoder.op().b = decoder.source(2, Type::U32);
}

void decodeShl(Decoder &decoder) {
  Type type = takeBits(decoder, 2);
  decodeShiftOperands(decoder, type);
  decoder.op().handler = forBits(decoder, type, [](auto v) -> Handler {
    using T = decltype(v);
    return &binaryLanes<T, T, uint32_t, ShiftLeft<T>>;
  });
}

void decodeShr(Decoder &decoder) {
  Type type = decoder.takeType();
  auto make = [](auto v) -> Handler {
    using T = decltype(v);
    return &binaryLanes<T, T, uint32_t, ShiftRight<T>>;
  };
  decoder.op().handler = isBits(type) ? forBits(decoder, type, make) : forInteger(decoder, type, make);
  decodeShiftOperands(decoder, type);
}

/// Funnel shifts of {b, a}.
template <bool left, bool wrap>
struct Funnel {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    uint32_t n = wrap ? c & 31 : std::min(c, 32u);
    uint64_t both = uint64_t(b) << 32 | a;
    return uint32_t(left ? both << n >> 32 : both >> n);
  }
};

void decodeShf(Decoder &decoder) {
  bool left = decoder.needOneOf({"r", "l"}) == 1;
  bool wrap = decoder.needOneOf({"clamp", "wrap"}) == 1;
  decoder.needOneOf({"b32"});
  decoder.expectOperands(4);
  decoder.op().d = decoder.destination(0, Type::B32);
  decoder.op().a = decoder.source(1, Type::B32);
  decoder.op().b = decoder.source(2, Type::B32);
  decoder.op().c = decoder.source(3, Type::U32);
  using U = uint32_t;
  decoder.op().handler = left   ? wrap ? &ternaryLanes<U, U, U, U, Funnel<true, true>>
                                       : &ternaryLanes<U, U, U, U, Funnel<true, false>>
                         : wrap ? &ternaryLanes<U, U, U, U, Funnel<false, true>>
                                : &ternaryLanes<U, U, U, U, Funnel<false, false>>;
}

// prmt: selectors of four bits, each the number of one of eight bytes; with the
// uppermost bit, that byte's sign in all bits.

uint32_t permute(uint32_t a, uint32_t b, uint32_t selectors) {
  uint64_t bytes = uint64_t(b) << 32 | a;
  uint32_t out = 0;
  for (unsigned i = 0; i < 4; ++i) {
    unsigned selector = selectors >> (4 * i) & 15;
    auto byte = uint8_t(bytes >> (8 * (selector & 7)));
    if (selector & 8)
      byte = byte & 0x80 ? 0xFF : 0;
    out |= uint32_t(byte) << (8 * i);
  }
  return out;
}

struct Permute {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const { return permute(a, b, c); }
};

/// Of each mode, the selectors for c = 0 to 3 (the second table of PTX ISA 9.7.9.7).
constexpr uint16_t kPermuteModes[6][4] = {
    {0x3210, 0x4321, 0x5432, 0x6543}, // f4e
    {0x5670, 0x6701, 0x7012, 0x0123}, // b4e
    {0x0000, 0x1111, 0x2222, 0x3333}, // rc8
    {0x3210, 0x3211, 0x3222, 0x3333}, // ecl
    {0x0000, 0x1110, 0x2210, 0x3210}, // ecr
    {0x1010, 0x3232, 0x1010, 0x3232}, // rc16
};

/// op.small is the mode.
void permuteMode(Warp &warp, const Op &op, Mask mask) {
  uint32_t *d = warp.values<uint32_t>(op.d);
  const uint32_t *a = warp.values<uint32_t>(op.a), *b = warp.values<uint32_t>(op.b),
                 *c = warp.values<uint32_t>(op.c);
  const uint16_t *selectors = kPermuteModes[op.small];
  forIndependentLanes(mask,
                      [=](unsigned lane) { d[lane] = permute(a[lane], b[lane], selectors[c[lane] & 3]); });
}

void decodePrmt(Decoder &decoder) {
  decoder.needOneOf({"b32"});
  int mode = decoder.takeOneOf({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  decodeLanes(decoder, Type::B32, 3);
  decoder.op().small = uint16_t(std::max(mode, 0));
  decoder.op().handler =
      mode < 0 ? &ternaryLanes<uint32_t, uint32_t, uint32_t, uint32_t, Permute> : &permuteMode;
}

} // namespace

FamilyList fp8emu::logicInstructions() {
  return {{"and", decodeLogic<And>},
          {"or", decodeLogic<Or>},
          {"xor", decodeLogic<Xor>},
          {"not", decodeNot},
          {"cnot", decodeUnaryBits<Cnot>},
          {"lop3", decodeLop3},
          {"shl", decodeShl},
          {"shr", decodeShr},
          {"shf", decodeShf},
          {"prmt", decodePrmt}};
}
