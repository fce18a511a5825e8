// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operands (ISA 6): registers, constants, addresses, vectors, pairs, lists.

#include "Body.h"
#include "Parser.h"
#include "variables/ConstantExpression.h"

using namespace fp8emu;
using namespace fp8emu::ptx;

namespace {

Operand make(Operand::Kind kind, Location where) {
  Operand operand;
  operand.kind = kind;
  operand.where = where;
  return operand;
}

/// The number of the element of a vector that ".x" or ".r" names; none for other modifiers.
std::optional<unsigned> elementNamed(std::string_view name) {
  constexpr std::string_view kGeometry = "xyzw", kColor = "rgba";
  if (name.size() != 1)
    return std::nullopt;
  for (std::string_view letters : {kGeometry, kColor})
    if (size_t at = letters.find(name[0]); at != std::string_view::npos)
      return static_cast<unsigned>(at);
  return std::nullopt;
}

/// The part of a register that a video instruction reads (ISA 9.7.18).
bool isSelector(std::string_view name) {
  return name == "b0" || name == "b1" || name == "b2" || name == "b3" || name == "h0" || name == "h1";
}

} // namespace

/// A use of a label or list of targets, found when its scope is closed.
Operand Body::parseLabelUse(bool ofList, uint32_t position) {
  Token name = cursor.expectWord(ofList ? "the label of .branchtargets" : "a label");
  Operand operand = make(ofList ? Operand::Kind::Symbol : Operand::Kind::Label, name.where);
  operand.text = name.text;
  operand.local = true;
  auto index = static_cast<uint32_t>(function.instructions.size());
  uses.back().push_back({name, Use::Where::Instruction, ofList, index, position});
  return operand;
}

Operand Body::parseOperand(const Instruction &instruction) {
  Cursor::Nested nested(cursor);
  Location where = cursor.where();
  if (cursor.at("["))
    return parseAddress(instruction);
  if (cursor.at("{"))
    return parseSequence(instruction, Operand::Kind::Vector, "}");
  if (cursor.at("(") && instruction.opcode == "call")
    return parseSequence(instruction, Operand::Kind::List, ")");
  Operand operand = parseSimple(instruction);
  if (!cursor.accept("|"))
    return operand;
  Operand pair = make(Operand::Kind::Pair, where);
  pair.parts.push_back(std::move(operand));
  pair.parts.push_back(parseSimple(instruction));
  return pair;
}

Operand Body::parseSimple(const Instruction &instruction) {
  if (cursor.atWord("_")) {
    return make(Operand::Kind::Sink, cursor.take().where);
  }
  if ((cursor.at("!") || cursor.at("-")) && cursor.peek().kind == Token::Kind::Word &&
      cursor.peek().text != "WARP_SZ")
    return parseNegated();
  if (atConstant(cursor))
    return parseConstantOperand();
  if (!cursor.atWord())
    cursor.failExpected("an operand of '" + instruction.opcode + "'");
  Operand operand = parseName();
  if (operand.kind != Operand::Kind::Variable || !cursor.at("["))
    return operand;
  operand = parseElement(std::move(operand));
  if (instruction.opcode == "mov" || instruction.opcode == "cvta")
    return operand;
  Operand address = make(Operand::Kind::Address, operand.where);
  std::swap(address.value, operand.value);
  address.parts.push_back(std::move(operand));
  return address;
}

Operand Body::parseConstantOperand() {
  Location where = cursor.where();
  Constant constant = parseConstant(cursor);
  Operand operand = make(constant.isInteger() ? Operand::Kind::Integer : Operand::Kind::Float, where);
  operand.value = static_cast<int64_t>(constant.bits);
  operand.isUnsigned = constant.kind == Constant::Kind::Unsigned;
  operand.isSingle = constant.kind == Constant::Kind::Single;
  return operand;
}

/// !p or -r.
Operand Body::parseNegated() {
  Location where = cursor.take().where;
  Token name = cursor.current();
  Operand operand = parseName();
  if (operand.kind != Operand::Kind::Register)
    throw PtxError(name.where, "expected a register after '!' or '-', found " + describe(name));
  operand.negated = true;
  operand.where = where;
  return operand;
}

