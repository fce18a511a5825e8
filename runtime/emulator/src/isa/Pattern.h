// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Patterns of instructions, as the tables of requirements and of modifiers have them: an
// opcode and some of the modifiers.

#ifndef FP8EMU_ISA_PATTERN_H
#define FP8EMU_ISA_PATTERN_H

#include "ptx/Ast.h"

#include <string>
#include <utility>
#include <vector>

namespace fp8emu {

/// An opcode and some of its modifiers in their order, with | between those of which it may be
/// any: "atom|red.v2|v4". Besides modifiers there are "!x", no x among them, and "#3", three
/// operands or more.
class Pattern {
public:
  explicit Pattern(const std::string &text);

  const std::vector<std::string> &opcodes() const { return names; }
  /// Whether the modifiers and operands are these; the opcode is.
  bool matches(const ptx::Instruction &instruction) const;

private:
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> words;
};

std::vector<std::string> split(const std::string &text, char at);

/// As in "8.6".
using Version = std::pair<unsigned, unsigned>;
Version versionOf(const std::string &text);

} // namespace fp8emu

#endif // FP8EMU_ISA_PATTERN_H
