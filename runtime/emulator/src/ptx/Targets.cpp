// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The targets of indirect branches and calls: .branchtargets, .calltargets and
// .callprototype (ISA 11.3).

#include "Body.h"
#include "Parser.h"

using namespace fp8emu;
using namespace fp8emu::ptx;

void Body::parseBranchTargets(TargetList &list) {
  auto index = static_cast<uint32_t>(function.targetLists.size());
  do {
    Token name = cursor.expectWord("a label");
    auto position = static_cast<uint32_t>(list.labels.size());
    uses.back().push_back({name, Use::Where::TargetList, false, index, position});
    list.labels.push_back(0);
  } while (cursor.accept(","));
}

void Body::parseCallTargets(TargetList &list) {
  do {
    Token name = cursor.expectWord("the name of a function");
    std::optional<Name> found = scopes.find(name.text);
    if (!found || found->kind != Name::Kind::Function)
      throw PtxError(name.where, "the function '" + std::string(name.text) + "' is not declared");
    list.functions.emplace_back(name.text);
  } while (cursor.accept(","));
}

/// (results) _ (parameters), and directives about the functions called.
void Body::parsePrototype(TargetList &list) {
  list.isPrototype = true;
  if (cursor.at("("))
    list.results = parseParameters(cursor);
  if (!cursor.atWord("_"))
    cursor.failExpected("'_' in a prototype");
  cursor.take();
  if (cursor.at("("))
    list.parameters = parseParameters(cursor);
  while (cursor.atDot()) {
    bool hasNumber = cursor.atDot("abi_preserve") || cursor.atDot("abi_preserve_control");
    if (!hasNumber && !cursor.atDot("noreturn"))
      cursor.failExpected("'.noreturn', '.abi_preserve', '.abi_preserve_control' or ';'");
    cursor.take();
    if (hasNumber)
      cursor.expectInteger("a number of registers");
  }
}

bool Body::parseTargetList(const Token &label) {
  TargetList list;
  list.name = label.text;
  if (cursor.acceptDot("branchtargets"))
    parseBranchTargets(list);
  else if (cursor.acceptDot("calltargets"))
    parseCallTargets(list);
  else if (cursor.acceptDot("callprototype"))
    parsePrototype(list);
  else
    return false;
  cursor.expect(";", "after a list of targets");
  auto index = static_cast<uint32_t>(function.targetLists.size());
  if (!scopes.innermost().targetLists.emplace(label.text, index).second)
    throw PtxError(label.where, "the label '" + std::string(label.text) + "' is declared already");
  function.targetLists.push_back(std::move(list));
  return true;
}
