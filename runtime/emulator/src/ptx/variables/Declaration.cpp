// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declarations: types, alignment, vectors, arrays, parameters.

#include "Declaration.h"
#include "../Parser.h"
#include "ConstantExpression.h"

using namespace fp8emu;
using namespace fp8emu::ptx;

namespace {

constexpr uint64_t kMaxAlignment = 1u << 20;
constexpr size_t kMaxDimensions = 32;

uint64_t parseAlignment(Cursor &cursor) {
  Location where = cursor.where();
  uint64_t alignment = cursor.expectInteger("an alignment", kMaxAlignment);
  if (alignment == 0 || (alignment & (alignment - 1)))
    throw PtxError(where, "expected an alignment that is a power of two, found " + std::to_string(alignment));
  return alignment;
}

/// .ptr .global .align 8: of a parameter, what it points to (ISA 5.1.6.2).
void parsePointer(Cursor &cursor, Variable &variable) {
  if (cursor.atDot() && spaceNamed(cursor.current().text))
    cursor.take();
  variable.pointerAlignment = cursor.acceptDot("align") ? static_cast<unsigned>(parseAlignment(cursor)) : 4;
}

unsigned vectorWidthNamed(std::string_view name) { return name == "v2" ? 2 : name == "v4" ? 4 : 1; }

/// One specifier; false where the current token is none.
bool parseSpecifier(Cursor &cursor, Variable &variable, bool &hasType) {
  if (!cursor.atDot())
    return false;
  std::string_view name = cursor.current().text;
  if (vectorWidthNamed(name) > 1)
    variable.vectorWidth = vectorWidthNamed(name);
  else if (std::optional<Type> type = typeNamed(name)) {
    if (hasType)
      cursor.failExpected("one type in a declaration");
    variable.type = *type;
    hasType = true;
  } else if (name != "align" && name != "ptr" && name != "attribute")
    return false;
  if (name == "attribute")
    skipAttribute(cursor);
  else
    cursor.take();
  if (name == "align")
    variable.alignment = static_cast<unsigned>(parseAlignment(cursor));
  else if (name == "ptr")
    parsePointer(cursor, variable);
  return true;
}

void checkSpecifiers(Cursor &cursor, const Variable &variable, bool hasType) {
  for (const char *opaque : {"texref", "samplerref", "surfref"})
    if (cursor.atDot(opaque))
      throw PtxError(cursor.where(),
                     "textures, samplers and surfaces (." + std::string(opaque) + ") are not supported");
  if (!hasType)
    cursor.failExpected("a type");
  if (variable.type == Type::Pred && (variable.space != Space::Reg || variable.vectorWidth > 1))
    throw PtxError(cursor.where(), "predicates can only be scalar registers");
  if (variable.vectorWidth * byteSize(variable.type) > 16)
    throw PtxError(cursor.where(), "expected a vector of at most 16 bytes, found .v" +
                                       std::to_string(variable.vectorWidth) + " ." + name(variable.type));
}

uint64_t parseDimension(Cursor &cursor) {
  uint64_t size = 0;
  if (!cursor.at("]")) {
    Location where = cursor.where();
    size = parseCount(cursor, "an array size", kMaxElements);
    if (size == 0)
      throw PtxError(where, "expected an array size above 0, found 0");
  }
  cursor.expect("]", "after an array size");
  return size;
}

} // namespace

void ptx::skipAttribute(Cursor &cursor) {
  cursor.take();
  cursor.expect("(", "after '.attribute'");
  for (unsigned depth = 1; depth > 0;) {
    if (cursor.atEnd())
      cursor.failExpected("')' after the attributes");
    Token token = cursor.take();
    if (token.kind == Token::Kind::Punctuation)
      depth += token.text == "(" ? 1 : token.text == ")" ? -1 : 0;
  }
}

/// Of declarations: no type that only instructions have.
std::optional<Type> ptx::typeNamed(std::string_view text) {
  for (unsigned i = 0; i <= static_cast<unsigned>(Type::F64); ++i)
    if (text == name(static_cast<Type>(i)))
      return static_cast<Type>(i);
  return std::nullopt;
}

