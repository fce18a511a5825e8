// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Selections: selp and slct (PTX ISA 9.7.6).

#include "Compare.h"
#include "isa/Families.h"

using namespace fp8emu;
using ptx::Type;

namespace {

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

FamilyList fp8emu::selectInstructions() { return {{"selp", decodeSelect}, {"slct", decodeSelectBySign}}; }
