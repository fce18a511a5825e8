// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What goes wrong while a kernel runs, and where.

#ifndef FP8EMU_EXEC_FAULT_H
#define FP8EMU_EXEC_FAULT_H

#include <array>
#include <cstdint>
#include <string>

namespace fp8emu {

/// Kinds of faults. Each has one error code of the driver (driver/Errors.cpp) and
/// one name in reports.
enum class FaultKind : uint8_t {
  OutOfBounds,
  Misaligned,
  UseAfterFree,
  UninitializedRead,
  ReadOnlyWrite,
  BarrierDivergence,
  Deadlock,
  BarrierMisuse,
  RegistersInFlight,
  MissingProxyFence,
  Race,
  AsyncOverwrite,
  IllegalInstruction,
  IllegalOperand,
  Trap,
  Assertion,
  StackOverflow,
  Timeout,
  TensorMemoryLeak,
};

/// As in "out-of-bounds access".
const char *describe(FaultKind kind);

/// A fault: what, in words, and where. The words say what was done and what would
/// have been right; places are added when it is reported.
struct Fault {
  FaultKind kind;
  std::string message;
  std::string kernel;
  /// Of the program's op.
  uint32_t pc = 0;
  /// Of the PTX text; 0 where unknown.
  uint32_t line = 0;
  /// As in "gemm.cu:42", from .loc; empty where there is none.
  std::string source;
  /// The instruction, as in "st.global.b32".
  std::string instruction;
  std::array<uint32_t, 3> block{}, thread{};
  bool hasThread = false;

  /// All of it in one line.
  std::string text() const;
};

} // namespace fp8emu

#endif // FP8EMU_EXEC_FAULT_H
