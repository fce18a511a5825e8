// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Common parts of the files that decode comparisons and selections.

#ifndef FP8EMU_ISA_LOGIC_COMPARE_H
#define FP8EMU_ISA_LOGIC_COMPARE_H

#include "isa/Decoder.h"
#include "isa/Lanes.h"
#include "num/Format.h"

#include <cmath>

namespace fp8emu {

enum Comparison { Eq, Ne, Lt, Le, Gt, Ge, Lo, Ls, Hi, Hs, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan };

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

/// Whether `a` and `b` compare so; inlined where the comparison is known.
template <class V>
inline bool compare(Comparison comparison, V a, V b) {
  bool unordered = isNaN(a) || isNaN(b);
  switch (comparison) {
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

/// The result of a comparison, combined with the predicate `other`.
inline Mask combine(const Op &op, Mask result, Mask other) {
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

/// The predicate that is combined with.
inline Mask otherOf(Warp &warp, const Op &op) {
  if (!op.c)
    return 0;
  Mask other = warp.predicate(op.c);
  return op.flags & kNegated ? ~other : other;
}

/// With .ftz, values of `type` are compared.
void requireFlushable(Decoder &decoder, ptx::Type type);

/// setp and set of pairs, f16x2 or bf16x2. op.immediate is the comparison, and op.small what "true" is in a
/// half of the result of set.
Handler pairPredicatesHandler(ptx::Type type);
Handler pairHandler(ptx::Type type);

} // namespace fp8emu

#endif // FP8EMU_ISA_LOGIC_COMPARE_H
