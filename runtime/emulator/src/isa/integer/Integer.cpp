// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integer arithmetic (PTX ISA 9.7.1) but for what needs a carry or 24 bits
// (WideInteger.cpp) and what looks at bits (Bits.cpp). add, sub, mul, div, neg, abs,
// min, max and fma of floats share opcodes with these: each hands those on.

#include "WideInteger.h"

#include "isa/Families.h"
#include "isa/Lanes.h"
#include "isa/floating/FloatDecoders.h"

#include <algorithm>
#include <limits>
#include <type_traits>

using namespace fp8emu;
using ptx::Type;

namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;

template <class T>
struct Add {
  T operator()(T a, T b) const { return T(Unsigned<T>(a) + Unsigned<T>(b)); }
};
template <class T>
struct Sub {
  T operator()(T a, T b) const { return T(Unsigned<T>(a) - Unsigned<T>(b)); }
};
/// .sat: clamped instead of wrapped.
template <class T>
T clamped(int64_t value) {
  return T(std::clamp<int64_t>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}
template <class T>
struct AddSat {
  T operator()(T a, T b) const { return clamped<T>(int64_t(a) + b); }
};
template <class T>
struct SubSat {
  T operator()(T a, T b) const { return clamped<T>(int64_t(a) - b); }
};
/// Through 64 bits, as small types would be widened to signed int.
template <class T>
struct MulLo {
  T operator()(T a, T b) const { return T(uint64_t(a) * uint64_t(b)); }
};
template <class T>
struct MulHi {
  T operator()(T a, T b) const {
    using Wide = std::conditional_t<std::is_signed<T>::value, __int128, unsigned __int128>;
    return T(Wide(a) * Wide(b) >> (8 * sizeof(T)));
  }
};
template <class T, class W>
struct MulWide {
  W operator()(T a, T b) const { return W(W(a) * W(b)); }
};
template <class T, class P>
struct Mad {
  T operator()(T a, T b, T c) const { return Add<T>()(P()(a, b), c); }
};
struct MadHiSat {
  int32_t operator()(int32_t a, int32_t b, int32_t c) const {
    return AddSat<int32_t>()(MulHi<int32_t>()(a, b), c);
  }
};
template <class T, class W>
struct MadWide {
  W operator()(T a, T b, W c) const { return Add<W>()(MulWide<T, W>()(a, b), c); }
};
/// Division by zero gives an unspecified value (PTX ISA 9.7.1.8): all ones here, as
/// hardware gives. The most negative number by -1 overflows to itself.
template <class T>
struct Div {
  T operator()(T a, T b) const {
    if (b == 0)
      return T(-1);
    if (std::is_signed<T>::value && b == T(-1))
      return Sub<T>()(0, a);
    return T(a / b);
  }
};
template <class T>
struct Rem {
  T operator()(T a, T b) const {
    if (b == 0)
      return a;
    if (std::is_signed<T>::value && b == T(-1))
      return 0;
    return T(a % b);
  }
};
template <class T>
struct Neg {
  T operator()(T a) const { return Sub<T>()(0, a); }
};
template <class T>
struct Abs {
  T operator()(T a) const { return a < 0 ? Neg<T>()(a) : a; }
};
template <class T>
struct Min {
  T operator()(T a, T b) const { return std::min(a, b); }
};
template <class T>
struct Max {
  T operator()(T a, T b) const { return std::max(a, b); }
};
/// |a - b| + c
template <class T>
struct Sad {
  T operator()(T a, T b, T c) const { return Add<T>()(c, a < b ? Sub<T>()(b, a) : Sub<T>()(a, b)); }
};

template <template <class> class F>
void decodeBinary(Decoder &decoder, Type type) {
  decoder.op().handler = forInteger(decoder, type, [](auto v) -> Handler {
    using T = decltype(v);
    return &binaryLanes<T, T, T, F<T>>;
  });
  decodeLanes(decoder, type, 2);
}

/// Two 16-bit operations in 32 bits.
template <class F, class T>
struct Packed {
  uint32_t operator()(uint32_t a, uint32_t b) const {
    return uint16_t(F()(T(a), T(b))) | uint32_t(uint16_t(F()(T(a >> 16), T(b >> 16)))) << 16;
  }
};

template <class F, class T>
constexpr Handler kPacked = &binaryLanes<uint32_t, uint32_t, uint32_t, Packed<F, T>>;

/// add (PTX ISA 9.7.1.1): {.sat} of .s32, .u32, .u16x2, .s16x2; without .sat of all types.
void decodeAdd(Decoder &decoder) {
  if (decoder.take("cc"))
    return decodeAddCarryOut(decoder);
  if (isFloatInstruction(decoder))
    return decodeFloatAdd(decoder);
  bool saturates = decoder.take("sat");
  int packed = decoder.takeOneOf({"u16x2", "s16x2"});
  Type type = packed == 0 ? Type::U16x2 : packed == 1 ? Type::S16x2 : decoder.takeType();
  if (packed < 0 && !saturates)
    return decodeBinary<Add>(decoder, type);
  if (packed < 0 && type != Type::S32 && type != Type::U32)
    decoder.fail(".sat is for .s32, .u32, .s16x2 and .u16x2");
  decodeLanes(decoder, type, 2);
  // Wrapped, both pairs are added alike.
  decoder.op().handler = packed >= 0 && !saturates ? kPacked<Add<uint16_t>, uint16_t>
                         : packed == 0             ? kPacked<AddSat<uint16_t>, uint16_t>
                         : packed == 1             ? kPacked<AddSat<int16_t>, int16_t>
                         : type == Type::U32 ? &binaryLanes<uint32_t, uint32_t, uint32_t, AddSat<uint32_t>>
                                             : &binaryLanes<int32_t, int32_t, int32_t, AddSat<int32_t>>;
}

/// sub (PTX ISA 9.7.1.2): {.sat} of .s32; of pairs there is none.
void decodeSub(Decoder &decoder) {
  if (decoder.take("cc"))
    return decodeSubCarryOut(decoder);
  if (isFloatInstruction(decoder))
    return decodeFloatSub(decoder);
  bool saturates = decoder.take("sat");
  Type type = decoder.takeType();
  if (!saturates)
    return decodeBinary<Sub>(decoder, type);
  if (type != Type::S32)
    decoder.fail(".sat is for .s32");
  decodeLanes(decoder, type, 2);
  decoder.op().handler = &binaryLanes<int32_t, int32_t, int32_t, SubSat<int32_t>>;
}

enum Half { Low, High, Wide };

/// The type of a result twice as wide.
Type widened(Decoder &decoder, Type type) {
  switch (type) {
  case Type::U16:
    return Type::U32;
  case Type::S16:
    return Type::S32;
  case Type::U32:
    return Type::U64;
  case Type::S32:
    return Type::S64;
  default:
    decoder.fail(".wide is for 16 and 32 bits");
  }
}

template <class Make>
Handler forWide(Decoder &decoder, Type type, Make make) {
  switch (type) {
  case Type::U16:
    return make(uint16_t(), uint32_t());
  case Type::S16:
    return make(int16_t(), int32_t());
  case Type::U32:
    return make(uint32_t(), uint64_t());
  case Type::S32:
    return make(int32_t(), int64_t());
  default:
    decoder.fail(".wide is for 16 and 32 bits");
  }
}

void decodeMul(Decoder &decoder) {
  if (isFloatInstruction(decoder))
    return decodeFloatMul(decoder);
  Half half = Half(decoder.needOneOf({"lo", "hi", "wide"}));
  Type type = decoder.takeType();
  if (half == Low)
    return decodeBinary<MulLo>(decoder, type);
  if (half == High)
    return decodeBinary<MulHi>(decoder, type);
  decoder.expectOperands(3);
  decoder.op().handler = forWide(decoder, type, [](auto narrow, auto wide) -> Handler {
    using T = decltype(narrow);
    using W = decltype(wide);
    return &binaryLanes<W, T, T, MulWide<T, W>>;
  });
  decoder.op().d = decoder.destination(0, widened(decoder, type));
  decoder.op().a = decoder.source(1, type);
  decoder.op().b = decoder.source(2, type);
}

void decodeMad(Decoder &decoder) {
  if (isFloatInstruction(decoder))
    return decodeFloatFma(decoder);
  if (decoder.take("cc"))
    return decodeMadCarryOut(decoder);
  Half half = Half(decoder.needOneOf({"lo", "hi", "wide"}));
  bool saturates = decoder.take("sat");
  Type type = decoder.takeType();
  Op &op = decoder.op();
  if (saturates && (half != High || type != Type::S32))
    decoder.fail(".sat is for .hi.s32");
  if (half != Wide) {
    decodeLanes(decoder, type, 3);
    op.handler = saturates ? &ternaryLanes<int32_t, int32_t, int32_t, int32_t, MadHiSat>
                           : forInteger(decoder, type, [half](auto v) -> Handler {
                               using T = decltype(v);
                               return half == Low ? &ternaryLanes<T, T, T, T, Mad<T, MulLo<T>>>
                                                  : &ternaryLanes<T, T, T, T, Mad<T, MulHi<T>>>;
                             });
    return;
  }
  decoder.expectOperands(4);
  Type result = widened(decoder, type);
  op.handler = forWide(decoder, type, [](auto narrow, auto wide) -> Handler {
    using T = decltype(narrow);
    using W = decltype(wide);
    return &ternaryLanes<W, T, T, W, MadWide<T, W>>;
  });
  op.d = decoder.destination(0, result);
  op.a = decoder.source(1, type);
  op.b = decoder.source(2, type);
  op.c = decoder.source(3, result);
}

void decodeDiv(Decoder &decoder) {
  isFloatInstruction(decoder) ? decodeFloatDiv(decoder) : decodeBinary<Div>(decoder, decoder.takeType());
}
void decodeRem(Decoder &decoder) { decodeBinary<Rem>(decoder, decoder.takeType()); }

template <class F>
struct Relu {
  template <class T>
  T operator()(T a, T b) const {
    return std::max(F()(a, b), T(0));
  }
};

template <template <class> class F>
void decodeMinMax(Decoder &decoder) {
  bool relu = decoder.take("relu");
  int packed = decoder.takeOneOf({"u16x2", "s16x2"});
  if (packed >= 0) {
    decodeLanes(decoder, packed == 0 ? Type::U16x2 : Type::S16x2, 2);
    if (relu && packed == 0)
      decoder.fail(".relu is for signed types");
    using U = Packed<F<uint16_t>, uint16_t>;
    using S = Packed<F<int16_t>, int16_t>;
    using R = Packed<Relu<F<int16_t>>, int16_t>;
    decoder.op().handler = packed == 0 ? &binaryLanes<uint32_t, uint32_t, uint32_t, U>
                           : relu      ? &binaryLanes<uint32_t, uint32_t, uint32_t, R>
                                       : &binaryLanes<uint32_t, uint32_t, uint32_t, S>;
    return;
  }
  Type type = decoder.takeType();
  if (!relu)
    return decodeBinary<F>(decoder, type);
  if (type != Type::S32)
    decoder.fail(".relu is for .s32 and .s16x2");
  decodeLanes(decoder, type, 2);
  decoder.op().handler = &binaryLanes<int32_t, int32_t, int32_t, Relu<F<int32_t>>>;
}

void decodeMin(Decoder &decoder) {
  isFloatInstruction(decoder) ? decodeFloatMinMax(decoder, /*isMax=*/false) : decodeMinMax<Min>(decoder);
}
void decodeMax(Decoder &decoder) {
  isFloatInstruction(decoder) ? decodeFloatMinMax(decoder, /*isMax=*/true) : decodeMinMax<Max>(decoder);
}

template <template <class> class F>
void decodeUnary(Decoder &decoder) {
  Type type = decoder.takeType();
  if (!isSigned(type))
    decoder.fail("a signed type is expected");
  decoder.op().handler = forInteger(decoder, type, [](auto v) -> Handler {
    using T = decltype(v);
    return &unaryLanes<T, T, F<T>>;
  });
  decodeLanes(decoder, type, 1);
}

void decodeNeg(Decoder &decoder) {
  isFloatInstruction(decoder) ? decodeFloatNeg(decoder) : decodeUnary<Neg>(decoder);
}
void decodeAbs(Decoder &decoder) {
  isFloatInstruction(decoder) ? decodeFloatAbs(decoder) : decodeUnary<Abs>(decoder);
}

void decodeSad(Decoder &decoder) {
  Type type = decoder.takeType();
  decoder.op().handler = forInteger(decoder, type, [](auto v) -> Handler {
    using T = decltype(v);
    return &ternaryLanes<T, T, T, T, Sad<T>>;
  });
  decodeLanes(decoder, type, 3);
}

} // namespace

FamilyList fp8emu::integerInstructions() {
  return {{"add", decodeAdd}, {"sub", decodeSub}, {"mul", decodeMul}, {"mad", decodeMad},
          {"div", decodeDiv}, {"rem", decodeRem}, {"min", decodeMin}, {"max", decodeMax},
          {"neg", decodeNeg}, {"abs", decodeAbs}, {"sad", decodeSad}};
}
