// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Statements: braces, labels, directives, instructions with their guards and
// modifiers.

#include "Body.h"
#include "Parser.h"

using namespace fp8emu;
using namespace fp8emu::ptx;

Body::Body(Context context, Function &function)
    : context(context), cursor(context.cursor), function(function), scopes(context.names) {}

void Body::parse() {
  openScope();
  declareParameters(function.results);
  declareParameters(function.parameters);
  while (!uses.empty()) {
    if (cursor.at("{")) {
      openScope();
    } else if (cursor.at("}")) {
      closeScope();
      function.end = cursor.where();
      cursor.take();
    } else {
      parseStatement();
    }
  }
}

void Body::parseStatement() {
  if (cursor.atEnd())
    cursor.failExpected("'}' at the end of the function '" + function.name + "'");
  if (cursor.atDot())
    return parseDirective();
  if (cursor.atWord() && cursor.peek().kind == Token::Kind::Punctuation && cursor.peek().text == ":")
    return parseLabel();
  parseInstruction();
}

void Body::parseDirective() {
  if (cursor.atDot("reg"))
    return parseRegisters();
  if (spaceNamed(cursor.current().text))
    return parseMemory();
  if (cursor.acceptDot("loc")) {
    parseLoc(cursor, context.module);
    sourceLine = static_cast<uint32_t>(context.module.sourceLines.size());
  } else if (cursor.acceptDot("file")) {
    parseFile(cursor, context.module);
  } else if (cursor.acceptDot("pragma")) {
    // Hints for the assembler's optimizations, as "nounroll".
    do
      cursor.expectString("the text of a pragma");
    while (cursor.accept(","));
    cursor.expect(";", "after a pragma");
  } else {
    cursor.failExpected("a statement");
  }
}

void Body::parseGuard(Instruction &instruction) {
  if (!cursor.accept("@"))
    return;
  instruction.guardNegated = cursor.accept("!");
  Token name = cursor.expectWord("a predicate after '@'");
  std::optional<Name> found = scopes.find(name.text);
  if (!found || found->kind != Name::Kind::Register || function.registers[found->index].type != Type::Pred)
    throw PtxError(name.where, "expected a register of type .pred after '@', found " + describe(name));
  instruction.guard = static_cast<int32_t>(found->index);
}

void Body::parseInstruction() {
  Instruction instruction;
  instruction.where = cursor.where();
  instruction.sourceLine = sourceLine;
  parseGuard(instruction);
  instruction.where = cursor.where();
  Token opcode = cursor.expectWord("an instruction");
  instruction.opcode = opcode.text;
  while (cursor.atDot())
    instruction.modifiers.emplace_back(cursor.take().text);
  parseOperands(instruction);
  cursor.expect(";", ("or ',' after an operand of '" + instruction.opcode + "'").c_str());
  function.instructions.push_back(std::move(instruction));
}

/// Whether a call's next operand is a prototype or a list of functions: what
/// follows the callee, but for the arguments.
static bool atTargetsOfCall(const Cursor &cursor, const Instruction &call) {
  bool hasCallee = false;
  for (const Operand &operand : call.operands)
    hasCallee |= operand.kind != Operand::Kind::List;
  return hasCallee && cursor.atWord();
}

void Body::parseOperands(Instruction &instruction) {
  if (cursor.at(";"))
    return;
  const std::string &opcode = instruction.opcode;
  do {
    auto position = static_cast<uint32_t>(instruction.operands.size());
    bool isLabel = opcode == "bra" && position == 0;
    bool isList =
        (opcode == "brx" && position == 1) || (opcode == "call" && atTargetsOfCall(cursor, instruction));
    instruction.operands.push_back(isLabel || isList ? parseLabelUse(isList, position)
                                                     : parseOperand(instruction));
  } while (cursor.accept(","));
}
