// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Modules: the directives outside of functions (ISA 11.1, 11.5, 11.6).

#include "Body.h"
#include "FunctionHeader.h"
#include "Parser.h"

#include <map>
#include <set>

using namespace fp8emu;
using namespace fp8emu::ptx;

namespace {

class ModuleParser {
public:
  ModuleParser(std::string_view text, uint32_t firstLine) : cursor(text, firstLine), budget(text.size()) {}

  Module parse();

private:
  void parseVersion();
  void parseTarget();
  void parseAddressSize();
  void parseDirective();
  bool parseSetting();
  Linkage parseLinkage();
  void parseFunction(Linkage linkage);
  void parseMemory(Linkage linkage);
  void addVariable(Variable variable);
  void declareFunction(const Function &function);
  void parseAlias();
  void parsePragma();
  void skipSection();
  void resolveFiles();

  Cursor cursor;
  Budget budget;
  Module module;
  Scope names;
  /// The functions that have a body.
  std::set<std::string> defined;
};

} // namespace

void ModuleParser::parseVersion() {
  if (!cursor.acceptDot("version"))
    cursor.failExpected("'.version' at the beginning of a module");
  std::string text(cursor.current().text);
  size_t point = text.find('.');
  bool isVersion = cursor.current().kind == Token::Kind::Float && point != std::string::npos && point > 0 &&
                   text.size() > point + 1 && text.size() < 8 &&
                   text.find_first_not_of("0123456789.") == std::string::npos;
  if (!isVersion)
    cursor.failExpected("a version such as 9.0");
  cursor.take();
  module.version = {static_cast<unsigned>(std::stoul(text)),
                    static_cast<unsigned>(std::stoul(text.substr(point + 1)))};
}

/// .target sm_90a, debug: the architecture, and options that change nothing here.
void ModuleParser::parseTarget() {
  do {
    Token name = cursor.expectWord("a target such as sm_90a");
    if (name.text.substr(0, 3) == "sm_")
      module.target = name.text;
    else if (name.text != "debug" && name.text != "texmode_unified" && name.text != "texmode_independent")
      throw PtxError(name.where,
                     "expected a target such as sm_90a or the option 'debug', found " + describe(name));
  } while (cursor.accept(","));
}

void ModuleParser::parseAddressSize() {
  Location where = cursor.where();
  module.addressSize = static_cast<unsigned>(cursor.expectInteger("an address size"));
  if (module.addressSize != 64 && module.addressSize != 32)
    throw PtxError(where,
                   "expected an address size of 64 or 32, found " + std::to_string(module.addressSize));
}

Linkage ModuleParser::parseLinkage() {
  static constexpr std::pair<const char *, Linkage> kLinkages[] = {{"extern", Linkage::Extern},
                                                                   {"visible", Linkage::Visible},
                                                                   {"weak", Linkage::Weak},
                                                                   {"common", Linkage::Common}};
  for (auto [name, linkage] : kLinkages)
    if (cursor.acceptDot(name))
      return linkage;
  return Linkage::None;
}

/// A variable that was declared .extern and is now defined keeps its place.
void ModuleParser::addVariable(Variable variable) {
  std::string name = variable.name;
  Name meaning{Name::Kind::ModuleVariable, static_cast<uint32_t>(module.variables.size())};
  if (names.declare(name, meaning))
    return module.variables.push_back(std::move(variable));
  Name known = *names.find(name);
  if (known.kind == Name::Kind::ModuleVariable) {
    Variable &earlier = module.variables[known.index];
    bool sameSpace = earlier.space == variable.space;
    if (sameSpace && variable.linkage == Linkage::Extern)
      return;
    if (sameSpace && earlier.linkage == Linkage::Extern) {
      earlier = std::move(variable);
      return;
    }
  }
  throw PtxError(variable.where, "'" + name + "' is declared already");
}

void ModuleParser::parseMemory(Linkage linkage) {
  Token directive = cursor.take();
  Space space = *spaceNamed(directive.text);
  if (space != Space::Global && space != Space::Const && space != Space::Shared)
    throw PtxError(directive.where, "." + std::string(directive.text) + " variables belong inside functions");
  auto isDeclared = [&](std::string_view name) { return hasConstantAddress(module, names.find(name)); };
  parseVariables(cursor, space, linkage, budget, isDeclared,
                 [&](Variable variable) { addVariable(std::move(variable)); });
}

