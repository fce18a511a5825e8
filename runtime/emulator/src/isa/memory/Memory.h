// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Common parts of all instructions that reach memory: state spaces, memory semantics,
// address operands.

#ifndef FP8EMU_ISA_MEMORY_MEMORY_H
#define FP8EMU_ISA_MEMORY_MEMORY_H

#include "check/Ordering.h"
#include "exec/Access.h"
#include "isa/Decoder.h"

namespace fp8emu {

/// Takes a state space; generic where none is given.
MemorySpace takeSpace(Decoder &decoder);

/// How an access is ordered (PTX ISA 8.5).
enum class Semantics : uint8_t { Weak, Volatile, Relaxed, Acquire, Release, AcquireRelease };
enum class Scope : uint8_t { None, Cta, Cluster, Gpu, Sys };

struct Ordering {
  Semantics semantics = Semantics::Weak;
  Scope scope = Scope::None;
};
Ordering takeOrdering(Decoder &decoder);
/// For the checks: as Op::ordering.
uint8_t orderingBits(const Ordering &ordering);

/// Decodes an address operand for `space`: op.a, op.immediate and, in op.small, the
/// base's bytes and the space, which becomes that of the variable where the frame
/// holds it. `laneAddresses` reads them.
void decodeAddress(Decoder &decoder, const ptx::Operand &operand, MemorySpace space);
MemorySpace spaceOf(const Op &op);
/// Each lane's address.
void laneAddresses(Warp &warp, const Op &op, Mask mask, uint64_t *addresses);

} // namespace fp8emu

#endif // FP8EMU_ISA_MEMORY_MEMORY_H
