// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constant expressions: C's grammar, with PTX's own rules for the types
// (ISA 4.5.6). Integers are s64 or u64 and wrap around. Where NVIDIA's assembler
// departs from the ISA's table, its results are taken: a kernel has to see the same
// numbers on a GPU.

#include "ConstantExpression.h"
#include "../Parser.h"

#include <cstring>

using namespace fp8emu;
using namespace fp8emu::ptx;

using Kind = Constant::Kind;

namespace {

struct Operator {
  const char *text;
  /// Higher binds tighter.
  int precedence;
};

constexpr int kTermPrecedence = 10;
constexpr Operator kOperators[] = {
    {"||", 1}, {"&&", 2}, {"|", 3},  {"^", 4},  {"&", 5}, {"==", 6}, {"!=", 6}, {"<", 7},  {">", 7},
    {"<=", 7}, {">=", 7}, {"<<", 8}, {">>", 8}, {"+", 9}, {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10},
};

Constant conditional(Cursor &cursor);

Constant integer(int64_t value) { return {Kind::Signed, static_cast<uint64_t>(value)}; }

Constant unsignedInteger(uint64_t value) { return {Kind::Unsigned, value}; }

Constant real(double value) {
  Constant result{Kind::Double, 0};
  std::memcpy(&result.bits, &value, sizeof value);
  return result;
}

double asDouble(const Constant &value) {
  double result = 0;
  std::memcpy(&result, &value.bits, sizeof result);
  return result;
}

std::string textOf(const Constant &value) {
  if (!value.isInteger())
    return "a floating-point constant";
  bool isSigned = value.kind == Kind::Signed;
  return isSigned ? std::to_string(static_cast<int64_t>(value.bits)) : std::to_string(value.bits);
}

void requireInteger(const Constant &value, const Token &op) {
  if (!value.isInteger())
    throw PtxError(op.where,
                   "expected integers beside " + describe(op) + ", found a floating-point constant");
}

void refuseSingle(const Constant &value, const Token &op) {
  if (value.kind == Kind::Single)
    throw PtxError(op.where, describe(op) + " cannot be applied to a constant that is written as 0f...");
}

Constant cast(const Constant &value, const Token &type) {
  requireInteger(value, type);
  return {type.text == "s64" ? Kind::Signed : Kind::Unsigned, value.bits};
}

/// A parenthesis: a cast, or an expression.
Constant parenthesis(Cursor &cursor);

Constant primary(Cursor &cursor) {
  const Token &token = cursor.current();
  if (token.kind == Token::Kind::Integer)
    return {token.isUnsigned ? Kind::Unsigned : Kind::Signed, cursor.take().value};
  if (token.kind == Token::Kind::Float)
    return {token.isSingle ? Kind::Single : Kind::Double, cursor.take().value};
  if (cursor.atWord("WARP_SZ")) {
    cursor.take();
    return integer(32);
  }
  if (cursor.at("("))
    return parenthesis(cursor);
  cursor.failExpected("a constant");
}

Constant applyUnary(const Token &op, const Constant &value) {
  refuseSingle(value, op);
  if (op.text == "+")
    return value;
  if (op.text == "-")
    return value.kind == Kind::Double ? real(-asDouble(value)) : Constant{value.kind, 0 - value.bits};
  requireInteger(value, op);
  return op.text == "!" ? integer(value.bits == 0) : unsignedInteger(~value.bits);
}

Constant unary(Cursor &cursor) {
  Cursor::Nested nested(cursor);
  for (const char *op : {"+", "-", "!", "~"})
    if (cursor.at(op)) {
      Token token = cursor.take();
      return applyUnary(token, unary(cursor));
    }
  return primary(cursor);
}

Constant parenthesis(Cursor &cursor) {
  Cursor::Nested nested(cursor);
  cursor.expect("(", "before an expression");
  if (!cursor.atDot()) {
    Constant value = conditional(cursor);
    cursor.expect(")", "after an expression");
    return value;
  }
  if (!cursor.atDot("s64") && !cursor.atDot("u64"))
    cursor.failExpected("the cast '.s64' or '.u64'");
  Token type = cursor.take();
  cursor.expect(")", "after the type of a cast");
  return cast(unary(cursor), type);
}

Constant applyToDoubles(const Token &op, double a, double b) {
  if (op.text == "+")
    return real(a + b);
  if (op.text == "-")
    return real(a - b);
  if (op.text == "*")
    return real(a * b);
  if (op.text == "/") {
    if (b == 0)
      throw PtxError(op.where, "division by zero");
    return real(a / b);
  }
  if (op.text == "<")
    return integer(a < b);
  if (op.text == ">")
    return integer(a > b);
  if (op.text == "<=")
    return integer(a <= b);
  if (op.text == ">=")
    return integer(a >= b);
  if (op.text == "==")
    return integer(a == b);
  if (op.text == "!=")
    return integer(a != b);
  throw PtxError(op.where, "expected integers beside " + describe(op) + ", found a floating-point constant");
}

/// The first operand keeps its type, the second is a u64 (ISA 4.5.6), of which the
/// assembler takes the lowest six bits.
Constant shift(const Token &op, const Constant &a, uint64_t count) {
  bool negative = a.kind == Kind::Signed && static_cast<int64_t>(a.bits) < 0;
  count %= 64;
  if (op.text == "<<")
    return {a.kind, a.bits << count};
  return {a.kind, negative ? ~(~a.bits >> count) : a.bits >> count};
}

Constant divide(const Token &op, const Constant &a, const Constant &b, bool isSigned) {
  if (b.bits == 0)
    throw PtxError(op.where, "division by zero");
  // ISA 4.5.6: the operands of % are u64. So is its result, to the assembler.
  if (op.text == "%")
    return unsignedInteger(a.bits % b.bits);
  if (!isSigned)
    return unsignedInteger(a.bits / b.bits);
  if (b.bits == UINT64_MAX) // of the smallest s64, too
    return {Kind::Signed, 0 - a.bits};
  return integer(static_cast<int64_t>(a.bits) / static_cast<int64_t>(b.bits));
}

bool less(uint64_t a, uint64_t b, bool isSigned) {
  return isSigned ? static_cast<int64_t>(a) < static_cast<int64_t>(b) : a < b;
}

Constant applyToIntegers(const Token &op, const Constant &a, const Constant &b) {
  bool isSigned = a.kind == Kind::Signed && b.kind == Kind::Signed;
  Kind kind = isSigned ? Kind::Signed : Kind::Unsigned;
  if (op.text == "<<" || op.text == ">>")
    return shift(op, a, b.bits);
  if (op.text == "/" || op.text == "%")
    return divide(op, a, b, isSigned);
  if (op.text == "+")
    return {kind, a.bits + b.bits};
  if (op.text == "-")
    return {kind, a.bits - b.bits};
  if (op.text == "*")
    return {kind, a.bits * b.bits};
  if (op.text == "&")
    return {kind, a.bits & b.bits};
  if (op.text == "|")
    return {kind, a.bits | b.bits};
  if (op.text == "^")
    return {kind, a.bits ^ b.bits};
  if (op.text == "<")
    return integer(less(a.bits, b.bits, isSigned));
  if (op.text == ">")
    return integer(less(b.bits, a.bits, isSigned));
  if (op.text == "<=")
    return integer(!less(b.bits, a.bits, isSigned));
  if (op.text == ">=")
    return integer(!less(a.bits, b.bits, isSigned));
  if (op.text == "==")
    return integer(a.bits == b.bits);
  if (op.text == "!=")
    return integer(a.bits != b.bits);
  return integer(op.text == "&&" ? a.bits && b.bits : a.bits || b.bits);
}

Constant applyBinary(const Token &op, const Constant &a, const Constant &b) {
  refuseSingle(a, op);
  refuseSingle(b, op);
  if (a.isInteger() != b.isInteger())
    throw PtxError(op.where, "expected two integers or two floating-point constants beside " + describe(op) +
                                 ", found one of each");
  if (a.isInteger())
    return applyToIntegers(op, a, b);
  return applyToDoubles(op, asDouble(a), asDouble(b));
}

/// The precedence of the operator that the cursor is at, 0 for none.
int precedenceHere(const Cursor &cursor) {
  if (cursor.current().kind == Token::Kind::Punctuation)
    for (const Operator &op : kOperators)
      if (cursor.current().text == op.text)
        return op.precedence;
  return 0;
}

Constant binary(Cursor &cursor, int least) {
  Constant left = unary(cursor);
  for (int precedence; (precedence = precedenceHere(cursor)) >= least && precedence > 0;) {
    Token op = cursor.take();
    left = applyBinary(op, left, binary(cursor, precedence + 1));
  }
  return left;
}

Constant conditional(Cursor &cursor) {
  Cursor::Nested nested(cursor);
  Constant condition = binary(cursor, 1);
  if (!cursor.at("?"))
    return condition;
  Token question = cursor.take();
  requireInteger(condition, question);
  Constant yes = conditional(cursor);
  cursor.expect(":", "between the values of '?'");
  Constant no = conditional(cursor);
  requireInteger(yes, question);
  requireInteger(no, question);
  return condition.bits ? yes : no;
}

} // namespace

