// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of the reductions of arrays.

#include "Reductions.h"

using namespace fp8emu;
using ptx::Type;

namespace {

template <class T, class F>
void reduceElements(uint8_t *to, const uint8_t *from, unsigned bytes) {
  for (unsigned i = 0; i < bytes; i += sizeof(T)) {
    T operand;
    std::memcpy(&operand, from + i, sizeof operand);
    update<T>(to + i, [operand](T old) { return F()(old, operand); });
  }
}

template <class T>
Reduction ofIntegers(ReductionKind kind) {
  switch (kind) {
  case ReductionKind::Add:
    // Signed 64-bit integers have .u64's.
    return std::is_same_v<T, int64_t> ? nullptr : &reduceElements<std::make_unsigned_t<T>, fp8emu::Add>;
  case ReductionKind::Min:
    return &reduceElements<T, fp8emu::Min>;
  case ReductionKind::Max:
    return &reduceElements<T, fp8emu::Max>;
  default:
    return nullptr;
  }
}

template <class T>
Reduction ofBits(ReductionKind kind) {
  switch (kind) {
  case ReductionKind::And:
    return &reduceElements<T, fp8emu::And>;
  case ReductionKind::Or:
    return &reduceElements<T, fp8emu::Or>;
  case ReductionKind::Xor:
    return &reduceElements<T, fp8emu::Xor>;
  default:
    return nullptr;
  }
}

/// Subnormal numbers are kept: .noftz.
template <const num::Format &format>
Reduction ofHalves(ReductionKind kind) {
  switch (kind) {
  case ReductionKind::Add:
    return &reduceElements<uint16_t, HalfAdd<format>>;
  case ReductionKind::Min:
    return &reduceElements<uint16_t, HalfMin<format>>;
  case ReductionKind::Max:
    return &reduceElements<uint16_t, HalfMax<format>>;
  default:
    return nullptr;
  }
}

} // namespace

const char *fp8emu::name(ReductionKind kind) {
  constexpr const char *names[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
  return names[unsigned(kind)];
}

Reduction fp8emu::findReduction(ReductionKind kind, Type type) {
  const bool adds = kind == ReductionKind::Add;
  switch (type) {
  case Type::U32:
    if (kind == ReductionKind::Inc)
      return &reduceElements<uint32_t, Increment>;
    if (kind == ReductionKind::Dec)
      return &reduceElements<uint32_t, Decrement>;
    return ofIntegers<uint32_t>(kind);
  case Type::S32:
    return ofIntegers<int32_t>(kind);
  case Type::U64:
    return ofIntegers<uint64_t>(kind);
  case Type::S64:
    return ofIntegers<int64_t>(kind);
  case Type::B32:
    return ofBits<uint32_t>(kind);
  case Type::B64:
    return ofBits<uint64_t>(kind);
  case Type::F16:
    return ofHalves<num::F16>(kind);
  case Type::BF16:
    return ofHalves<num::BF16>(kind);
  case Type::F32:
    // The unit behind it flushes subnormal numbers (PTX ISA 9.7.9.25.4.2).
    return adds ? &reduceElements<float, FlushingAdd> : nullptr;
  case Type::F64:
    return adds ? &reduceElements<double, FloatAdd> : nullptr;
  default:
    return nullptr;
  }
}

/// Reductions in shared memory are fewer (the table of PTX ISA 9.7.9.25.4.2).
bool fp8emu::reducesInShared(ReductionKind kind, Type type) {
  switch (kind) {
  case ReductionKind::Add:
    return type == Type::U32 || type == Type::S32 || type == Type::U64;
  case ReductionKind::Min:
  case ReductionKind::Max:
    return type == Type::U32 || type == Type::S32;
  default:
    return type == Type::U32 || type == Type::B32;
  }
}