/// A name may have several declarations and one definition.
void ModuleParser::declareFunction(const Function &function) {
  Name meaning{Name::Kind::Function, static_cast<uint32_t>(module.functions.size())};
  bool isNew = names.declare(function.name, meaning);
  bool isOther = !isNew && names.find(function.name)->kind != Name::Kind::Function;
  bool isSecond = !function.isDeclaration && !defined.insert(function.name).second;
  if (isOther || isSecond)
    throw PtxError(function.where, "'" + function.name + "' is declared already");
}

void ModuleParser::parseFunction(Linkage linkage) {
  Function function = parseFunctionHeader(cursor, linkage);
  function.isDeclaration = cursor.at(";");
  if (!function.isDeclaration && !cursor.at("{"))
    cursor.failExpected("the body of the function '" + function.name + "', a directive or ';'");
  declareFunction(function);
  if (function.isDeclaration)
    function.end = cursor.take().where;
  else
    Body({cursor, module, names, budget}, function).parse();
  module.functions.push_back(std::move(function));
}

void ModuleParser::parseAlias() {
  Token alias = cursor.expectWord("the name of a function");
  cursor.expect(",", "between alias and function");
  Token function = cursor.expectWord("the name of a function");
  cursor.expect(";", "after an alias");
  for (const Token &name : {alias, function}) {
    std::optional<Name> found = names.find(name.text);
    if (!found || found->kind != Name::Kind::Function)
      throw PtxError(name.where, "the function '" + std::string(name.text) + "' is not declared");
  }
  module.aliases.emplace_back(alias.text, function.text);
}

void ModuleParser::parsePragma() {
  do
    module.pragmas.emplace_back(cursor.expectString("the text of a pragma").text);
  while (cursor.accept(","));
  cursor.expect(";", "after a pragma");
}

/// .section .debug_info { ... }: DWARF, of which nothing is read.
void ModuleParser::skipSection() {
  if (!cursor.atDot() && !cursor.atWord())
    cursor.failExpected("the name of a section");
  cursor.take();
  cursor.expect("{", "after the name of a section");
  for (uint64_t depth = 1; depth > 0;) {
    if (cursor.atEnd())
      cursor.failExpected("'}' at the end of a section");
    if (cursor.at("{"))
      ++depth;
    else if (cursor.at("}"))
      --depth;
    cursor.take();
  }
}

bool ModuleParser::parseSetting() {
  if (cursor.acceptDot("target"))
    parseTarget();
  else if (cursor.acceptDot("address_size"))
    parseAddressSize();
  else if (cursor.acceptDot("file"))
    parseFile(cursor, module);
  else if (cursor.acceptDot("section"))
    skipSection();
  else if (cursor.acceptDot("pragma"))
    parsePragma();
  else if (cursor.acceptDot("alias"))
    parseAlias();
  else
    return false;
  return true;
}

void ModuleParser::parseDirective() {
  if (!cursor.atDot())
    cursor.failExpected("a directive such as .entry");
  if (parseSetting())
    return;
  if (module.target.empty())
    cursor.failExpected("'.target' before the first declaration");
  Linkage linkage = parseLinkage();
  if (cursor.atDot("attribute"))
    skipAttribute(cursor);
  if (cursor.atDot("entry") || cursor.atDot("func"))
    return parseFunction(linkage);
  if (cursor.atDot() && spaceNamed(cursor.current().text))
    return parseMemory(linkage);
  cursor.failExpected(linkage == Linkage::None ? "a directive such as .entry" : "a function or a variable");
}

/// .file may follow the functions: only now do the .loc find theirs.
void ModuleParser::resolveFiles() {
  std::map<uint32_t, uint32_t> indices;
  for (uint32_t i = 0; i < module.files.size(); ++i)
    indices.emplace(module.files[i].first, i + 1);
  for (SourceLine &line : module.sourceLines) {
    auto found = indices.find(line.file);
    line.file = found == indices.end() ? 0 : found->second;
  }
}

Module ModuleParser::parse() {
  parseVersion();
  while (!cursor.atEnd())
    parseDirective();
  if (module.target.empty())
    cursor.failExpected("'.target'");
  resolveFiles();
  return std::move(module);
}

Module ptx::parse(std::string_view text, uint32_t firstLine) { return ModuleParser(text, firstLine).parse(); }
