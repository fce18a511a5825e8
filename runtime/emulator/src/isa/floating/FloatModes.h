// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Modifiers of floating-point instructions that change what is computed, kept in
// Op::flags, and handlers for function objects that take them as their last argument.
// Without any, and with .ftz alone, they are constants to the compiler, so that it
// vectorises the lanes of what kernels consist of; else the handler reads them.

#ifndef FP8EMU_ISA_FLOATING_FLOATMODES_H
#define FP8EMU_ISA_FLOATING_FLOATMODES_H

#include "isa/Lanes.h"
#include "num/Half.h"

namespace fp8emu {

/// Of arithmetic in f32 and f64.
struct FloatMode {
  bool ftz = false;
  bool sat = false;
  num::Rounding rounding = num::Rounding::NearestEven;
};

inline uint8_t packMode(const FloatMode &m) {
  return uint8_t(m.ftz | m.sat << 1 | unsigned(m.rounding) << 2);
}
inline uint8_t packMode(const num::HalfMod &m) {
  return uint8_t(m.ftz | m.sat << 1 | m.relu << 2 | m.oob << 3);
}
inline uint8_t packMode(const num::MinMax &m) {
  return uint8_t(m.ftz | m.nan << 1 | m.abs << 2 | m.xorsign << 3);
}

template <class Mode>
constexpr Mode unpackMode(uint8_t flags) {
  if constexpr (std::is_same<Mode, FloatMode>::value)
    return {bool(flags & 1), bool(flags & 2), num::Rounding(flags >> 2)};
  else
    return {bool(flags & 1), bool(flags & 2), bool(flags & 4), bool(flags & 8)};
}

constexpr uint8_t kPlain = 0, kFtzOnly = 1;

/// `F` with a mode that the compiler knows.
template <class F, class Mode, uint8_t flags>
struct Fixed {
  template <class... V>
  auto operator()(V... v) const {
    return F()(v..., unpackMode<Mode>(flags));
  }
};

template <class Mode, class F, class R, class A>
void unaryModed(Warp &warp, const Op &op, Mask mask) {
  R *d = warp.values<R>(op.d);
  const A *a = warp.values<A>(op.a);
  Mode mode = unpackMode<Mode>(op.flags);
  forLanes(mask, [=](unsigned lane) { d[lane] = F()(a[lane], mode); });
}

template <class Mode, class F, class R, class A, class B>
void binaryModed(Warp &warp, const Op &op, Mask mask) {
  R *d = warp.values<R>(op.d);
  const A *a = warp.values<A>(op.a);
  const B *b = warp.values<B>(op.b);
  Mode mode = unpackMode<Mode>(op.flags);
  forLanes(mask, [=](unsigned lane) { d[lane] = F()(a[lane], b[lane], mode); });
}

template <class Mode, class F, class R, class A, class B, class C>
void ternaryModed(Warp &warp, const Op &op, Mask mask) {
  R *d = warp.values<R>(op.d);
  const A *a = warp.values<A>(op.a);
  const B *b = warp.values<B>(op.b);
  const C *c = warp.values<C>(op.c);
  Mode mode = unpackMode<Mode>(op.flags);
  forLanes(mask, [=](unsigned lane) { d[lane] = F()(a[lane], b[lane], c[lane], mode); });
}

/// Puts the mode into the op and chooses its handler: by the number of sources.
template <class F, class R, class A, class Mode>
void setModed(Op &op, const Mode &mode) {
  op.flags = packMode(mode);
  op.handler = op.flags == kPlain     ? &unaryLanes<R, A, Fixed<F, Mode, kPlain>>
               : op.flags == kFtzOnly ? &unaryLanes<R, A, Fixed<F, Mode, kFtzOnly>>
                                      : &unaryModed<Mode, F, R, A>;
}
template <class F, class R, class A, class B, class Mode>
void setModed(Op &op, const Mode &mode) {
  op.flags = packMode(mode);
  op.handler = op.flags == kPlain     ? &binaryLanes<R, A, B, Fixed<F, Mode, kPlain>>
               : op.flags == kFtzOnly ? &binaryLanes<R, A, B, Fixed<F, Mode, kFtzOnly>>
                                      : &binaryModed<Mode, F, R, A, B>;
}
template <class F, class R, class A, class B, class C, class Mode>
void setModed(Op &op, const Mode &mode) {
  op.flags = packMode(mode);
  op.handler = op.flags == kPlain     ? &ternaryLanes<R, A, B, C, Fixed<F, Mode, kPlain>>
               : op.flags == kFtzOnly ? &ternaryLanes<R, A, B, C, Fixed<F, Mode, kFtzOnly>>
                                      : &ternaryModed<Mode, F, R, A, B, C>;
}

} // namespace fp8emu

#endif // FP8EMU_ISA_FLOATING_FLOATMODES_H
