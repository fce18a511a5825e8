// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The registers and numbers that an operand of a type takes (PTX ISA 9.4), by one table.

#ifndef FP8EMU_ISA_OPERANDTYPES_H
#define FP8EMU_ISA_OPERANDTYPES_H

#include "ptx/Ast.h"

#include <string>

namespace fp8emu {

/// Whether an operand of `type` may be a register that was declared as `declared`. Where `wider`
/// (PTX ISA 9.4.1: ld, st and cvt), the register may have more bits.
bool takesRegister(ptx::Type type, ptx::Type declared, bool wider = false);

/// Whether it may be an integer that stands in the text.
bool takesInteger(ptx::Type type);
/// Whether it may be a number with a point, or, where `isSingle`, the bits of one as 0f3F800000.
bool takesFloat(ptx::Type type, bool isSingle);

/// As in ".b32, .u32, .s32, .f16x2": the types of registers that it may be.
std::string registersFor(ptx::Type type, bool wider = false);

} // namespace fp8emu

#endif // FP8EMU_ISA_OPERANDTYPES_H
