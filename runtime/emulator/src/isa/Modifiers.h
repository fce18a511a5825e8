// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The modifiers that an instruction cannot do without, and the types that it never has, by
// tables: an assembler refuses such instructions, whatever they would mean.

#ifndef FP8EMU_ISA_MODIFIERS_H
#define FP8EMU_ISA_MODIFIERS_H

#include "ptx/Ast.h"

#include <optional>
#include <string>

namespace fp8emu {

/// The mistake of the modifiers, as in "one of .ca, .cg is missing"; nothing where they are as
/// PTX wants them.
std::optional<std::string> findWrongModifier(const ptx::Module &module, const ptx::Instruction &instruction);

} // namespace fp8emu

#endif // FP8EMU_ISA_MODIFIERS_H
