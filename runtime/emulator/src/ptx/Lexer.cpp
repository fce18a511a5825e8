// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX text as tokens. Comments, white space and @@DWARF lines fall away here.

#include "Lexer.h"
#include "Parser.h"

#include <charconv>
#include <cstdio>
#include <cstring>

using namespace fp8emu;
using namespace fp8emu::ptx;

namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool isWordCharacter(char c) { return isLetter(c) || isDigit(c) || c == '_' || c == '$'; }

/// The digit's value in bases up to 16, 16 for other characters.
unsigned digitValue(char c) {
  if (isDigit(c))
    return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f')
    return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F')
    return static_cast<unsigned>(c - 'A' + 10);
  return 16;
}

std::string printable(char c) {
  if (c >= ' ' && c <= '~')
    return std::string("'") + c + "'";
  char text[8];
  std::snprintf(text, sizeof text, "'\\x%02x'", static_cast<unsigned char>(c));
  return text;
}

} // namespace

std::string ptx::describe(const Token &token) {
  // The quotation stays short and readable, whatever the token.
  std::string text;
  for (char c : token.text.substr(0, 60))
    text += c >= ' ' && c <= '~' ? c : '?';
  if (token.text.size() > 60)
    text += "...";
  switch (token.kind) {
  case Token::Kind::End:
    return "the end of the text";
  case Token::Kind::Dot:
    return "'." + text + "'";
  case Token::Kind::String:
    return "the string \"" + text + "\"";
  default:
    return "'" + text + "'";
  }
}

char Lexer::at(size_t ahead) const { return ahead < text.size() - position ? text[position + ahead] : '\0'; }

void Lexer::advance(size_t count) {
  for (; count > 0; --count) {
    bool newLine = text[position++] == '\n';
    where.line += newLine;
    where.column = newLine ? 1 : where.column + 1;
  }
}

template <typename Predicate>
size_t Lexer::lengthWhile(size_t from, Predicate accepted) const {
  size_t end = position + from;
  while (end < text.size() && accepted(text[end]))
    ++end;
  return end - position;
}

void Lexer::skipComment() {
  Location begin = where;
  advance(2);
  while (!(at() == '*' && at(1) == '/')) {
    if (atEnd())
      throw PtxError(begin, "this comment does not end: expected '*/', found the end of the text");
    advance(1);
  }
  advance(2);
}

void Lexer::skipSpace() {
  auto isSpace = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  auto inLine = [](char c) { return c != '\n'; };
  for (;;) {
    if (size_t length = lengthWhile(0, isSpace))
      advance(length);
    else if (at() == '/' && at(1) == '/')
      advance(lengthWhile(0, inLine));
    else if (at() == '/' && at(1) == '*')
      skipComment();
    else if (at() == '@' && at(1) == '@')
      advance(lengthWhile(0, inLine)); // @@DWARF, of PTX before 2.0 (ISA 11.5.1)
    else
      break;
  }
  // A C string that was passed with its terminator, or padded with more of them.
  if (at() == '\0' && lengthWhile(0, [](char c) { return c == '\0'; }) == text.size() - position)
    position = text.size();
}

Token Lexer::token(Token::Kind kind, size_t length) {
  Token result;
  result.kind = kind;
  result.where = where;
  result.text = text.substr(position, length);
  advance(length);
  return result;
}

Token Lexer::next() {
  skipSpace();
  char c = at();
  if (atEnd())
    return token(Token::Kind::End, 0);
  // %, too, is an operator where no name follows.
  if (isLetter(c) || c == '_' || c == '$' || (c == '%' && isWordCharacter(at(1)) && !isDigit(at(1))))
    return word();
  // `.5` is a number, but for `.2d` after a word.
  if (c == '.' && isDigit(at(1)) && (position == 0 || !isWordCharacter(text[position - 1])))
    return decimalFloat();
  if (c == '.')
    return dot();
  if (isDigit(c))
    return number();
  return c == '"' ? string() : punctuation();
}

