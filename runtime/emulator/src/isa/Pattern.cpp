// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Patterns of instructions held against instructions.

#include "Pattern.h"

#include <algorithm>
#include <cstdlib>

using namespace fp8emu;

std::vector<std::string> fp8emu::split(const std::string &text, char at) {
  std::vector<std::string> out;
  for (size_t begin = 0, end; begin <= text.size(); begin = end + 1) {
    end = std::min(text.find(at, begin), text.size());
    out.push_back(text.substr(begin, end - begin));
  }
  return out;
}

Version fp8emu::versionOf(const std::string &text) {
  char *end = nullptr;
  unsigned major = unsigned(std::strtoul(text.c_str(), &end, 10));
  return {major, unsigned(std::strtoul(end + 1, nullptr, 10))};
}

Pattern::Pattern(const std::string &text) {
  const size_t dot = text.find('.', 1);
  names = split(text.substr(0, dot), '|');
  if (dot != std::string::npos)
    for (const std::string &word : split(text.substr(dot + 1), '.'))
      words.push_back(split(word, '|'));
}

bool Pattern::matches(const ptx::Instruction &instruction) const {
  const auto &modifiers = instruction.modifiers;
  auto next = modifiers.begin();
  for (const std::vector<std::string> &word : words) {
    if (word[0][0] == '!') {
      if (std::find(modifiers.begin(), modifiers.end(), word[0].substr(1)) != modifiers.end())
        return false;
    } else if (word[0][0] == '#') {
      if (instruction.operands.size() < std::strtoul(word[0].c_str() + 1, nullptr, 10))
        return false;
    } else {
      next = std::find_first_of(next, modifiers.end(), word.begin(), word.end());
      if (next == modifiers.end())
        return false;
      ++next;
    }
  }
  return true;
}
