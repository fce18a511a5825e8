// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Comparisons and selections: setp, set, selp, slct (PTX ISA 9.7.6), those of f16 and
// bf16 (9.7.7) too.

#include "isa/Families.h"
#include "isa/Lanes.h"
#include "num/Format.h"

#include <cmath>

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

namespace {

enum Comparison { Eq, Ne, Lt, Le, Gt, Ge, Lo, Ls, Hi, Hs, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan };

Comparison takeComparison(Decoder &decoder) {
  return Comparison(decoder.needOneOf({"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ",
                                       "neu", "ltu", "leu", "gtu", "geu", "num", "nan"}));
}

/// A 16-bit float as what its bits mean; compared as f32, which holds it exactly.
struct F16Value {
  uint16_t bits;
  operator float() const { return float(num::decode(num::F16, bits)); }
};
struct BF16Value {
  uint16_t bits;
  operator float() const {
    uint32_t wide = uint32_t(bits) << 16;
    float out;
    __builtin_memcpy(&out, &wide, 4);
    return out;
  }
};

template <class T>
constexpr bool kIsInteger = std::is_integral<T>::value;

/// The value that is compared: with .ftz, which f32 and f16 have, subnormals are zero.
template <class T>
auto flush(T value, bool ftz) {
  if constexpr (std::is_integral<T>::value || std::is_same<T, double>::value)
    return value;
  else if constexpr (std::is_same<T, F16Value>::value)
    return ftz && !(value.bits & 0x7C00) ? 0.0f : float(value);
  else
    return ftz && std::fpclassify(float(value)) == FP_SUBNORMAL ? 0.0f : float(value);
}

template <class V>
bool isNaN(V value) {
  if constexpr (kIsInteger<V>)
    return false;
  else
    return std::isnan(value);
}

template <Comparison C, class V>
bool compare(V a, V b) {
  bool unordered = isNaN(a) || isNaN(b);
  switch (C) {
  case Eq:
    return a == b;
  case Ne:
    return !unordered && a != b;
  case Lt:
  case Lo:
    return a < b;
  case Le:
  case Ls:
    return a <= b;
  case Gt:
  case Hi:
    return a > b;
  case Ge:
  case Hs:
    return a >= b;
  case Equ:
    return unordered || a == b;
  case Neu:
    return unordered || a != b;
  case Ltu:
    return unordered || a < b;
  case Leu:
    return unordered || a <= b;
  case Gtu:
    return unordered || a > b;
  case Geu:
    return unordered || a >= b;
  case Num:
    return !unordered;
  case Nan:
    return unordered;
  }
  return false;
}

/// The operation that combines a comparison's result with a predicate (.and, .or, .xor).
enum Combine : uint8_t { NoCombine, And, Or, Xor };
constexpr uint8_t kFtz = 4, kNegated = 8;

Mask combine(const Op &op, Mask result, Mask other) {
  switch (Combine(op.flags & 3)) {
  case And:
    return result & other;
  case Or:
    return result | other;
  case Xor:
    return result ^ other;
  case NoCombine:
    return result;
  }
  return result;
}

Mask otherOf(Warp &warp, const Op &op) {
  if (!op.c)
    return 0;
  Mask other = warp.predicate(op.c);
  return op.flags & kNegated ? ~other : other;
}

template <class T, Comparison C>
Mask compareLanes(Warp &warp, const Op &op, Mask mask) {
  const T *a = warp.values<T>(op.a);
  const T *b = warp.values<T>(op.b);
  bool ftz = op.flags & kFtz;
  Mask result = 0;
  if (mask == kAllLanes)
    for (unsigned lane = 0; lane < kLanes; ++lane)
      result |= Mask(compare<C>(flush(a[lane], ftz), flush(b[lane], ftz))) << lane;
  else
    forLanes(mask, [&](unsigned lane) {
      result |= Mask(compare<C>(flush(a[lane], ftz), flush(b[lane], ftz))) << lane;
    });
  return result;
}

/// d|e = (a cmp b) op c; e has the comparison negated.
template <class T, Comparison C>
void setPredicate(Warp &warp, const Op &op, Mask mask) {
  Mask result = compareLanes<T, C>(warp, op, mask);
  Mask other = otherOf(warp, op);
  Mask first = combine(op, result, other), second = combine(op, ~result, other);
  Mask &d = warp.predicate(op.d);
  d = (d & ~mask) | (first & mask);
  if (op.e) {
    Mask &e = warp.predicate(op.e);
    e = (e & ~mask) | (second & mask);
  }
}

/// set: all ones or 1.0 in a register instead of a predicate.
template <class T, Comparison C, class R>
void setRegister(Warp &warp, const Op &op, Mask mask) {
  Mask result = combine(op, compareLanes<T, C>(warp, op, mask), otherOf(warp, op));
  R *d = warp.values<R>(op.d);
  R one = R(op.immediate);
  forIndependentLanes(mask, [=](unsigned lane) { d[lane] = result >> lane & 1 ? one : R(0); });
}

template <class T, Comparison C>
Handler handlerOf(unsigned resultBytes) {
  if (resultBytes == 0)
    return &setPredicate<T, C>;
  if (resultBytes == 2)
    return &setRegister<T, C, uint16_t>;
  return &setRegister<T, C, uint32_t>;
}

template <class T>
Handler forComparison(Decoder &decoder, Comparison comparison, unsigned resultBytes) {
  switch (comparison) {
  case Eq:
    return handlerOf<T, Eq>(resultBytes);
  case Ne:
    return handlerOf<T, Ne>(resultBytes);
  case Lt:
  case Lo:
    return handlerOf<T, Lt>(resultBytes);
  case Le:
  case Ls:
    return handlerOf<T, Le>(resultBytes);
  case Gt:
  case Hi:
    return handlerOf<T, Gt>(resultBytes);
  case Ge:
  case Hs:
    return handlerOf<T, Ge>(resultBytes);
  default:
    break;
  }
  if constexpr (!kIsInteger<T>) {
    switch (comparison) {
    case Equ:
      return handlerOf<T, Equ>(resultBytes);
    case Neu:
      return handlerOf<T, Neu>(resultBytes);
    case Ltu:
      return handlerOf<T, Ltu>(resultBytes);
    case Leu:
      return handlerOf<T, Leu>(resultBytes);
    case Gtu:
      return handlerOf<T, Gtu>(resultBytes);
    case Geu:
      return handlerOf<T, Geu>(resultBytes);
    case Num:
      return handlerOf<T, Num>(resultBytes);
    default:
      return handlerOf<T, Nan>(resultBytes);
    }
  }
  decoder.fail("this comparison is for floating-point types");
}

Handler forType(Decoder &decoder, Type type, Comparison comparison, unsigned resultBytes) {
  switch (type) {
  case Type::S16:
    return forComparison<int16_t>(decoder, comparison, resultBytes);
  case Type::S32:
    return forComparison<int32_t>(decoder, comparison, resultBytes);
  case Type::S64:
    return forComparison<int64_t>(decoder, comparison, resultBytes);
  case Type::B16:
  case Type::U16:
    return forComparison<uint16_t>(decoder, comparison, resultBytes);
  case Type::B32:
  case Type::U32:
    return forComparison<uint32_t>(decoder, comparison, resultBytes);
  case Type::B64:
  case Type::U64:
    return forComparison<uint64_t>(decoder, comparison, resultBytes);
  case Type::F32:
    return forComparison<float>(decoder, comparison, resultBytes);
  case Type::F64:
    return forComparison<double>(decoder, comparison, resultBytes);
  case Type::F16:
    return forComparison<F16Value>(decoder, comparison, resultBytes);
  case Type::BF16:
    return forComparison<BF16Value>(decoder, comparison, resultBytes);
  default:
    decoder.fail("." + std::string(ptx::name(type)) + " cannot be compared");
  }
}

/// With .ftz, values of `type` are compared.
void requireFlushable(Decoder &decoder, Type type) {
  if (decoder.op().flags & kFtz && type != Type::F32 && type != Type::F16 && type != Type::F16x2)
    decoder.fail(".ftz is for .f32, .f16 and .f16x2");
}

void requireComparable(Decoder &decoder, Comparison comparison, Type type) {
  if (isBits(type) && comparison != Eq && comparison != Ne)
    decoder.fail("bits without a type have no order");
  if (comparison >= Lo && comparison <= Hs && type != Type::U16 && type != Type::U32 && type != Type::U64)
    decoder.fail("this comparison is for unsigned types");
  requireFlushable(decoder, type);
}

/// .and and the predicate after the operands.
void decodeCombine(Decoder &decoder, int combine) {
  Op &op = decoder.op();
  if (decoder.operands() < 4) {
    if (combine >= 0)
      decoder.fail("the predicate that is combined with is missing");
    return;
  }
  if (combine < 0)
    decoder.fail("one of .and, .or, .xor is missing");
  bool negated = false;
  op.c = decoder.predicate(decoder.operand(3), &negated);
  op.flags |= uint8_t((combine + 1) | (negated ? kNegated : 0));
}

template <class T>
uint16_t half(Warp &warp, Ref ref, unsigned lane, unsigned i) {
  return uint16_t(warp.values<uint32_t>(ref)[lane] >> 16 * i);
}

/// setp and set of pairs: each half on its own. op.immediate is the comparison.
template <class T>
bool compareHalf(Comparison c, uint16_t a, uint16_t b, bool ftz) {
  float x = flush(T{a}, ftz), y = flush(T{b}, ftz);
  bool unordered = x != x || y != y;
  bool results[] = {x == y,
                    !unordered && x != y,
                    x<y, x <= y, x>
                        y,
                    x >= y,
                    x<y, x <= y, x>
                        y,
                    x >= y,
                    unordered || x == y,
                    unordered || x != y,
                    unordered || x < y,
                    unordered || x <= y,
                    unordered || x > y,
                    unordered || x >= y,
                    !unordered,
                    unordered};
  return results[c];
}

template <class T>
void setPairPredicates(Warp &warp, const Op &op, Mask mask) {
  Mask results[2] = {0, 0};
  forLanes(mask, [&](unsigned lane) {
    for (unsigned i = 0; i < 2; ++i)
      results[i] |= Mask(compareHalf<T>(Comparison(op.immediate), half<T>(warp, op.a, lane, i),
                                        half<T>(warp, op.b, lane, i), op.flags & kFtz))
                    << lane;
  });
  Mask other = otherOf(warp, op);
  Ref places[2] = {op.d, op.e};
  for (unsigned i = 0; i < 2; ++i) {
    Mask &d = warp.predicate(places[i]);
    d = (d & ~mask) | (combine(op, results[i], other) & mask);
  }
}

/// op.small is what "true" is in a half: all ones, or 1.0.
template <class T>
void setPair(Warp &warp, const Op &op, Mask mask) {
  Mask other = otherOf(warp, op);
  uint32_t *d = warp.values<uint32_t>(op.d);
  forLanes(mask, [&](unsigned lane) {
    uint32_t out = 0;
    for (unsigned i = 0; i < 2; ++i) {
      bool is = compareHalf<T>(Comparison(op.immediate), half<T>(warp, op.a, lane, i),
                               half<T>(warp, op.b, lane, i), op.flags & kFtz);
      if (combine(op, is, other >> lane & 1) & 1)
        out |= uint32_t(op.small) << 16 * i;
    }
    d[lane] = out;
  });
}

void decodePredicates(Decoder &decoder, Type type) {
  Op &op = decoder.op();
  const Operand &d = decoder.operand(0);
  bool pair = d.kind == Operand::Kind::Pair;
  op.d = decoder.predicateDestination(pair ? d.parts[0] : d);
  if (pair)
    op.e = decoder.predicateDestination(d.parts[1]);
  op.a = decoder.source(1, type);
  op.b = decoder.source(2, type);
}

void decodeSetPredicate(Decoder &decoder) {
  Op &op = decoder.op();
  Comparison comparison = takeComparison(decoder);
  int combine = decoder.takeOneOf({"and", "or", "xor"});
  op.flags = decoder.take("ftz") ? kFtz : 0;
  Type type = decoder.takeType();
  requireComparable(decoder, comparison, type);
  decoder.expectOperands(3, 4);
  decodePredicates(decoder, type);
  decodeCombine(decoder, combine);
  if (type == Type::F16x2 || type == Type::BF16x2) {
    if (!op.e)
      op.e = decoder.scratch(0);
    op.immediate = comparison;
    op.handler = type == Type::F16x2 ? &setPairPredicates<F16Value> : &setPairPredicates<BF16Value>;
    return;
  }
  op.handler = forType(decoder, type, comparison, 0);
}

/// Whether set makes a `result` of a comparison of `type` (PTX ISA 9.7.6.1, 9.7.7.1).
bool canSet(Type result, Type type) {
  const bool isPair = type == Type::F16x2 || type == Type::BF16x2;
  const bool isHalf = type == Type::F16 || type == Type::BF16;
  switch (result) {
  case Type::U32:
  case Type::S32:
    return true;
  case Type::U16:
  case Type::S16:
    return isHalf;
  case Type::F32:
    return !isHalf && !isPair;
  case Type::F16:
    return !isPair && type != Type::BF16;
  case Type::BF16:
    return !isPair;
  case Type::F16x2:
  case Type::BF16x2:
    return type == result;
  default:
    return false;
  }
}

void decodeSet(Decoder &decoder) {
  Op &op = decoder.op();
  Comparison comparison = takeComparison(decoder);
  int combine = decoder.takeOneOf({"and", "or", "xor"});
  op.flags = decoder.take("ftz") ? kFtz : 0;
  Type result = decoder.takeType();
  decoder.expectOperands(3, 4);
  op.d = decoder.destination(0, result);
  if (laneBytes(result) != 2 && laneBytes(result) != 4)
    decoder.fail("the result has 16 or 32 bits");
  Type type = decoder.takeType();
  if (!canSet(result, type))
    decoder.fail("no ." + std::string(ptx::name(result)) + " is set by a comparison of ." + ptx::name(type));
  requireComparable(decoder, comparison, type);
  op.a = decoder.source(1, type);
  op.b = decoder.source(2, type);
  decodeCombine(decoder, combine);
  if (type == Type::F16x2 || type == Type::BF16x2) {
    if (laneBytes(result) != 4)
      decoder.fail("the result of a pair has 32 bits");
    op.immediate = comparison;
    op.small = result == Type::F16x2 ? 0x3C00 : result == Type::BF16x2 ? 0x3F80 : 0xFFFF;
    op.handler = type == Type::F16x2 ? &setPair<F16Value> : &setPair<BF16Value>;
    return;
  }
  op.immediate = result == Type::F32    ? 0x3F800000
                 : result == Type::F16  ? 0x3C00
                 : result == Type::BF16 ? 0x3F80
                                        : -1;
  op.handler = forType(decoder, type, comparison, laneBytes(result));
}

template <class T>
void select(Warp &warp, const Op &op, Mask mask) {
  T *d = warp.values<T>(op.d);
  const T *a = warp.values<T>(op.a);
  const T *b = warp.values<T>(op.b);
  Mask p = warp.predicate(op.c);
  forIndependentLanes(mask, [=](unsigned lane) { d[lane] = p >> lane & 1 ? a[lane] : b[lane]; });
}

void decodeSelect(Decoder &decoder) {
  Type type = decoder.takeType();
  decoder.expectOperands(4);
  Op &op = decoder.op();
  op.d = decoder.destination(0, type);
  op.a = decoder.source(1, type);
  op.b = decoder.source(2, type);
  bool negated = false;
  op.c = decoder.predicate(decoder.operand(3), &negated);
  if (negated)
    std::swap(op.a, op.b);
  op.handler = forBits(decoder, type, [](auto v) -> Handler { return &select<decltype(v)>; });
}

/// slct: a where c >= 0; -0.0 counts as such, NaN does not.
template <class T, class C>
void selectBySign(Warp &warp, const Op &op, Mask mask) {
  T *d = warp.values<T>(op.d);
  const T *a = warp.values<T>(op.a);
  const T *b = warp.values<T>(op.b);
  const C *c = warp.values<C>(op.c);
  bool ftz = op.flags & kFtz;
  forIndependentLanes(mask, [=](unsigned lane) { d[lane] = flush(c[lane], ftz) >= 0 ? a[lane] : b[lane]; });
}

void decodeSelectBySign(Decoder &decoder) {
  Op &op = decoder.op();
  op.flags = decoder.take("ftz") ? kFtz : 0;
  Type type = decoder.takeType(), sign = decoder.takeType();
  decoder.expectOperands(4);
  op.d = decoder.destination(0, type);
  op.a = decoder.source(1, type);
  op.b = decoder.source(2, type);
  op.c = decoder.source(3, sign);
  if (sign != Type::S32 && sign != Type::F32)
    decoder.fail("the third source is .s32 or .f32");
  requireFlushable(decoder, sign);
  op.handler = forBits(decoder, type, [sign](auto v) -> Handler {
    using T = decltype(v);
    return sign == Type::S32 ? &selectBySign<T, int32_t> : &selectBySign<T, float>;
  });
}

} // namespace

FamilyList fp8emu::compareInstructions() {
  return {
      {"setp", decodeSetPredicate}, {"set", decodeSet}, {"selp", decodeSelect}, {"slct", decodeSelectBySign}};
}
