// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions: loops over blocks that fit the processor's first cache, which compilers vectorize.

#include "Reduce.h"

#include "fp8rt/communicator.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

using namespace fp8rt;
using namespace fp8rt::collectives;

namespace {

/// Elements that are combined before the next ones.
constexpr uint64_t kBlock = 1024;

float bitsToFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

uint32_t floatToBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

/// Each type: what memory holds, what is summed, and the way there and back.
template <typename T>
struct Plain {
  using Stored = T;
  using Sum = T;
  static Sum load(Stored stored) { return stored; }
  static Stored store(Sum sum) { return sum; }
};

struct BF16 {
  using Stored = uint16_t;
  using Sum = float;
  static Sum load(Stored stored) { return bitsToFloat(static_cast<uint32_t>(stored) << 16); }
  static Stored store(Sum sum) {
    uint32_t bits = floatToBits(sum);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return static_cast<Stored>(sum != sum ? bits >> 16 | 0x40 : rounded);
  }
};

struct F16 {
  using Stored = uint16_t;
  using Sum = float;
  static Sum load(Stored stored) {
    uint32_t sign = static_cast<uint32_t>(stored & 0x8000) << 16, rest = stored & 0x7fff;
    // The multiplication by 2^112 moves the exponent, and makes denormals of f16 normal.
    uint32_t finite = floatToBits(bitsToFloat(rest << 13) * 0x1p112f);
    return bitsToFloat(sign | (rest >= 0x7c00 ? rest << 13 | 0x7f800000 : finite));
  }
  static Stored store(Sum sum) {
    uint32_t bits = floatToBits(sum), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    // Adding 1/2 lets the processor round at the last place of a denormal of f16.
    uint32_t denormal = floatToBits(bitsToFloat(rest) + 0.5f) - 0x3f000000;
    uint32_t normal = (rest + 0xfff + (rest >> 13 & 1) - (112u << 23)) >> 13;
    uint32_t finite = rest < 0x38800000 ? denormal : rest >= 0x477ff000 ? 0x7c00 : normal;
    return static_cast<Stored>(sign | (rest > 0x7f800000 ? 0x7e00 | (rest >> 13 & 0x3ff) : finite));
  }
};

/// False for integers; without a branch, so that loops become vectors.
template <typename Sum>
bool isNaN(Sum value) {
  return value != value; // NOLINT(misc-redundant-expression)
}

template <typename Sum>
struct Add {
  static Sum apply(Sum a, Sum b) { return a + b; }
};
template <typename Sum>
struct Multiply {
  static Sum apply(Sum a, Sum b) { return a * b; }
};
template <typename Sum>
struct Max {
  static Sum apply(Sum a, Sum b) { return ((b > a) | isNaN(b)) ? b : a; }
};
template <typename Sum>
struct Min {
  static Sum apply(Sum a, Sum b) { return ((b < a) | isNaN(b)) ? b : a; }
};

/// The loops of reduceAll, compiled for the processor of whoever calls them.
template <typename Type, template <typename> class Op>
[[gnu::always_inline]] inline void reduceBlocks(const std::vector<const void *> &sources, void *target,
                                                uint64_t count, bool isMean) {
  using Stored = typename Type::Stored;
  using Sum = typename Type::Sum;
  // Two of them in turn: clang makes a choice between an element and its old value a masked store, which is
  // five times as slow on AMD's processors.
  Sum sums[2][kBlock];
  for (uint64_t begin = 0; begin < count; begin += kBlock) {
    uint64_t size = std::min(kBlock, count - begin);
    const Stored *first = static_cast<const Stored *>(sources[0]) + begin;
    for (uint64_t i = 0; i < size; ++i)
      sums[0][i] = Type::load(first[i]);
    for (size_t source = 1; source < sources.size(); ++source) {
      const Stored *next = static_cast<const Stored *>(sources[source]) + begin;
      const Sum *before = sums[(source - 1) & 1];
      Sum *after = sums[source & 1];
      for (uint64_t i = 0; i < size; ++i)
        after[i] = Op<Sum>::apply(before[i], Type::load(next[i]));
    }
    const Sum *all = sums[(sources.size() - 1) & 1];
    Stored *out = static_cast<Stored *>(target) + begin;
    Sum factor = isMean ? Sum(1) / static_cast<Sum>(sources.size()) : Sum(1); // by which nothing changes
    for (uint64_t i = 0; i < size; ++i)
      out[i] = Type::store(std::is_integral_v<Sum> ? all[i] : all[i] * factor);
  }
}

#ifdef __x86_64__
template <typename Type, template <typename> class Op>
[[gnu::target("avx2")]] void reduceWithAvx2(const std::vector<const void *> &sources, void *target,
                                            uint64_t count, bool isMean) {
  reduceBlocks<Type, Op>(sources, target, count, isMean);
}
#endif

template <typename Type, template <typename> class Op>
void reduceAll(const std::vector<const void *> &sources, void *target, uint64_t count, bool isMean) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) // the runtime itself is compiled for any x86-64
    return reduceWithAvx2<Type, Op>(sources, target, count, isMean);
#endif
  reduceBlocks<Type, Op>(sources, target, count, isMean);
}

/// Signed and unsigned sums and products have the same bits, and those of unsigned numbers may wrap.
template <typename Signed, typename Unsigned>
void reduceIntegers(uint32_t reduction, const std::vector<const void *> &sources, void *target,
                    uint64_t count) {
  switch (reduction) {
  case FP8RT_MAX:
    return reduceAll<Plain<Signed>, Max>(sources, target, count, false);
  case FP8RT_MIN:
    return reduceAll<Plain<Signed>, Min>(sources, target, count, false);
  case FP8RT_PRODUCT:
    return reduceAll<Plain<Unsigned>, Multiply>(sources, target, count, false);
  default:
    return reduceAll<Plain<Unsigned>, Add>(sources, target, count, false);
  }
}

template <typename Type>
void reduceFloats(uint32_t reduction, const std::vector<const void *> &sources, void *target,
                  uint64_t count) {
  switch (reduction) {
  case FP8RT_MAX:
    return reduceAll<Type, Max>(sources, target, count, false);
  case FP8RT_MIN:
    return reduceAll<Type, Min>(sources, target, count, false);
  case FP8RT_PRODUCT:
    return reduceAll<Type, Multiply>(sources, target, count, false);
  default:
    return reduceAll<Type, Add>(sources, target, count, reduction == FP8RT_MEAN);
  }
}

} // namespace

void collectives::reduce(uint32_t type, uint32_t reduction, const std::vector<const void *> &sources,
                         void *target, uint64_t count) {
  switch (type) {
  case FP8RT_INT8:
    return reduceIntegers<int8_t, uint8_t>(reduction, sources, target, count);
  case FP8RT_INT32:
    return reduceIntegers<int32_t, uint32_t>(reduction, sources, target, count);
  case FP8RT_INT64:
    return reduceIntegers<int64_t, uint64_t>(reduction, sources, target, count);
  case FP8RT_F16:
    return reduceFloats<F16>(reduction, sources, target, count);
  case FP8RT_BF16:
    return reduceFloats<BF16>(reduction, sources, target, count);
  case FP8RT_F64:
    return reduceFloats<Plain<double>>(reduction, sources, target, count);
  default:
    return reduceFloats<Plain<float>>(reduction, sources, target, count);
  }
}
