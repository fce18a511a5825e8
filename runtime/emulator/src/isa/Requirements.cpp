// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Instructions held against the table of requirements.

#include "Requirements.h"

#include "Pattern.h"
#include "RequirementTable.h"

#include "ptx/Parser.h"

#include <algorithm>
#include <cstdlib>
#include <unordered_map>
#include <vector>

using namespace fp8emu;
using ptx::Instruction;
using ptx::Operand;

namespace {

/// An architecture, as "90a".
struct Architecture {
  explicit Architecture(const std::string &text) : number(unsigned(std::strtoul(text.c_str(), nullptr, 10))) {
    if (!text.empty() && (text.back() == 'a' || text.back() == 'f'))
      suffix = text.back();
  }
  /// Whether a module for this one has what came with `wanted`.
  bool has(const Architecture &wanted) const {
    if (wanted.suffix == 'a')
      return suffix == 'a' && number == wanted.number;
    if (wanted.suffix == 'f')
      return suffix && number / 10 == wanted.number / 10 && number >= wanted.number;
    return number >= wanted.number;
  }
  unsigned number;
  char suffix = 0;
};

/// A row taken apart.
class Row {
public:
  explicit Row(const Requirement &row) : row(&row), pattern(row.what), version(versionOf(row.version)) {
    for (const std::string &target : split(row.targets, ' '))
      targets.emplace_back(target);
  }

  const std::vector<std::string> &names() const { return pattern.opcodes(); }
  bool matches(const Instruction &instruction) const { return pattern.matches(instruction); }

  std::optional<std::string> unmet(const ptx::Module &module) const {
    const Architecture own(module.target.substr(std::min<size_t>(3, module.target.size())));
    if (std::none_of(targets.begin(), targets.end(), [&](const Architecture &one) { return own.has(one); }))
      return "needs .target " + targetText() + ", the module is for " + module.target;
    if (module.version < version)
      return "needs .version " + std::string(row->version) + ", the module has " +
             std::to_string(module.version.first) + "." + std::to_string(module.version.second);
    return std::nullopt;
  }

private:
  std::string targetText() const {
    std::string out;
    for (size_t i = 0; i < targets.size(); ++i) {
      out += i == 0 ? "" : i + 1 == targets.size() ? " or " : ", ";
      out += "sm_" + std::to_string(targets[i].number) +
             (targets[i].suffix ? std::string(1, targets[i].suffix) : "");
    }
    if (targets[0].suffix == 0)
      out += " or higher";
    else if (targets.back().suffix == 'f')
      out += " (f: with a or f, and later ones of the family)";
    return out;
  }

  const Requirement *row;
  Pattern pattern;
  Version version;
  std::vector<Architecture> targets;
};

/// The rows of a name: an opcode, a special register, a directive, or *.
const std::vector<Row> &rowsOf(const std::string &name) {
  // Never destroyed, as the table of opcodes (Table.cpp).
  static const auto &table = *[] {
    auto *out = new std::unordered_map<std::string, std::vector<Row>>();
    for (const Requirement &requirement : kRequirements) {
      Row row(requirement);
      for (const std::string &opcode : row.names())
        (*out)[opcode].push_back(row);
    }
    return out;
  }();
  static const auto &none = *new std::vector<Row>();
  auto found = table.find(name);
  return found == table.end() ? none : found->second;
}

std::optional<std::string> unmetByName(const ptx::Module &module, const std::string &name) {
  for (const Row &row : rowsOf(name))
    if (auto text = row.unmet(module))
      return name + " " + *text;
  return std::nullopt;
}

std::optional<std::string> unmetBySpecials(const ptx::Module &module, const Operand &operand) {
  if (operand.kind == Operand::Kind::Special)
    return unmetByName(module, operand.text.substr(0, operand.text.find('.')));
  for (const Operand &part : operand.parts)
    if (auto text = unmetBySpecials(module, part))
      return text;
  return std::nullopt;
}

} // namespace

std::optional<std::string> fp8emu::findUnmet(const ptx::Module &module, const Instruction &instruction) {
  for (const std::string &name : {instruction.opcode, std::string("*")})
    for (const Row &row : rowsOf(name))
      if (row.matches(instruction))
        if (auto text = row.unmet(module))
          return text;
  for (const Operand &operand : instruction.operands)
    if (auto text = unmetBySpecials(module, operand))
      return text;
  return std::nullopt;
}

void fp8emu::checkDirectives(const ptx::Module &module) {
  for (const TargetVersion &known : kTargetVersions)
    if (module.target == known.target && module.version < versionOf(known.version))
      throw PtxError({1, 1}, ".target " + module.target + " needs .version " + known.version);
  for (const ptx::Function &function : module.functions) {
    auto check = [&](bool isThere, const char *directive) {
      if (!isThere)
        return;
      if (auto text = unmetByName(module, directive))
        throw PtxError(function.where, *text);
    };
    check(function.requiredCluster[0], ".reqnctapercluster");
    check(function.maxClusterRank, ".maxclusterrank");
    check(function.explicitCluster, ".explicitcluster");
    check(function.blocksAreClusters, ".blocksareclusters");
  }
}