std::optional<Space> ptx::spaceNamed(std::string_view text) {
  static constexpr std::pair<const char *, Space> kSpaces[] = {
      {"reg", Space::Reg},     {"const", Space::Const}, {"global", Space::Global},
      {"local", Space::Local}, {"param", Space::Param}, {"shared", Space::Shared}};
  for (auto [known, space] : kSpaces)
    if (text == known)
      return space;
  return std::nullopt;
}

Variable ptx::parseSpecifiers(Cursor &cursor, Space space) {
  Variable variable;
  variable.space = space;
  variable.alignment = 0;
  bool hasType = false;
  while (parseSpecifier(cursor, variable, hasType)) {
  }
  checkSpecifiers(cursor, variable, hasType);
  if (variable.alignment == 0)
    variable.alignment = variable.vectorWidth * byteSize(variable.type);
  return variable;
}

std::vector<uint64_t> ptx::parseDeclarator(Cursor &cursor, Variable &variable) {
  Token name = cursor.expectWord("the name of a variable");
  variable.name = name.text;
  variable.where = name.where;
  std::vector<uint64_t> dimensions;
  uint64_t elements = 1;
  while (cursor.accept("[")) {
    if (dimensions.size() == kMaxDimensions)
      throw PtxError(cursor.where(),
                     "an array has at most " + std::to_string(kMaxDimensions) + " dimensions");
    uint64_t size = parseDimension(cursor);
    if (size == 0 && !dimensions.empty())
      throw PtxError(name.where, "expected sizes for all but the first dimension of '" + variable.name + "'");
    dimensions.push_back(size);
    elements *= std::max<uint64_t>(size, 1);
    if (elements > kMaxElements)
      throw PtxError(name.where, "'" + variable.name + "' is larger than any memory");
  }
  variable.count = !dimensions.empty() && dimensions.front() == 0 ? 0 : elements;
  variable.isArray = !dimensions.empty();
  return dimensions;
}

Variable ptx::parseParameter(Cursor &cursor) {
  if (!cursor.atDot("param") && !cursor.atDot("reg"))
    cursor.failExpected("a parameter: '.param' or '.reg'");
  Space space = *spaceNamed(cursor.take().text);
  Variable variable = parseSpecifiers(cursor, space);
  parseDeclarator(cursor, variable);
  if (space == Space::Reg && (variable.isArray || variable.vectorWidth > 1))
    throw PtxError(variable.where, "a parameter in a register can only be a scalar");
  return variable;
}

std::vector<Variable> ptx::parseParameters(Cursor &cursor) {
  std::vector<Variable> parameters;
  cursor.expect("(", "before a list of parameters");
  if (cursor.accept(")"))
    return parameters;
  do
    parameters.push_back(parseParameter(cursor));
  while (cursor.accept(","));
  cursor.expect(")", "or ',' after a parameter");
  return parameters;
}

void ptx::parseVariables(Cursor &cursor, Space space, Linkage linkage, Budget &budget,
                         const IsDeclared &isDeclared, const std::function<void(Variable)> &add) {
  Variable common = parseSpecifiers(cursor, space);
  common.linkage = linkage;
  do {
    if (cursor.atWord("_"))
      cursor.failExpected("the name of a variable");
    Variable variable = common;
    std::vector<uint64_t> dimensions = parseDeclarator(cursor, variable);
    bool hasValue = cursor.at("=");
    bool mayHaveValue = (space == Space::Global || space == Space::Const) && linkage != Linkage::Extern;
    if (hasValue && !mayHaveValue)
      throw PtxError(cursor.where(),
                     "only .global and .const variables that are no .extern can be initialised");
    if (cursor.accept("="))
      parseInitializer(cursor, variable, std::move(dimensions), budget, isDeclared);
    if (variable.count == 0 && linkage != Linkage::Extern && space != Space::Param)
      throw PtxError(variable.where, "the array '" + variable.name + "' needs a size, being no .extern");
    add(std::move(variable));
  } while (cursor.accept(","));
  cursor.expect(";", "after a declaration");
}
