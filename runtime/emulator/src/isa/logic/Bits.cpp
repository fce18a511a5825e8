// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bit fields, counts and positions of bits (PTX ISA 9.7.1.14 to 9.7.1.22).

#include "isa/Families.h"
#include "isa/Lanes.h"

#include <algorithm>
#include <type_traits>

using namespace fp8emu;
using ptx::Type;

namespace {

/// An integer of 32 or 64 bits.
Type takeWord(Decoder &decoder) {
  Type type = decoder.takeType();
  if (!isInteger(type) || ptx::byteSize(type) < 4)
    decoder.fail("integers of 32 and 64 bits are expected");
  return type;
}

// Bit fields.

/// The lowest n bits, n at most the width.
template <class T>
T lowBits(unsigned n) {
  return n < 8 * sizeof(T) ? T((T(1) << n) - 1) : T(~T(0));
}

/// Only the low eight bits of position and length count (PTX ISA 9.7.1.19).
template <class T>
struct Extract {
  T operator()(T a, uint32_t b, uint32_t c) const {
    using U = std::make_unsigned_t<T>;
    constexpr unsigned width = 8 * sizeof(T);
    unsigned position = b & 0xFF, length = c & 0xFF;
    bool sign = std::is_signed<T>::value && length && U(a) >> std::min(position + length - 1, width - 1) & 1;
    unsigned have = position < width ? std::min(length, width - position) : 0;
    U mask = lowBits<U>(have), field = position < width ? U(a) >> position : 0;
    return T((field & mask) | (sign ? U(~mask) : U(0)));
  }
};

void decodeBfe(Decoder &decoder) {
  Type type = takeWord(decoder);
  decoder.expectOperands(4);
  Op &op = decoder.op();
  op.d = decoder.destination(0, type);
  op.a = decoder.source(1, type);
  op.b = decoder.source(2, Type::U32);
  op.c = decoder.source(3, Type::U32);
  op.handler = forInteger(decoder, type, [](auto v) -> Handler {
    using T = decltype(v);
    return &ternaryLanes<T, T, uint32_t, uint32_t, Extract<T>>;
  });
}

template <class T>
void insertField(Warp &warp, const Op &op, Mask mask) {
  T *d = warp.values<T>(op.d);
  const T *a = warp.values<T>(op.a), *b = warp.values<T>(op.b);
  const uint32_t *c = warp.values<uint32_t>(op.c), *e = warp.values<uint32_t>(op.e);
  forIndependentLanes(mask, [=](unsigned lane) {
    unsigned position = c[lane] & 0xFF, length = std::min(e[lane] & 0xFF, unsigned(8 * sizeof(T)));
    bool inside = position < 8 * sizeof(T);
    T field = inside ? T(lowBits<T>(length) << position) : T(0),
      value = inside ? T(a[lane] << position) : T(0);
    d[lane] = (b[lane] & ~field) | (value & field);
  });
}

void decodeBfi(Decoder &decoder) {
  Type type = takeBits(decoder, 4);
  decoder.expectOperands(5);
  Op &op = decoder.op();
  op.d = decoder.destination(0, type);
  op.a = decoder.source(1, type);
  op.b = decoder.source(2, type);
  op.c = decoder.source(3, Type::U32);
  op.e = decoder.source(4, Type::U32);
  op.handler = type == Type::B32 ? &insertField<uint32_t> : &insertField<uint64_t>;
}

template <bool wrap, bool isSigned>
struct Extend {
  uint32_t operator()(uint32_t a, uint32_t b) const {
    if (!wrap && b >= 32)
      return a;
    uint32_t n = b & 31, mask = lowBits<uint32_t>(n);
    bool sign = isSigned && n && (a >> (n - 1) & 1);
    return (a & mask) | (sign ? ~mask : 0);
  }
};

void decodeSzext(Decoder &decoder) {
  bool wrap = decoder.needOneOf({"clamp", "wrap"}) == 1;
  Type type = decoder.takeType();
  if (type != Type::U32 && type != Type::S32)
    decoder.fail(".u32 or .s32 is expected");
  decodeLanes(decoder, type, 2);
  using U = uint32_t;
  bool isSigned = type == Type::S32;
  decoder.op().handler =
      wrap ? isSigned ? &binaryLanes<U, U, U, Extend<true, true>> : &binaryLanes<U, U, U, Extend<true, false>>
      : isSigned ? &binaryLanes<U, U, U, Extend<false, true>>
                 : &binaryLanes<U, U, U, Extend<false, false>>;
}

/// b ones from bit a on.
template <bool wrap>
struct FieldMask {
  uint32_t operator()(uint32_t a, uint32_t b) const {
    if (!wrap && a >= 32)
      return 0;
    return lowBits<uint32_t>(wrap ? b & 31 : std::min(b, 32u)) << (a & 31);
  }
};

void decodeBmsk(Decoder &decoder) {
  bool wrap = decoder.needOneOf({"clamp", "wrap"}) == 1;
  decoder.needOneOf({"b32"});
  decodeLanes(decoder, Type::U32, 2);
  using U = uint32_t;
  decoder.op().handler =
      wrap ? &binaryLanes<U, U, U, FieldMask<true>> : &binaryLanes<U, U, U, FieldMask<false>>;
}

// Counts and positions.

template <class T>
struct Popc {
  uint32_t operator()(T a) const { return uint32_t(__builtin_popcountll(a)); }
};
template <class T>
struct Clz {
  uint32_t operator()(T a) const {
    return a ? uint32_t(__builtin_clzll(a)) - (64 - 8 * sizeof(T)) : uint32_t(8 * sizeof(T));
  }
};
/// The highest bit that differs from the sign; with shiftAmount, its distance from
/// the top.
template <class T, bool shiftAmount>
struct Find {
  uint32_t operator()(T a) const {
    using U = std::make_unsigned_t<T>;
    U bits = std::is_signed<T>::value && a < 0 ? U(~a) : U(a);
    uint32_t zeros = Clz<U>()(bits);
    if (bits == 0)
      return ~0u;
    return shiftAmount ? zeros : uint32_t(8 * sizeof(T)) - 1 - zeros;
  }
};
template <class T>
struct Reverse {
  T operator()(T a) const {
    uint64_t v = a;
    v = (v >> 1 & 0x5555555555555555) | (v & 0x5555555555555555) << 1;
    v = (v >> 2 & 0x3333333333333333) | (v & 0x3333333333333333) << 2;
    v = (v >> 4 & 0x0F0F0F0F0F0F0F0F) | (v & 0x0F0F0F0F0F0F0F0F) << 4;
    return T(__builtin_bswap64(v) >> (64 - 8 * sizeof(T)));
  }
};

void decodeCountOperands(Decoder &decoder, Type type) {
  decoder.expectOperands(2);
  decoder.op().d = decoder.destination(0, Type::U32);
  decoder.op().a = decoder.source(1, type);
}

template <template <class> class F>
void decodeCount(Decoder &decoder) {
  Type type = takeBits(decoder, 4);
  decodeCountOperands(decoder, type);
  decoder.op().handler = type == Type::B32 ? &unaryLanes<uint32_t, uint32_t, F<uint32_t>>
                                           : &unaryLanes<uint32_t, uint64_t, F<uint64_t>>;
}

void decodeBfind(Decoder &decoder) {
  bool shiftAmount = decoder.take("shiftamt");
  Type type = takeWord(decoder);
  decodeCountOperands(decoder, type);
  decoder.op().handler = forInteger(decoder, type, [shiftAmount](auto v) -> Handler {
    using T = decltype(v);
    return shiftAmount ? &unaryLanes<uint32_t, T, Find<T, true>> : &unaryLanes<uint32_t, T, Find<T, false>>;
  });
}

void decodeBrev(Decoder &decoder) {
  Type type = takeBits(decoder, 4);
  decodeLanes(decoder, type, 1);
  decoder.op().handler = type == Type::B32 ? &unaryLanes<uint32_t, uint32_t, Reverse<uint32_t>>
                                           : &unaryLanes<uint64_t, uint64_t, Reverse<uint64_t>>;
}

/// The offset-th set bit of mask from base on, downwards where offset is negative
/// (PTX ISA 9.7.1.17). A base beyond 31, which that leaves undefined, finds nothing.
uint32_t findNthSet(uint32_t mask, uint32_t base, int32_t offset) {
  if (base > 31)
    return ~0u;
  if (offset == 0)
    return mask >> base & 1 ? base : ~0u;
  int64_t left = offset < 0 ? -int64_t(offset) : offset;
  for (int position = int(base); position >= 0 && position < 32; position += offset < 0 ? -1 : 1)
    if ((mask >> position & 1) && --left == 0)
      return uint32_t(position);
  return ~0u;
}

void fns(Warp &warp, const Op &op, Mask mask) {
  uint32_t *d = warp.values<uint32_t>(op.d);
  const uint32_t *a = warp.values<uint32_t>(op.a), *b = warp.values<uint32_t>(op.b);
  const int32_t *c = warp.values<int32_t>(op.c);
  for (; mask; mask &= mask - 1) {
    unsigned lane = unsigned(__builtin_ctz(mask));
    d[lane] = findNthSet(a[lane], b[lane], c[lane]);
  }
}

void decodeFns(Decoder &decoder) {
  decoder.needOneOf({"b32"});
  decodeLanes(decoder, Type::B32, 3);
  decoder.op().handler = &fns;
}

} // namespace

FamilyList fp8emu::bitInstructions() {
  return {{"bfe", decodeBfe},     {"bfi", decodeBfi},          {"szext", decodeSzext},
          {"bmsk", decodeBmsk},   {"popc", decodeCount<Popc>}, {"clz", decodeCount<Clz>},
          {"bfind", decodeBfind}, {"brev", decodeBrev},        {"fns", decodeFns}};
}
