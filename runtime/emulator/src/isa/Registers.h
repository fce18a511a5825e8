// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many registers of the chip a kernel takes. PTX has any number of them; an assembler
// gives each value one of at most 255 while it is live. Here none are given: how many are
// live at once is an estimate of what an assembler needs, mostly from below: it also needs
// some to overlap loads with arithmetic and to keep neighbours of vectors together.

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

/// What a function needs, in registers of 32 bits: 64-bit values take two, 128-bit ones
/// four, 16-bit ones a half, predicates none, as they have registers of their own.
struct RegisterNeed {
  /// The most that are live between two instructions.
  unsigned live = 0;
  struct Call {
    /// Empty for a call through a pointer.
    std::string callee;
    /// Registers that are live before it: all but what it passes stays so across it.
    unsigned live = 0;
  };
  std::vector<Call> calls;
};

/// `accesses` has one for each of the function's instructions.
RegisterNeed findRegisterNeed(const ptx::Function &function, const std::vector<RegisterAccess> &accesses);

/// Sets FunctionCode::registers and ::setmaxnreg of all kernels; `needs` is in the order of
/// the program's functions. Limits are as ptxas has them: .maxnreg, 65536 by .maxntid or
/// .reqntid and .minnctapersm, and for kernels with none of those `limit`, which is
/// CU_JIT_MAX_REGISTERS (0 for none). A kernel whose setmaxnreg is obeyed begins with the
/// limit, or with the most that it asks for where that is less.
void assignRegisters(Program &program, const std::vector<RegisterNeed> &needs, unsigned limit);

} // namespace fp8emu

#endif // FP8EMU_ISA_REGISTERS_H