/// b[2]: an element of an array (ISA 6.4.2).
Operand Body::parseElement(Operand operand) {
  const Variable &variable =
      operand.local ? function.variables[operand.index] : context.module.variables[operand.index];
  uint64_t size = variable.vectorWidth * byteSize(variable.type);
  if (!variable.isArray)
    throw PtxError(operand.where, "'" + variable.name + "' is no array");
  cursor.expect("[", "before an index");
  uint64_t limit = variable.count == 0 ? kMaxElements : variable.count - 1;
  uint64_t bytes = parseCount(cursor, "an index", limit) * size;
  operand.value = static_cast<int64_t>(static_cast<uint64_t>(operand.value) + bytes);
  cursor.expect("]", "after an index");
  return operand;
}

/// [base + offset, ...]
Operand Body::parseAddress(const Instruction &instruction) {
  constexpr const char *kWhat = "an address: a register, a variable or an integer";
  Operand address = make(Operand::Kind::Address, cursor.take().where);
  Token first = cursor.current();
  if (!atConstant(cursor) && !cursor.atWord())
    cursor.failExpected(kWhat);
  address.parts.push_back(atConstant(cursor) ? parseConstantOperand() : parseName());
  Operand &base = address.parts.front();
  if (base.kind != Operand::Kind::Register && base.kind != Operand::Kind::Variable &&
      base.kind != Operand::Kind::Integer)
    throw PtxError(first.where, std::string("expected ") + kWhat + ", found " + describe(first));
  address.value = base.kind == Operand::Kind::Variable ? base.value : 0;
  if (base.kind == Operand::Kind::Variable)
    base.value = 0;
  address.value =
      static_cast<int64_t>(static_cast<uint64_t>(address.value) + static_cast<uint64_t>(parseOffset(cursor)));
  while (cursor.accept(","))
    address.parts.push_back(parseOperand(instruction));
  cursor.expect("]", "or ',' after an address");
  return address;
}

/// {a, b} or (a, b), the latter possibly empty.
Operand Body::parseSequence(const Instruction &instruction, Operand::Kind kind, const char *close) {
  Operand sequence = make(kind, cursor.take().where);
  if (kind == Operand::Kind::List && cursor.accept(close))
    return sequence;
  do
    sequence.parts.push_back(parseOperand(instruction));
  while (cursor.accept(","));
  cursor.expect(close, "or ',' after an operand");
  return sequence;
}

Operand Body::namedRegister(const Token &name, uint32_t index) {
  Operand operand = make(Operand::Kind::Register, name.where);
  operand.index = index;
  unsigned width = function.registers[index].vectorWidth;
  if (cursor.atDot()) {
    Token part = cursor.take();
    std::optional<unsigned> element = elementNamed(part.text);
    if (width > 1 && element && *element < width)
      operand.index += *element;
    else if (width == 1 && isSelector(part.text))
      operand.text = part.text;
    else
      throw PtxError(part.where, "'" + std::string(name.text) + "' has no part " + describe(part));
    return operand;
  }
  if (width == 1)
    return operand;
  Operand vector = make(Operand::Kind::Vector, name.where);
  for (unsigned i = 0; i < width; ++i, ++operand.index)
    vector.parts.push_back(operand);
  return vector;
}

Operand Body::specialRegister(const Token &name) {
  Operand operand = make(Operand::Kind::Special, name.where);
  operand.text = name.text;
  if (!cursor.atDot())
    return operand;
  Token part = cursor.take();
  std::optional<unsigned> element = elementNamed(part.text);
  if (!isSpecialVector(name.text) || !element)
    throw PtxError(part.where, "'" + operand.text + "' has no part " + describe(part));
  operand.text += std::string(".") + "xyzw"[*element];
  return operand;
}

Operand Body::namedVariable(Operand operand, const Name &meaning) {
  operand.kind = Operand::Kind::Variable;
  operand.local = meaning.kind == Name::Kind::LocalVariable;
  operand.index = meaning.index;
  operand.value = parseOffset(cursor);
  return operand;
}

Operand Body::parseName() {
  Token name = cursor.expectWord("a name");
  std::optional<Name> found = scopes.find(name.text);
  if (!found && isSpecialRegister(name.text))
    return specialRegister(name);
  if (found && found->kind == Name::Kind::Register)
    return namedRegister(name, found->index);
  Operand operand = make(Operand::Kind::Symbol, name.where);
  if (found && found->kind != Name::Kind::Function)
    return namedVariable(std::move(operand), *found);
  operand.text = name.text;
  if (!found)
    throw PtxError(name.where, "'" + operand.text + "' is not declared");
  return operand;
}
