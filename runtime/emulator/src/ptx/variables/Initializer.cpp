// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Initialisers of variables (ISA 5.4.4): numbers, nested braces, addresses.

#include "../Parser.h"
#include "ConstantExpression.h"
#include "Declaration.h"

#include <cstring>

using namespace fp8emu;
using namespace fp8emu::ptx;

namespace {

class Initializer {
public:
  Initializer(Cursor &cursor, Variable &variable, Budget &budget, const IsDeclared &isDeclared)
      : cursor(cursor), variable(variable), budget(budget), isDeclared(isDeclared),
        elementSize(byteSize(variable.type)) {}

  /// The values of an array with these dimensions, from number `depth` on, that
  /// lie at `offset`. Returns how many stood in the outermost braces.
  uint64_t parse(const std::vector<uint64_t> &dimensions, size_t depth, uint64_t offset);

private:
  void parseElement(uint64_t offset);
  void parseAddress(uint64_t offset);
  void parseMaskedAddress(uint64_t offset);
  Relocation parseSymbol();
  void store(uint64_t offset, uint64_t bits);
  void store(uint64_t offset, const Constant &constant, Location where);
  void grow(uint64_t size);

  Cursor &cursor;
  Variable &variable;
  Budget &budget;
  const IsDeclared &isDeclared;
  unsigned elementSize;
};

[[noreturn]] void failType(Location where, const char *found, Type type) {
  throw PtxError(where, std::string("expected a value of type .") + name(type) + ", found " + found);
}

/// The bits of the f32 that is nearest to an f64.
uint64_t singleBits(uint64_t doubleBits) {
  double value = 0;
  std::memcpy(&value, &doubleBits, sizeof value);
  auto single = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &single, sizeof bits);
  return bits;
}

} // namespace

void Initializer::grow(uint64_t size) {
  if (size <= variable.init.size())
    return;
  uint64_t more = size - variable.init.size();
  if (more > budget.initialBytes)
    throw PtxError(variable.where, "the initialisers up to '" + variable.name + "' are too large");
  budget.initialBytes -= more;
  variable.init.resize(size);
}

void Initializer::store(uint64_t offset, uint64_t bits) {
  grow(offset + elementSize);
  for (unsigned i = 0; i < elementSize; ++i)
    variable.init[offset + i] = i < 8 ? static_cast<uint8_t>(bits >> (8 * i)) : 0;
}

/// Untyped variables take floating-point constants, too: .b32 as an f32, .b64 as an
/// f64. For smaller variables the assembler keeps the lowest bits, which LLVM overlooks
/// when it initialises a half; a GPU sees the same.
void Initializer::store(uint64_t offset, const Constant &constant, Location where) {
  Type type = variable.type;
  bool isFloat = type == Type::F32 || type == Type::F64;
  bool isUntyped = type == Type::B8 || type == Type::B16 || type == Type::B32 || type == Type::B64;
  if (isFloat && constant.isInteger())
    failType(where, "an integer", type);
  if (!isFloat && !isUntyped && !constant.isInteger())
    failType(where, "a floating-point constant", type);
  if (type == Type::F64 && constant.kind == Constant::Kind::Single)
    failType(where, "a constant that is written as 0f...", type);
  bool toSingle = constant.kind == Constant::Kind::Double && elementSize == 4;
  store(offset, toSingle ? singleBits(constant.bits) : constant.bits);
}

/// symbol, generic(symbol), each with what is added to it.
Relocation Initializer::parseSymbol() {
  Relocation relocation;
  relocation.size = elementSize;
  bool isGeneric = cursor.atWord("generic") && cursor.peek().text == "(";
  if (isGeneric) {
    cursor.take();
    cursor.expect("(", "after 'generic'");
  }
  Token symbol = cursor.expectWord("a value: a constant, a variable or a function");
  if (!isDeclared(symbol.text))
    throw PtxError(symbol.where,
                   "expected a function or a variable in .global or .const that is declared before, found " +
                       describe(symbol));
  if (isGeneric)
    cursor.expect(")", "after the name in 'generic'");
  relocation.symbol = symbol.text;
  relocation.generic = isGeneric;
  relocation.addend = parseOffset(cursor);
  return relocation;
}

void Initializer::parseAddress(uint64_t offset) {
  Location where = cursor.where();
  Relocation relocation = parseSymbol();
  if (elementSize != 4 && elementSize != 8)
    failType(where, "an address", variable.type);
  relocation.offset = offset;
  store(offset, 0);
  variable.relocations.push_back(std::move(relocation));
}

/// 0xFF00(symbol): one byte of an address (ISA 5.4.4, the mask() operator).
void Initializer::parseMaskedAddress(uint64_t offset) {
  Token mask = cursor.take();
  unsigned shift = 0;
  while (shift < 64 && mask.value != uint64_t(0xFF) << shift)
    shift += 8;
  if (shift == 64)
    throw PtxError(mask.where, "expected a mask with one byte of ones, as 0xFF00, found " + describe(mask));
  cursor.expect("(", "after a mask");
  Relocation relocation = parseSymbol();
  cursor.expect(")", "after the masked address");
  if (elementSize != 1)
    failType(mask.where, "one byte of an address", variable.type);
  relocation.offset = offset;
  relocation.shift = shift;
  store(offset, 0);
  variable.relocations.push_back(std::move(relocation));
}

void Initializer::parseElement(uint64_t offset) {
  if (variable.type == Type::F16 || variable.type == Type::F16x2)
    throw PtxError(cursor.where(), std::string("variables of type .") + name(variable.type) +
                                       " cannot be initialised: declare their bits");
  if (cursor.current().kind == Token::Kind::Integer && cursor.peek().text == "(")
    return parseMaskedAddress(offset);
  if (!atConstant(cursor))
    return parseAddress(offset);
  Location where = cursor.where();
  store(offset, parseConstant(cursor), where);
}

uint64_t Initializer::parse(const std::vector<uint64_t> &dimensions, size_t depth, uint64_t offset) {
  if (depth == dimensions.size()) {
    parseElement(offset);
    return 1;
  }
  // At most kMaxElements * 16.
  uint64_t stride = elementSize;
  for (size_t i = depth + 1; i < dimensions.size(); ++i)
    stride *= dimensions[i];
  uint64_t count = 0;
  cursor.expect("{", "before the values of an array or a vector");
  if (cursor.accept("}"))
    return 0;
  do {
    if (dimensions[depth] != 0 && count == dimensions[depth])
      throw PtxError(cursor.where(), "expected '}' after value number " + std::to_string(count) + ", found " +
                                         describe(cursor.current()));
    // An array without a size grows with its values.
    if (count >= 16 * kMaxElements / stride)
      throw PtxError(cursor.where(), "'" + variable.name + "' is larger than any memory");
    parse(dimensions, depth + 1, offset + count++ * stride);
  } while (cursor.accept(","));
  cursor.expect("}", "or ',' after a value");
  return count;
}

void ptx::parseInitializer(Cursor &cursor, Variable &variable, std::vector<uint64_t> dimensions,
                           Budget &budget, const IsDeclared &isDeclared) {
  if (variable.vectorWidth > 1)
    dimensions.push_back(variable.vectorWidth);
  uint64_t outermost = Initializer(cursor, variable, budget, isDeclared).parse(dimensions, 0, 0);
  if (variable.count != 0 || !variable.isArray)
    return;
  variable.count = outermost;
  size_t inner = dimensions.size() - (variable.vectorWidth > 1 ? 1 : 0);
  for (size_t i = 1; i < inner; ++i)
    variable.count *= dimensions[i];
}
