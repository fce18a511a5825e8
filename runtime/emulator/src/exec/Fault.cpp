// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The text of faults.

#include "fp8emu/Types.h"

using namespace fp8emu;

const char *fp8emu::describe(FaultKind kind) {
  switch (kind) {
  case FaultKind::OutOfBounds:
    return "out-of-bounds access";
  case FaultKind::Misaligned:
    return "misaligned access";
  case FaultKind::UseAfterFree:
    return "use after free";
  case FaultKind::UninitializedRead:
    return "read of uninitialised memory";
  case FaultKind::ReadOnlyWrite:
    return "write to read-only memory";
  case FaultKind::BarrierDivergence:
    return "barrier divergence";
  case FaultKind::Deadlock:
    return "deadlock";
  case FaultKind::BarrierMisuse:
    return "mbarrier misuse";
  case FaultKind::RegistersInFlight:
    return "register of an asynchronous operation in flight";
  case FaultKind::MissingProxyFence:
    return "missing proxy fence";
  case FaultKind::Race:
    return "data race";
  case FaultKind::AsyncOverwrite:
    return "memory overwritten under an asynchronous operation";
  case FaultKind::IllegalInstruction:
    return "illegal instruction";
  case FaultKind::IllegalOperand:
    return "illegal operand";
  case FaultKind::Trap:
    return "trap";
  case FaultKind::Assertion:
    return "assertion";
  case FaultKind::StackOverflow:
    return "stack overflow";
  case FaultKind::Timeout:
    return "no end in sight";
  case FaultKind::TensorMemoryLeak:
    return "tensor memory leak";
  }
  return "fault";
}

static std::string triple(const std::array<uint32_t, 3> &v) {
  return "(" + std::to_string(v[0]) + "," + std::to_string(v[1]) + "," + std::to_string(v[2]) + ")";
}

std::string Fault::text() const {
  std::string out = std::string(describe(kind)) + ": " + message;
  if (!instruction.empty())
    out += ", by " + instruction;
  if (!kernel.empty())
    out += " in " + kernel;
  if (line)
    out += ", PTX line " + std::to_string(line);
  if (!source.empty())
    out += " (" + source + ")";
  out += ", block " + triple(block);
  if (hasThread)
    out += ", thread " + triple(thread);
  return out;
}
