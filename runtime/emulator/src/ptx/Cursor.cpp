// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tokens as the parser goes through them.

#include "Cursor.h"
#include "Parser.h"

using namespace fp8emu;
using namespace fp8emu::ptx;

namespace {
/// Far above what any program nests, far below what a stack bears.
constexpr unsigned kMaxDepth = 200;
} // namespace

Cursor::Cursor(std::string_view text, uint32_t firstLine) : lexer(text, firstLine) {
  here = lexer.next();
  ahead = lexer.next();
}

Token Cursor::take() {
  Token taken = here;
  here = ahead;
  ahead = lexer.next();
  return taken;
}

bool Cursor::accept(std::string_view punctuation) {
  bool found = at(punctuation);
  if (found)
    take();
  return found;
}

bool Cursor::acceptDot(std::string_view text) {
  bool found = atDot(text);
  if (found)
    take();
  return found;
}

void Cursor::failExpected(const std::string &what) const {
  throw PtxError(here.where, "expected " + what + ", found " + describe(here));
}

void Cursor::expect(std::string_view punctuation, const char *after) {
  if (!accept(punctuation))
    failExpected("'" + std::string(punctuation) + "' " + after);
}

Token Cursor::expectWord(const char *what) {
  if (!atWord())
    failExpected(what);
  return take();
}

Token Cursor::expectName(const char *what) {
  if (atWord("_"))
    failExpected(what);
  return expectWord(what);
}

Token Cursor::expectString(const char *what) {
  if (here.kind != Token::Kind::String)
    failExpected(what);
  return take();
}

uint64_t Cursor::expectInteger(const char *what, uint64_t limit) {
  if (here.kind != Token::Kind::Integer)
    failExpected(what);
  if (here.value > limit)
    throw PtxError(here.where, "expected " + std::string(what) + " of at most " + std::to_string(limit) +
                                   ", found " + describe(here));
  return take().value;
}

Cursor::Nested::Nested(Cursor &cursor) : cursor(cursor) {
  if (cursor.depth >= kMaxDepth)
    throw PtxError(cursor.where(), "this nests deeper than " + std::to_string(kMaxDepth) + " levels");
  ++cursor.depth;
}
