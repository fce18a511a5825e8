// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Debugging directives (ISA 11.5): where the lines of the PTX come from.

#include "Body.h"
#include "Parser.h"

using namespace fp8emu;
using namespace fp8emu::ptx;

/// .file 1 "name", time, size
void ptx::parseFile(Cursor &cursor, Module &module) {
  auto number = static_cast<uint32_t>(cursor.expectInteger("a file's number"));
  module.files.emplace_back(number, std::string(cursor.expectString("a file's name").text));
  for (int i = 0; i < 2 && cursor.accept(","); ++i)
    cursor.expectInteger("a file's time or size", UINT64_MAX);
}

/// , function_name label + 4, inlined_at 1 20 3: the call that was inlined, which
/// is not kept.
static void skipInlined(Cursor &cursor) {
  cursor.expectWord("the label of a function's name");
  if (cursor.accept("+"))
    cursor.expectInteger("an offset", UINT64_MAX);
  cursor.expect(",", "after a function's name");
  if (!cursor.atWord("inlined_at"))
    cursor.failExpected("'inlined_at'");
  cursor.take();
  for (const char *what : {"a file's number", "a line", "a column"})
    cursor.expectInteger(what);
}

void ptx::parseLoc(Cursor &cursor, Module &module) {
  SourceLine line;
  line.file = static_cast<uint32_t>(cursor.expectInteger("a file's number"));
  line.line = static_cast<uint32_t>(cursor.expectInteger("a line"));
  line.column = static_cast<uint32_t>(cursor.expectInteger("a column"));
  module.sourceLines.push_back(line);
  if (!cursor.accept(","))
    return;
  if (!cursor.atWord("function_name"))
    cursor.failExpected("'function_name'");
  cursor.take();
  skipInlined(cursor);
}
