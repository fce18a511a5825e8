// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tokens as the parser goes through them: what is here, what comes next, what
// must be here.

#ifndef FP8EMU_PTX_CURSOR_H
#define FP8EMU_PTX_CURSOR_H

#include "Lexer.h"

namespace fp8emu::ptx {

class Cursor {
public:
  Cursor(std::string_view text, uint32_t firstLine);

  const Token &current() const { return here; }
  /// The token after the current one.
  const Token &peek() const { return ahead; }
  Location where() const { return here.where; }
  Token take();

  bool atEnd() const { return here.kind == Token::Kind::End; }
  bool atWord() const { return here.kind == Token::Kind::Word; }
  bool atWord(std::string_view text) const { return atWord() && here.text == text; }
  bool atDot() const { return here.kind == Token::Kind::Dot; }
  bool atDot(std::string_view text) const { return atDot() && here.text == text; }
  bool at(std::string_view punctuation) const {
    return here.kind == Token::Kind::Punctuation && here.text == punctuation;
  }

  /// Takes the token if it is this one.
  bool accept(std::string_view punctuation);
  bool acceptDot(std::string_view text);

  /// Takes the token, which must be of this kind. `what` completes "expected ...".
  void expect(std::string_view punctuation, const char *after);
  Token expectWord(const char *what);
  /// A word that can be declared, which `_` cannot.
  Token expectName(const char *what);
  Token expectString(const char *what);
  /// An integer from 0 to `limit`.
  uint64_t expectInteger(const char *what, uint64_t limit = UINT32_MAX);

  [[noreturn]] void failExpected(const std::string &what) const;

  /// Held while something that nests is parsed.
  class Nested {
  public:
    explicit Nested(Cursor &cursor);
    ~Nested() { --cursor.depth; }
    Nested(const Nested &) = delete;
    Nested &operator=(const Nested &) = delete;

  private:
    Cursor &cursor;
  };

private:
  Lexer lexer;
  Token here, ahead;
  unsigned depth = 0;
};

} // namespace fp8emu::ptx

#endif // FP8EMU_PTX_CURSOR_H
