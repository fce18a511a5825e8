// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// setp and set of pairs of f16 and bf16 (PTX ISA 9.7.7).

#include "Compare.h"

using namespace fp8emu;
using ptx::Type;

namespace {

uint16_t half(Warp &warp, Ref ref, unsigned lane, unsigned i) {
  return uint16_t(warp.values<uint32_t>(ref)[lane] >> 16 * i);
}

/// setp and set of pairs: each half on its own. op.immediate is the comparison.
template <class T>
bool compareHalf(const Op &op, uint16_t a, uint16_t b) {
  bool ftz = op.flags & kFtz;
  return compare(Comparison(op.immediate), flush(T{a}, ftz), flush(T{b}, ftz));
}

template <class T>
void setPairPredicates(Warp &warp, const Op &op, Mask mask) {
  Mask results[2] = {0, 0};
  forLanes(mask, [&](unsigned lane) {
    for (unsigned i = 0; i < 2; ++i)
      results[i] |= Mask(compareHalf<T>(op, half(warp, op.a, lane, i), half(warp, op.b, lane, i))) << lane;
  });
  Mask other = otherOf(warp, op);
  Ref places[2] = {op.d, op.e};
  for (unsigned i = 0; i < 2; ++i) {
    Mask &d = warp.predicate(places[i]);
    d = (d & ~mask) | (combine(op, results[i], other) & mask);
  }
}

template <class T>
void setPair(Warp &warp, const Op &op, Mask mask) {
  Mask other = otherOf(warp, op);
  uint32_t *d = warp.values<uint32_t>(op.d);
  forLanes(mask, [&](unsigned lane) {
    uint32_t out = 0;
    for (unsigned i = 0; i < 2; ++i) {
      bool is = compareHalf<T>(op, half(warp, op.a, lane, i), half(warp, op.b, lane, i));
      if (combine(op, is, other >> lane & 1) & 1)
        out |= uint32_t(op.small) << 16 * i;
    }
    d[lane] = out;
  });
}

} // namespace

Handler fp8emu::pairPredicatesHandler(Type type) {
  return type == Type::F16x2 ? &setPairPredicates<F16Value> : &setPairPredicates<BF16Value>;
}

Handler fp8emu::pairHandler(Type type) {
  return type == Type::F16x2 ? &setPair<F16Value> : &setPair<BF16Value>;
}
