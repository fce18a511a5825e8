// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Comparisons: setp and set (PTX ISA 9.7.6), those of f16 and bf16 (9.7.7) too.

#include "Compare.h"
#include "isa/Families.h"

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

void fp8emu::requireFlushable(Decoder &decoder, Type type) {
  if (decoder.op().flags & kFtz && type != Type::F32 && type != Type::F16 && type != Type::F16x2)
    decoder.fail(".ftz is for .f32, .f16 and .f16x2");
}

namespace {

Comparison takeComparison(Decoder &decoder) {
  return Comparison(decoder.needOneOf({"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ",
                                       "neu", "ltu", "leu", "gtu", "geu", "num", "nan"}));
}

template <class T, Comparison C>
Mask compareLanes(Warp &warp, const Op &op, Mask mask) {
  const T *a = warp.values<T>(op.a);
  const T *b = warp.values<T>(op.b);
  bool ftz = op.flags & kFtz;
  Mask result = 0;
  if (mask == kAllLanes)
    for (unsigned lane = 0; lane < kLanes; ++lane)
      result |= Mask(compare(C, flush(a[lane], ftz), flush(b[lane], ftz))) << lane;
  else
    forLanes(mask, [&](unsigned lane) {
      result |= Mask(compare(C, flush(a[lane], ftz), flush(b[lane], ftz))) << lane;
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
    op.handler = pairPredicatesHandler(type);
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
    op.handler = pairHandler(type);
    return;
  }
  op.immediate = result == Type::F32    ? 0x3F800000
                 : result == Type::F16  ? 0x3C00
                 : result == Type::BF16 ? 0x3F80
                                        : -1;
  op.handler = forType(decoder, type, comparison, laneBytes(result));
}

} // namespace

FamilyList fp8emu::compareInstructions() { return {{"setp", decodeSetPredicate}, {"set", decodeSet}}; }
