// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX text as tokens (ISA 4.1 to 4.5), one at a time.

#ifndef FP8EMU_PTX_LEXER_H
#define FP8EMU_PTX_LEXER_H

#include "Ast.h"

#include <string>
#include <string_view>

namespace fp8emu::ptx {

struct Token {
  enum class Kind : uint8_t {
    End,
    /// A name, which may begin with %, $ or _: also the sink `_` and opcodes.
    Word,
    /// A directive, type or modifier: `text` is what follows the dot, with its
    /// `::` as in "shared::cta".
    Dot,
    /// `value`; `isUnsigned` where it has the suffix U or is above the largest s64.
    Integer,
    /// `value` holds the bits of an f64, of an f32 where `isSingle`.
    Float,
    /// `text` is what stands between the quotation marks.
    String,
    /// An operator or a bracket.
    Punctuation,
  };

  Kind kind = Kind::End;
  bool isUnsigned = false;
  bool isSingle = false;
  Location where;
  /// Points into the text that is read.
  std::string_view text;
  uint64_t value = 0;
};

/// The token as an error names it: "'add'", "the end of the text".
std::string describe(const Token &token);

class Lexer {
public:
  Lexer(std::string_view text, uint32_t firstLine) : text(text), where{firstLine, 1} {}

  /// The next token, Kind::End for ever after the last.
  Token next();

private:
  void skipSpace();
  void skipComment();
  void advance(size_t count);
  /// The character `ahead` of the current one, NUL at the end.
  char at(size_t ahead = 0) const;
  bool atEnd() const { return position == text.size(); }
  /// The piece of text from the current position that `accepted` holds for.
  template <typename Predicate>
  size_t lengthWhile(size_t from, Predicate accepted) const;

  Token word();
  Token dot();
  Token number();
  Token exactFloat(unsigned digits);
  Token decimalFloat();
  Token string();
  Token punctuation();
  Token token(Token::Kind kind, size_t length);
  void finishNumber() const;

  std::string_view text;
  size_t position = 0;
  Location where;
};

} // namespace fp8emu::ptx

#endif // FP8EMU_PTX_LEXER_H
