// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Instructions held against the tables of modifiers.

#include "Modifiers.h"

#include "ModifierTable.h"
#include "Pattern.h"

#include <algorithm>
#include <unordered_map>

using namespace fp8emu;

namespace {

/// A row of one of the tables: the instruction has one of the modifiers, or none of them.
struct Rule {
  Pattern pattern;
  std::vector<std::string> modifiers;
  bool isRefused;
  Version version;
  std::string instead;
};

using Rules = std::unordered_map<std::string, std::vector<Rule>>;

const std::vector<Rule> &rulesOf(const std::string &opcode) {
  // Never destroyed, as the table of opcodes (Table.cpp).
  static const auto &table = *[] {
    auto *out = new Rules();
    auto add = [&](const Rule &rule) {
      for (const std::string &name : rule.pattern.opcodes())
        (*out)[name].push_back(rule);
    };
    for (const CompulsoryModifier &row : kCompulsoryModifiers)
      add({Pattern(row.what), split(row.needs, '|'), false, versionOf(row.version), ""});
    for (const RefusedType &row : kRefusedTypes)
      add({Pattern(row.what), split(row.types, '|'), true, {1, 0}, row.instead});
    return out;
  }();
  static const auto &none = *new std::vector<Rule>();
  auto found = table.find(opcode);
  return found == table.end() ? none : found->second;
}

std::string listed(const std::vector<std::string> &names) {
  std::string out;
  for (const std::string &name : names)
    out += (out.empty() ? "." : ", .") + name;
  return out;
}

std::optional<std::string> broken(const Rule &rule, const ptx::Instruction &instruction) {
  const auto &has = instruction.modifiers;
  auto found = std::find_first_of(has.begin(), has.end(), rule.modifiers.begin(), rule.modifiers.end());
  if (rule.isRefused)
    return found == has.end() ? std::nullopt
                              : std::optional("." + *found + " is no type of it, " + rule.instead + " is");
  if (found != has.end())
    return std::nullopt;
  return (rule.modifiers.size() == 1 ? "" : "one of ") + listed(rule.modifiers) + " is missing";
}

} // namespace

std::optional<std::string> fp8emu::findWrongModifier(const ptx::Module &module,
                                                     const ptx::Instruction &instruction) {
  for (const Rule &rule : rulesOf(instruction.opcode))
    if (module.version >= rule.version && rule.pattern.matches(instruction))
      if (auto text = broken(rule, instruction))
        return text;
  return std::nullopt;
}
