// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The scopes of a function: what braces open and close, the registers, variables
// and labels declared between them.

#include "Body.h"
#include "Parser.h"
#include "variables/ConstantExpression.h"

using namespace fp8emu;
using namespace fp8emu::ptx;

void Body::openScope() {
  constexpr size_t kMaxScopes = 200;
  if (uses.size() == kMaxScopes)
    throw PtxError(cursor.where(), "braces nest deeper than " + std::to_string(kMaxScopes) + " levels");
  cursor.expect("{", "before statements");
  scopes.open();
  uses.emplace_back();
}

/// Labels are found from the innermost scope outwards once all of a scope's are
/// known: an inner one hides an outer one wherever it stands.
void Body::closeScope() {
  std::vector<Use> open;
  for (const Use &use : uses.back())
    if (!resolve(use))
      open.push_back(use);
  uses.pop_back();
  scopes.close();
  if (!uses.empty())
    uses.back().insert(uses.back().end(), open.begin(), open.end());
  else if (!open.empty())
    throw PtxError(open.front().name.where,
                   std::string(open.front().ofList ? "the list of targets '" : "the label '") +
                       std::string(open.front().name.text) + "' is not declared");
}

bool Body::resolve(const Use &use) {
  const NameMap<uint32_t> &known = use.ofList ? scopes.innermost().targetLists : scopes.innermost().labels;
  auto found = known.find(use.name.text);
  if (found == known.end())
    return false;
  if (use.in == Use::Where::Instruction)
    function.instructions[use.index].operands[use.position].index = found->second;
  else
    function.targetLists[use.index].labels[use.position] = found->second;
  return true;
}

void Body::declare(std::string_view name, Location where, Name meaning) {
  if (!scopes.innermost().declare(name, meaning))
    throw PtxError(where, "'" + std::string(name) + "' is declared already");
}

/// Parameters in memory and, so that both lists begin alike, those in registers stand in
/// Function::variables.
void Body::declareParameters(const std::vector<Variable> &parameters) {
  for (const Variable &parameter : parameters) {
    bool isRegister = parameter.space == Space::Reg;
    Name meaning{isRegister ? Name::Kind::Register : Name::Kind::LocalVariable,
                 static_cast<uint32_t>(isRegister ? function.registers.size() : function.variables.size())};
    declare(parameter.name, parameter.where, meaning);
    function.variables.push_back(parameter);
    if (isRegister)
      addRegisters(parameter, parameter.name);
  }
}

void Body::takeRegisters(uint64_t count, Location where) {
  if (count > context.budget.registers)
    throw PtxError(where, "the module declares too many registers");
  context.budget.registers -= count;
}

/// One register, or the elements of one vector.
void Body::addRegisters(const Variable &specifiers, std::string name) {
  for (unsigned i = 0; i < specifiers.vectorWidth; ++i) {
    Register element;
    element.name = specifiers.vectorWidth == 1 ? name : name + "." + "xyzw"[i];
    element.type = specifiers.type;
    element.vectorWidth = i == 0 ? specifiers.vectorWidth : 1;
    function.registers.push_back(std::move(element));
  }
}

/// %p, or %r<100> for %r0 to %r99 (ISA 5.4.6).
void Body::parseRegister(const Variable &specifiers) {
  Token name = cursor.expectName("the name of a register");
  auto first = static_cast<uint32_t>(function.registers.size());
  if (!cursor.accept("<")) {
    takeRegisters(specifiers.vectorWidth, name.where);
    declare(name.text, name.where, {Name::Kind::Register, first});
    return addRegisters(specifiers, std::string(name.text));
  }
  uint64_t count = cursor.expectInteger("a number of registers");
  takeRegisters(count * specifiers.vectorWidth, name.where);
  cursor.expect(">", "after a number of registers");
  if (!scopes.innermost().declareRange(name.text, static_cast<uint32_t>(count), first,
                                       specifiers.vectorWidth))
    throw PtxError(name.where, "one of the registers '" + std::string(name.text) + "<" +
                                   std::to_string(count) + ">' is declared already");
  for (uint64_t i = 0; i < count; ++i)
    addRegisters(specifiers, std::string(name.text) + std::to_string(i));
}

void Body::parseRegisters() {
  cursor.take();
  Variable specifiers = parseSpecifiers(cursor, Space::Reg);
  do
    parseRegister(specifiers);
  while (cursor.accept(","));
  cursor.expect(";", "after a declaration");
}

/// Global and constant variables stand in the module, though their names are only
/// known here.
void Body::declareVariable(Variable variable, std::string_view name) {
  bool ofModule = variable.space == Space::Global || variable.space == Space::Const;
  std::vector<Variable> &list = ofModule ? context.module.variables : function.variables;
  declare(name, variable.where,
          {ofModule ? Name::Kind::ModuleVariable : Name::Kind::LocalVariable,
           static_cast<uint32_t>(list.size())});
  list.push_back(std::move(variable));
}

void Body::parseMemory() {
  Space space = *spaceNamed(cursor.take().text);
  auto isDeclared = [&](std::string_view name) {
    return hasConstantAddress(context.module, scopes.find(name));
  };
  parseVariables(cursor, space, Linkage::None, context.budget, isDeclared, [&](Variable variable) {
    std::string name = variable.name;
    declareVariable(std::move(variable), name);
  });
}

void Body::parseLabel() {
  Token name = cursor.expectName("the name of a label");
  cursor.expect(":", "after a label");
  if (parseTargetList(name))
    return;
  auto index = static_cast<uint32_t>(function.labels.size());
  if (!scopes.innermost().labels.emplace(name.text, index).second)
    throw PtxError(name.where, "the label '" + std::string(name.text) + "' is declared already");
  function.labels.push_back(
      {std::string(name.text), name.where, static_cast<uint32_t>(function.instructions.size())});
}
