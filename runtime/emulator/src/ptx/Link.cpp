// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linking: one name after the other finds its place, then operands are renumbered.

#include "Link.h"

#include "Parser.h"

#include <algorithm>
#include <map>
#include <set>

using namespace fp8emu;
using namespace fp8emu::ptx;

/// Begins the line before each unit of an image.
static constexpr std::string_view kUnitMark = "//fp8emu unit ";

namespace {

class Linker {
public:
  explicit Linker(std::vector<Module> modules) : modules(std::move(modules)) {}

  Module link();

private:
  /// A module's own names that another has too, with what they became.
  using Renamed = std::map<std::string, std::string>;

  void takeHeader(const Module &module);
  Renamed renameLocals(const Module &module, size_t number);
  std::vector<uint32_t> addVariables(Module &module, const Renamed &renamed);
  void addFunctions(Module &module, const Renamed &renamed, const std::vector<uint32_t> &places);
  void addLines(Module &module);

  std::vector<Module> modules;
  Module out;
  std::set<std::string> taken;
  std::map<std::string, uint32_t> variables, functions;
};

bool isOwn(Linkage linkage) { return linkage == Linkage::None; }
bool isStrong(Linkage linkage) { return linkage == Linkage::Visible; }

/// A kernel is every module's to launch, whatever its linkage.
bool isOwn(const Function &function) { return !function.isEntry && isOwn(function.linkage); }

template <class Map>
void rename(const Map &renamed, std::string &name) {
  if (auto found = renamed.find(name); found != renamed.end())
    name = found->second;
}

[[noreturn]] void failTwice(Location where, const std::string &name) {
  throw PtxError(where, name + " is defined in two of the modules that are linked");
}

/// The number and the letter of "sm_90a": which of two targets asks for more.
std::pair<unsigned long, std::string> rank(const std::string &target) {
  size_t end = target.find_first_not_of("0123456789", 3);
  return {std::stoul("0" + target.substr(3, end - 3)), end == std::string::npos ? "" : target.substr(end)};
}

} // namespace

void Linker::takeHeader(const Module &module) {
  out.version = std::max(out.version, module.version);
  if (out.target.empty() || rank(out.target) < rank(module.target))
    out.target = module.target;
  out.addressSize = module.addressSize;
  out.pragmas.insert(out.pragmas.end(), module.pragmas.begin(), module.pragmas.end());
}

Linker::Renamed Linker::renameLocals(const Module &module, size_t number) {
  Renamed renamed;
  auto own = [&](const std::string &name) {
    if (renamed.count(name) || taken.insert(name).second)
      return;
    std::string free = name + "$" + std::to_string(number);
    while (!taken.insert(free).second)
      free += "$";
    renamed[name] = free;
  };
  std::set<std::string> seen;
  for (const Variable &variable : module.variables)
    if (isOwn(variable.linkage))
      own(variable.name);
  // A function may be declared before it is defined.
  for (const Function &function : module.functions)
    if (isOwn(function) && seen.insert(function.name).second)
      own(function.name);
  return renamed;
}

/// Where each of the module's variables lies in the list of all.
std::vector<uint32_t> Linker::addVariables(Module &module, const Renamed &renamed) {
  std::vector<uint32_t> places;
  for (Variable &variable : module.variables) {
    if (isOwn(variable.linkage))
      rename(renamed, variable.name);
    auto [known, isNew] = variables.emplace(variable.name, uint32_t(out.variables.size()));
    places.push_back(known->second);
    if (isNew) {
      out.variables.push_back(std::move(variable));
      continue;
    }
    Variable &earlier = out.variables[known->second];
    if (earlier.space != variable.space)
      throw PtxError(variable.where, variable.name + " lies in another state space in another module");
    if (variable.linkage == Linkage::Extern)
      continue;
    if (isStrong(earlier.linkage) && isStrong(variable.linkage))
      failTwice(variable.where, variable.name);
    bool larger = variable.linkage == Linkage::Common && earlier.linkage == Linkage::Common &&
                  variable.bytes() > earlier.bytes();
    if (earlier.linkage == Linkage::Extern || isStrong(variable.linkage) || larger)
      earlier = std::move(variable);
  }
  return places;
}

