// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decoded instructions. Each has a handler, which executes it for the 32 lanes of a warp,
// and the places of its operands. The decoder (isa/) makes them, a warp runs them.

#ifndef FP8EMU_EXEC_OP_H
#define FP8EMU_EXEC_OP_H

#include <cstdint>

namespace fp8emu {

class Warp;
struct Op;

constexpr unsigned kLanes = 32;

/// A set of lanes, lane i as bit i.
using Mask = uint32_t;
constexpr Mask kAllLanes = ~Mask(0);

/// Executes an instruction for the lanes of `mask`, which is never empty.
using Handler = void (*)(Warp &warp, const Op &op, Mask mask);

/// Where an operand's 32 values lie, one after the other: an offset in bytes into
/// one of a warp's memories. Predicates are one Mask.
struct Ref {
  enum Memory : uint32_t {
    /// Registers of the running function's frame.
    Registers,
    /// Immediate values, the same in all lanes: of the function, never written.
    Constants,
    /// Special registers and addresses of variables in shared memory, as the
    /// warp's block found them when it began.
    Specials,
    None
  };
  uint32_t memory : 2;
  uint32_t offset : 30;

  Ref() : memory(None), offset(0) {}
  Ref(Memory memory, uint32_t offset) : memory(memory), offset(offset) {}
  explicit operator bool() const { return memory != None; }
};

/// A decoded instruction. A handler and the decoder that chose it agree on the meaning of
/// the fields d, a, b, c and the rest.
struct Op {
  Handler handler = nullptr;
  /// The predicate that guards the instruction, and whether its negation does.
  Ref guard;
  bool guardNegated = false;
  /// Free for handlers: small numbers known when decoded.
  uint8_t flags = 0;
  uint16_t small = 0;
  Ref d, a, b, c, e;
  /// More operands than d to e: `count` of them, in the function's list at `list`.
  uint32_t list = 0;
  uint32_t count = 0;
  /// Whether the handler itself checks registers of products in flight (Warp.h).
  bool mayTouchInFlight = false;
  /// How accesses of the instruction to memory are ordered, for the checks
  /// (check/Ordering.h).
  uint8_t ordering = 0;
  int64_t immediate = 0;
  /// Data too large for the fields above, owned by the function.
  const void *payload = nullptr;
};

} // namespace fp8emu

#endif // FP8EMU_EXEC_OP_H
