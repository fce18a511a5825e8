// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integer arithmetic beside the plain one of Integer.cpp: with a carry (PTX ISA
// 9.7.2), of 24 bits (9.7.1.5, 9.7.1.6), and dot products of small integers
// (9.7.1.23, 9.7.1.24).

#include "WideInteger.h"

#include "isa/Families.h"
#include "isa/Lanes.h"

#include <algorithm>
#include <type_traits>

using namespace fp8emu;
using ptx::Type;

namespace {

/// a + b + carry, and the carry out of it.
template <class T>
T addCarry(T a, T b, bool &carry) {
  T sum = T(a + b), result = T(sum + carry);
  carry = sum < a || result < sum;
  return result;
}

/// a - (b + borrow), and the borrow out of it.
template <class T>
T subBorrow(T a, T b, bool &borrow) {
  T difference = T(a - b), result = T(difference - borrow);
  borrow = a < b || difference < T(borrow);
  return result;
}

/// Of each operation, `kBorrows`: whether its flag is the complement of a borrow. After
/// a subtraction CC.CF is the carry of a + ~b + 1, so 1 where nothing is borrowed. PTX
/// ISA 9.7.2.3 says "borrow" and warns of mixing; nvcc's division of 128 bits does mix:
/// it reads the flag of sub.cc by addc, and takes 0 for a negative difference.
struct Add {
  static constexpr bool kBorrows = false;
  template <class T>
  T operator()(T a, T b, T, bool &carry) const {
    return addCarry(a, b, carry);
  }
};
struct Sub {
  static constexpr bool kBorrows = true;
  template <class T>
  T operator()(T a, T b, T, bool &carry) const {
    return subBorrow(a, b, carry);
  }
};
/// The carry is that of the addition; the product never has one.
struct MadLow {
  static constexpr bool kBorrows = false;
  template <class T>
  T operator()(T a, T b, T c, bool &carry) const {
    return addCarry(T(a * b), c, carry);
  }
};
template <bool isSigned>
struct MadHigh {
  static constexpr bool kBorrows = false;
  template <class T>
  T operator()(T a, T b, T c, bool &carry) const {
    using Narrow = std::conditional_t<isSigned, std::make_signed_t<T>, T>;
    using Wide = std::conditional_t<isSigned, __int128, unsigned __int128>;
    return addCarry(T(Wide(Narrow(a)) * Narrow(b) >> (8 * sizeof(T))), c, carry);
  }
};

enum Carry { Out, In, InOut };

/// op.e is the condition code's carry flag, a bit for each lane.
template <class T, class F, Carry carry>
void carryLanes(Warp &warp, const Op &op, Mask mask) {
  T *d = warp.values<T>(op.d);
  const T *a = warp.values<T>(op.a), *b = warp.values<T>(op.b), *c = warp.values<T>(op.c ? op.c : op.b);
  Mask &flags = warp.predicate(op.e);
  Mask out = flags & ~mask;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    unsigned lane = unsigned(__builtin_ctz(rest));
    bool flag = carry != Out && bool(flags >> lane & 1) != F::kBorrows;
    d[lane] = F()(a[lane], b[lane], c[lane], flag);
    out |= Mask(flag != F::kBorrows) << lane;
  }
  if (carry != In)
    flags = out;
}

template <class F, Carry carry>
void decodeCarry(Decoder &decoder, Type type, unsigned sources) {
  if (!isInteger(type) || ptx::byteSize(type) < 4)
    decoder.fail("integers of 32 and 64 bits are expected");
  decodeLanes(decoder, type, sources);
  decoder.op().e = decoder.carry();
  decoder.op().handler =
      ptx::byteSize(type) == 4 ? &carryLanes<uint32_t, F, carry> : &carryLanes<uint64_t, F, carry>;
}

template <class F>
void decodeAddSub(Decoder &decoder) {
  bool out = decoder.take("cc");
  Type type = decoder.takeType();
  out ? decodeCarry<F, InOut>(decoder, type, 2) : decodeCarry<F, In>(decoder, type, 2);
}

template <Carry carry>
void decodeMad(Decoder &decoder) {
  bool high = decoder.needOneOf({"lo", "hi"}) == 1;
  Type type = decoder.takeType();
  if (!high)
    decodeCarry<MadLow, carry>(decoder, type, 3);
  else if (isSigned(type))
    decodeCarry<MadHigh<true>, carry>(decoder, type, 3);
  else
    decodeCarry<MadHigh<false>, carry>(decoder, type, 3);
}

void decodeMadCarryIn(Decoder &decoder) {
  decoder.take("cc") ? decodeMad<InOut>(decoder) : decodeMad<In>(decoder);
}