static void relink(Operand &operand, const std::map<std::string, std::string> &renamed,
                   const std::vector<uint32_t> &places) {
  if (operand.kind == Operand::Kind::Variable && !operand.local)
    operand.index = places[operand.index];
  if (operand.kind == Operand::Kind::Symbol && !operand.local)
    rename(renamed, operand.text);
  for (Operand &part : operand.parts)
    relink(part, renamed, places);
}

void Linker::addFunctions(Module &module, const Renamed &renamed, const std::vector<uint32_t> &places) {
  for (Function &function : module.functions) {
    if (isOwn(function))
      rename(renamed, function.name);
    for (Instruction &instruction : function.instructions) {
      if (instruction.sourceLine)
        instruction.sourceLine += uint32_t(out.sourceLines.size());
      for (Operand &operand : instruction.operands)
        relink(operand, renamed, places);
    }
    for (TargetList &list : function.targetLists)
      for (std::string &name : list.functions)
        rename(renamed, name);
    auto [known, isNew] = functions.emplace(function.name, uint32_t(out.functions.size()));
    if (isNew) {
      out.functions.push_back(std::move(function));
      continue;
    }
    Function &earlier = out.functions[known->second];
    if (function.isDeclaration)
      continue;
    bool bothStrong =
        !earlier.isDeclaration && earlier.linkage != Linkage::Weak && function.linkage != Linkage::Weak;
    if (bothStrong)
      failTwice(function.where, function.name);
    if (earlier.isDeclaration || function.linkage != Linkage::Weak)
      earlier = std::move(function);
  }
  for (auto &[alias, target] : module.aliases) {
    rename(renamed, target);
    rename(renamed, alias);
    out.aliases.emplace_back(alias, target);
  }
}

void Linker::addLines(Module &module) {
  for (SourceLine &line : module.sourceLines) {
    if (line.file)
      line.file += uint32_t(out.files.size());
    out.sourceLines.push_back(line);
  }
  out.files.insert(out.files.end(), module.files.begin(), module.files.end());
}

Module Linker::link() {
  for (const Module &module : modules) {
    for (const Variable &variable : module.variables)
      if (!isOwn(variable.linkage))
        taken.insert(variable.name);
    for (const Function &function : module.functions)
      if (!isOwn(function))
        taken.insert(function.name);
  }
  for (size_t i = 0; i < modules.size(); ++i) {
    Module &module = modules[i];
    takeHeader(module);
    Renamed renamed = renameLocals(module, i);
    for (Variable &variable : module.variables)
      for (Relocation &relocation : variable.relocations)
        rename(renamed, relocation.symbol);
    for (Function &function : module.functions)
      for (Variable &variable : function.variables)
        for (Relocation &relocation : variable.relocations)
          rename(renamed, relocation.symbol);
    auto places = addVariables(module, renamed);
    addFunctions(module, renamed, places);
    addLines(module);
  }
  return std::move(out);
}

Module ptx::link(std::vector<Module> modules) { return Linker(std::move(modules)).link(); }

std::string ptx::join(const std::vector<Unit> &units) {
  std::string image;
  for (const Unit &unit : units) {
    std::string name = unit.name;
    std::replace_if(name.begin(), name.end(), [](unsigned char c) { return c < ' '; }, ' ');
    image += std::string(kUnitMark) + name + "\n" + unit.text;
    if (image.back() != '\n')
      image += '\n';
  }
  return image;
}

Module ptx::parseImage(std::string_view image) {
  if (image.substr(0, kUnitMark.size()) != kUnitMark)
    return parse(image);
  std::vector<Module> modules;
  uint32_t line = 1;
  const std::string nextMark = "\n" + std::string(kUnitMark);
  while (!image.empty()) {
    size_t end = image.find(nextMark);
    std::string_view unit = image.substr(0, end == std::string_view::npos ? end : end + 1);
    image.remove_prefix(unit.size());
    // The mark is a comment to the parser.
    modules.push_back(parse(unit, line));
    line += uint32_t(std::count(unit.begin(), unit.end(), '\n'));
  }
  return link(std::move(modules));
}
