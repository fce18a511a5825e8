// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a tree to a program that runs: variables get addresses, functions are decoded.

#ifndef FP8EMU_ISA_BUILD_H
#define FP8EMU_ISA_BUILD_H

#include "Decoder.h"

#include "memory/DeviceMemory.h"

#include <memory>
#include <string>
#include <vector>

namespace fp8emu {

/// Decodes the module and places its variables in `memory`. Throws PtxError: for unknown
/// instructions, names without a definition, no memory left. Threads of
/// kernels get at most `maxRegisters` (CU_JIT_MAX_REGISTERS), 0 for any number.
std::unique_ptr<Program> build(ptx::Module module, DeviceMemory &memory, unsigned maxRegisters = 0);

/// An instruction that `build` would refuse, and why.
struct UnknownInstruction {
  std::string message;
  ptx::Location where;
};
std::vector<UnknownInstruction> findUnknown(const ptx::Module &module);

/// Gives the module's memory back.
void release(Program &program, DeviceMemory &memory);

} // namespace fp8emu

#endif // FP8EMU_ISA_BUILD_H
