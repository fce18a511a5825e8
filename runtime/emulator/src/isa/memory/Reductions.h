// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The results of atomic operations (PTX ISA 9.7.13.5) from the value in memory and an operand,
// and reductions of arrays by the bulk copy engine (PTX ISA 9.7.9.25.4.2).

#ifndef FP8EMU_ISA_MEMORY_REDUCTIONS_H
#define FP8EMU_ISA_MEMORY_REDUCTIONS_H

#include "num/Half.h"
#include "ptx/Ast.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>

namespace fp8emu {

template <size_t bytes>
struct BitsOf;
template <>
struct BitsOf<2> {
  using type = uint16_t;
};
template <>
struct BitsOf<4> {
  using type = uint32_t;
};
template <>
struct BitsOf<8> {
  using type = uint64_t;
};

/// Replaces the T at `memory` by f of it, and returns what was there.
template <class T, class F>
T update(uint8_t *memory, F f) {
  if constexpr (sizeof(T) == 16) {
    // Few hosts have an atomic access this wide.
    static std::mutex mutex;
    std::lock_guard<std::mutex> lock(mutex);
    T old;
    std::memcpy(&old, memory, sizeof old);
    T value = f(old);
    std::memcpy(memory, &value, sizeof value);
    return old;
  } else {
    using Bits = typename BitsOf<sizeof(T)>::type;
    auto *place = reinterpret_cast<Bits *>(memory);
    Bits bits = __atomic_load_n(place, __ATOMIC_RELAXED), changed;
    T old;
    do {
      std::memcpy(&old, &bits, sizeof old);
      T value = f(old);
      std::memcpy(&changed, &value, sizeof changed);
    } while (!__atomic_compare_exchange_n(place, &bits, changed, /*weak=*/true, __ATOMIC_SEQ_CST,
                                          __ATOMIC_RELAXED));
    return old;
  }
}

// Operations: f(what is there, operand).

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return T(a + b);
  }
};
/// Of f32 in shared memory, and of f64.
struct FloatAdd {
  template <class T>
  T operator()(T a, T b) const {
    return num::add(a, b);
  }
};
/// Of f32 in global memory: subnormal operands and results become zero.
struct FlushingAdd {
  float operator()(float a, float b) const {
    return num::add(a, b, num::Rounding::NearestEven, /*ftz=*/true);
  }
};
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return std::min(a, b);
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return std::max(a, b);
  }
};
struct And {
  template <class T>
  T operator()(T a, T b) const {
    return a & b;
  }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return a | b;
  }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return a ^ b;
  }
};
struct Exchange {
  template <class T>
  T operator()(T, T b) const {
    return b;
  }
};
/// 0 to b and again.
struct Increment {
  uint32_t operator()(uint32_t a, uint32_t b) const { return a >= b ? 0 : a + 1; }
};
struct Decrement {
  uint32_t operator()(uint32_t a, uint32_t b) const { return a == 0 || a > b ? b : a - 1; }
};

template <const num::Format &format>
struct HalfAdd {
  uint16_t operator()(uint16_t a, uint16_t b) const { return num::add<format>(a, b); }
};
template <const num::Format &format>
struct HalfMin {
  uint16_t operator()(uint16_t a, uint16_t b) const { return num::min<format>(a, b); }
};
template <const num::Format &format>
struct HalfMax {
  uint16_t operator()(uint16_t a, uint16_t b) const { return num::max<format>(a, b); }
};
enum class ReductionKind : uint8_t { Add, Min, Max, Inc, Dec, And, Or, Xor };
const char *name(ReductionKind kind);

/// Combines `bytes` of elements at `from` with those at `to`, each one atomically.
using Reduction = void (*)(uint8_t *to, const uint8_t *from, unsigned bytes);

/// The reduction of a kind on elements of a type; null where PTX has none.
Reduction findReduction(ReductionKind kind, ptx::Type type);
/// Whether shared memory has the reduction too.
bool reducesInShared(ReductionKind kind, ptx::Type type);

} // namespace fp8emu

#endif // FP8EMU_ISA_MEMORY_REDUCTIONS_H