/// The product of the low 24 bits; the upper eight of each operand do not matter.
template <class T>
int64_t mul24(T a, T b) {
  return int64_t(T(uint32_t(a) << 8) >> 8) * (T(uint32_t(b) << 8) >> 8);
}
/// Bits 31 to 0 of the 48, or 47 to 16.
template <class T, bool high>
struct Mul24 {
  T operator()(T a, T b) const { return T(mul24(a, b) >> (high ? 16 : 0)); }
};
template <class T, bool high>
struct Mad24 {
  T operator()(T a, T b, T c) const { return T(uint32_t(Mul24<T, high>()(a, b)) + uint32_t(c)); }
};
struct Mad24HighSaturating {
  int32_t operator()(int32_t a, int32_t b, int32_t c) const {
    return int32_t(std::clamp<int64_t>(int64_t(Mul24<int32_t, true>()(a, b)) + c, INT32_MIN, INT32_MAX));
  }
};

template <class T>
Handler handler24(unsigned sources, bool high) {
  if (sources == 2)
    return high ? &binaryLanes<T, T, T, Mul24<T, true>> : &binaryLanes<T, T, T, Mul24<T, false>>;
  return high ? &ternaryLanes<T, T, T, T, Mad24<T, true>> : &ternaryLanes<T, T, T, T, Mad24<T, false>>;
}

void decode24(Decoder &decoder, unsigned sources) {
  bool high = decoder.needOneOf({"lo", "hi"}) == 1;
  bool saturates = sources == 3 && decoder.take("sat");
  Type type = decoder.takeType();
  if (type != Type::U32 && type != Type::S32)
    decoder.fail(".u32 or .s32 is expected");
  if (saturates && (!high || type != Type::S32))
    decoder.fail(".sat is for .hi.s32");
  decodeLanes(decoder, type, sources);
  decoder.op().handler = saturates ? &ternaryLanes<int32_t, int32_t, int32_t, int32_t, Mad24HighSaturating>
                         : type == Type::S32 ? handler24<int32_t>(sources, high)
                                             : handler24<uint32_t>(sources, high);
}

void decodeMul24(Decoder &decoder) { decode24(decoder, 2); }
void decodeMad24(Decoder &decoder) { decode24(decoder, 3); }

/// Element i of the Es in a, extended as E says.
template <class E>
int64_t element(uint32_t a, unsigned i) {
  return E(a >> (8 * sizeof(E) * i));
}

template <class A, class B>
struct Dot4 {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    for (unsigned i = 0; i < 4; ++i)
      c += uint32_t(element<A>(a, i) * element<B>(b, i));
    return c;
  }
};
/// Two 16-bit elements by the lower or upper two bytes of b.
template <class A, class B, unsigned first>
struct Dot2 {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    for (unsigned i = 0; i < 2; ++i)
      c += uint32_t(element<A>(a, i) * element<B>(b, first + i));
    return c;
  }
};

template <class F>
Handler dotHandler() {
  return &ternaryLanes<uint32_t, uint32_t, uint32_t, uint32_t, F>;
}

/// Whether the next of .u32 and .s32 is signed.
bool takeSignedness(Decoder &decoder) {
  Type type = decoder.takeType();
  if (type != Type::U32 && type != Type::S32)
    decoder.fail(".u32 or .s32 is expected");
  return type == Type::S32;
}

void decodeDot4(Decoder &decoder) {
  bool a = takeSignedness(decoder), b = takeSignedness(decoder);
  decodeLanes(decoder, Type::U32, 3);
  decoder.op().handler = a   ? b ? dotHandler<Dot4<int8_t, int8_t>>() : dotHandler<Dot4<int8_t, uint8_t>>()
                         : b ? dotHandler<Dot4<uint8_t, int8_t>>()
                             : dotHandler<Dot4<uint8_t, uint8_t>>();
}

template <class A, class B>
Handler dot2Handler(bool high) {
  return high ? dotHandler<Dot2<A, B, 2>>() : dotHandler<Dot2<A, B, 0>>();
}

void decodeDot2(Decoder &decoder) {
  bool high = decoder.needOneOf({"lo", "hi"}) == 1;
  bool a = takeSignedness(decoder), b = takeSignedness(decoder);
  decodeLanes(decoder, Type::U32, 3);
  decoder.op().handler = a   ? b ? dot2Handler<int16_t, int8_t>(high) : dot2Handler<int16_t, uint8_t>(high)
                         : b ? dot2Handler<uint16_t, int8_t>(high)
                             : dot2Handler<uint16_t, uint8_t>(high);
}

} // namespace

void fp8emu::decodeAddCarryOut(Decoder &decoder) { decodeCarry<Add, Out>(decoder, decoder.takeType(), 2); }
void fp8emu::decodeSubCarryOut(Decoder &decoder) { decodeCarry<Sub, Out>(decoder, decoder.takeType(), 2); }
void fp8emu::decodeMadCarryOut(Decoder &decoder) { decodeMad<Out>(decoder); }

FamilyList fp8emu::wideIntegerInstructions() {
  return {{"addc", decodeAddSub<Add>}, {"subc", decodeAddSub<Sub>}, {"madc", decodeMadCarryIn},
          {"mul24", decodeMul24},      {"mad24", decodeMad24},      {"dp4a", decodeDot4},
          {"dp2a", decodeDot2}};
}
