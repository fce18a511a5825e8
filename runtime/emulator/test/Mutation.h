// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels with mistakes that mostly still load: whole instructions of PTX, their
// modifiers and operands are changed, rather than its text.

#ifndef FP8EMU_TEST_MUTATION_H
#define FP8EMU_TEST_MUTATION_H

#include "Fuzz.h"

#include <map>
#include <string>
#include <vector>

namespace fp8emu_test {

/// Modules of one kernel each, and what their instructions are made of.
class Mutation {
public:
  /// `texts` are modules as compilers write them: an instruction a line.
  explicit Mutation(const std::vector<std::string> &texts);

  /// One of the modules with one to six changes, or none at all.
  std::string operator()(Chance &chance) const;

private:
  using Lines = std::vector<std::string>;
  void split(const std::string &text);
  void change(Lines &lines, Chance &chance) const;
  void changeOperand(Lines &lines, std::string &line, Chance &chance) const;
  void changeModifiers(std::string &line, Chance &chance) const;
  std::string fitted(std::string line, const Lines &lines, Chance &chance) const;

  std::vector<Lines> modules;
  /// All instructions, and by opcode the modifiers that they have.
  Lines instructions;
  std::map<std::string, std::vector<std::string>> modifiers;
};

} // namespace fp8emu_test

#endif // FP8EMU_TEST_MUTATION_H
