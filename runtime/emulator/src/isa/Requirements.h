// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The .target and .version that instructions and directives need, in one table. Values do
// not depend on it; it keeps kernels from passing here that ptxas refuses.

#ifndef FP8EMU_ISA_REQUIREMENTS_H
#define FP8EMU_ISA_REQUIREMENTS_H

#include "ptx/Ast.h"

#include <optional>
#include <string>

namespace fp8emu {

/// A need of the instruction that the module does not meet, as in "needs .target sm_90
/// or higher, the module is for sm_89"; nothing where the module meets all of them.
std::optional<std::string> findUnmet(const ptx::Module &module, const ptx::Instruction &instruction);

/// Throws PtxError where the module's .target or a directive of a kernel needs what the module
/// does not offer.
void checkDirectives(const ptx::Module &module);

} // namespace fp8emu

#endif // FP8EMU_ISA_REQUIREMENTS_H