bool ptx::atConstant(const Cursor &cursor) {
  Token::Kind kind = cursor.current().kind;
  return kind == Token::Kind::Integer || kind == Token::Kind::Float || cursor.atWord("WARP_SZ") ||
         cursor.at("(") || cursor.at("-") || cursor.at("+") || cursor.at("~") || cursor.at("!");
}

Constant ptx::parseConstant(Cursor &cursor) { return conditional(cursor); }

Constant ptx::parseTerm(Cursor &cursor) { return binary(cursor, kTermPrecedence); }

int64_t ptx::parseOffset(Cursor &cursor) {
  uint64_t offset = 0;
  while (cursor.at("+") || cursor.at("-")) {
    Token sign = cursor.take();
    Constant term = parseTerm(cursor);
    requireInteger(term, sign);
    offset = sign.text == "+" ? offset + term.bits : offset - term.bits;
  }
  return static_cast<int64_t>(offset);
}

uint64_t ptx::parseCount(Cursor &cursor, const char *what, uint64_t limit) {
  Location where = cursor.where();
  if (!atConstant(cursor))
    cursor.failExpected(what);
  Constant value = parseConstant(cursor);
  bool negative = value.kind == Kind::Signed && static_cast<int64_t>(value.bits) < 0;
  if (!value.isInteger() || negative || value.bits > limit)
    throw PtxError(where, "expected " + std::string(what) + " from 0 to " + std::to_string(limit) +
                              ", found " + textOf(value));
  return value.bits;
}
