// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many registers of the chip a kernel takes. PTX has any number of them; an assembler
// gives each value one of at most 255 while the value is live. The most that are live at once
// is an estimate of what an assembler takes, mostly from below: an assembler also needs
// registers to overlap loads with arithmetic and to keep neighbours of vectors together.

#ifndef FP8EMU_ISA_REGISTERS_H
#define FP8EMU_ISA_REGISTERS_H

#include "exec/Program.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fp8emu {

/// The registers that an instruction reads and writes: indices into
/// ptx::Function::registers.
struct RegisterAccess {
  std::vector<uint32_t> read, written;
};

/// The registers of 32 bits that a function needs. A 64-bit value takes two, a 128-bit value
/// four, a 16-bit value a half; predicates have registers of their own.
struct RegisterNeed {
  /// The most that are live between two instructions.
  unsigned live = 0;
  struct Call {
    /// Empty for a call through a pointer.
    std::string callee;
    /// Registers that are live before the call: all but those that it passes stay live across
    /// it.
    unsigned live = 0;
  };
  std::vector<Call> calls;
};

/// `accesses` has an entry for each of the function's instructions.
RegisterNeed findRegisterNeed(const ptx::Function &function, const std::vector<RegisterAccess> &accesses);

/// Sets FunctionCode::registers and ::setmaxnreg of all kernels; `needs` is in the order of
/// the program's functions. Limits are as ptxas has them: .maxnreg, 65536 by .maxntid or
/// .reqntid and .minnctapersm, and for kernels with none of those `limit`, which is
/// CU_JIT_MAX_REGISTERS (0 for none). A kernel whose setmaxnreg is obeyed begins with the
/// limit, or with the most that it asks for where that is less.
void assignRegisters(Program &program, const std::vector<RegisterNeed> &needs, unsigned limit);

} // namespace fp8emu

#endif // FP8EMU_ISA_REGISTERS_H
