// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which .target and .version instructions and directives need: all of it is one table.
// Values do not depend on it; that a kernel passes here and is refused by ptxas does.

#ifndef FP8EMU_ISA_REQUIREMENTS_H
#define FP8EMU_ISA_REQUIREMENTS_H

#include "ptx/Ast.h"

#include <optional>
#include <string>

namespace fp8emu {

/// What the instruction needs and the module does not offer, as in "needs .target sm_90
/// or higher, the module is for sm_89"; none where all is there.
std::optional<std::string> findUnmet(const ptx::Module &module, const ptx::Instruction &instruction);

/// The same of the module's .target, and of directives of its kernels: a PtxError.
void checkDirectives(const ptx::Module &module);

} // namespace fp8emu

#endif // FP8EMU_ISA_REQUIREMENTS_H
