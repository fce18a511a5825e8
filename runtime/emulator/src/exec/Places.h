// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The text of instructions and of their source lines, for messages.

#ifndef FP8EMU_EXEC_PLACES_H
#define FP8EMU_EXEC_PLACES_H

#include "ptx/Ast.h"

#include <string>

namespace fp8emu {

/// The instruction with its modifiers, as in "ld.global.f32".
inline std::string textOf(const ptx::Instruction &instruction) {
  std::string text = instruction.opcode;
  for (const std::string &modifier : instruction.modifiers)
    text += "." + modifier;
  return text;
}

/// The source line of an instruction, as in "gemm.cu:42"; empty where no .loc gives one.
inline std::string sourceOf(const ptx::Module &module, const ptx::Instruction &instruction) {
  if (!instruction.sourceLine)
    return "";
  const ptx::SourceLine &line = module.sourceLines[instruction.sourceLine - 1];
  return line.file ? module.files[line.file - 1].second + ":" + std::to_string(line.line) : "";
}

} // namespace fp8emu

#endif // FP8EMU_EXEC_PLACES_H