Token Lexer::word() { return token(Token::Kind::Word, lengthWhile(1, isWordCharacter)); }

Token Lexer::dot() {
  size_t length = lengthWhile(1, isWordCharacter);
  if (length == 1)
    throw PtxError(where, "expected a directive or modifier after '.', found " + printable(at(1)));
  while (at(length) == ':' && at(length + 1) == ':' && isWordCharacter(at(length + 2)))
    length = lengthWhile(length + 2, isWordCharacter);
  Token result = token(Token::Kind::Dot, length);
  result.text.remove_prefix(1);
  return result;
}

/// Numbers end where no letter or digit follows.
void Lexer::finishNumber() const {
  if (isWordCharacter(at()))
    throw PtxError(where, "expected the end of a number, found " + printable(at()));
}

/// 0f or 0d and the bits in hexadecimal (ISA 4.5.2).
Token Lexer::exactFloat(unsigned digits) {
  size_t length = lengthWhile(2, [](char c) { return digitValue(c) < 16; });
  if (length != 2 + digits)
    throw PtxError(where, "expected " + std::to_string(digits) + " hexadecimal digits after '" +
                              std::string(text.substr(position, 2)) + "', found " +
                              std::to_string(length - 2));
  Token result = token(Token::Kind::Float, length);
  result.isSingle = digits == 8;
  for (char c : result.text.substr(2))
    result.value = result.value * 16 + digitValue(c);
  finishNumber();
  return result;
}

Token Lexer::decimalFloat() {
  double value = 0;
  const char *begin = text.data() + position;
  auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  if (error != std::errc())
    throw PtxError(where, "this number is not within the range of an f64");
  Token result = token(Token::Kind::Float, static_cast<size_t>(end - begin));
  std::memcpy(&result.value, &value, sizeof value);
  finishNumber();
  return result;
}

Token Lexer::number() {
  char second = static_cast<char>(at(1) | 0x20);
  unsigned base = 10;
  if (at() == '0' && (second == 'f' || second == 'd'))
    return exactFloat(second == 'f' ? 8 : 16);
  if (at() == '0' && (second == 'x' || second == 'b'))
    base = second == 'x' ? 16 : 2;
  else if (char after = at(lengthWhile(0, isDigit)); after == '.' || after == 'e' || after == 'E')
    return decimalFloat();
  else if (at() == '0')
    base = 8;
  size_t prefix = base == 16 || base == 2 ? 2 : 0;
  size_t length = lengthWhile(prefix, [&](char c) { return digitValue(c) < base; });
  if (length == prefix)
    throw PtxError(where, "expected digits after '" + std::string(text.substr(position, 2)) + "'");
  Token result = token(Token::Kind::Integer, length);
  for (char c : result.text.substr(prefix)) {
    if (result.value > (UINT64_MAX - digitValue(c)) / base)
      throw PtxError(result.where, "this number does not fit in 64 bits");
    result.value = result.value * base + digitValue(c);
  }
  result.isUnsigned = at() == 'U' || result.value > INT64_MAX;
  if (at() == 'U')
    advance(1);
  finishNumber();
  return result;
}

Token Lexer::string() {
  // A backslash is a character like any other.
  size_t length = lengthWhile(1, [](char c) { return c != '"' && c != '\n'; });
  if (at(length) != '"')
    throw PtxError(where, "this string does not end: expected '\"' on the same line");
  Token result = token(Token::Kind::String, length + 1);
  result.text = result.text.substr(1, length - 1);
  return result;
}

Token Lexer::punctuation() {
  for (const char *two : {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"})
    if (at() == two[0] && at(1) == two[1])
      return token(Token::Kind::Punctuation, 2);
  if (at() == '\0' || !std::strchr("()[]{}<>,;:?@!~+-*/%&|^=", at()))
    throw PtxError(where, "found the character " + printable(at()) + ", which begins nothing in PTX");
  return token(Token::Kind::Punctuation, 1);
}
