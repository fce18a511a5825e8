// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From PTX text to the tree of Ast.h.

#ifndef FP8EMU_PTX_PARSER_H
#define FP8EMU_PTX_PARSER_H

#include "Ast.h"

#include <stdexcept>
#include <string>
#include <string_view>

namespace fp8emu {

/// What is wrong with a PTX text, and where. what() is "line:column: message"; the
/// line alone where the column is 0.
class PtxError : public std::runtime_error {
public:
  PtxError(ptx::Location where, const std::string &message);
  ptx::Location where;
  std::string message;
};

namespace ptx {

/// Parses a module and resolves every name in it. Any text ends in a module or in
/// a PtxError; it may hold NUL bytes, be truncated, or nest without end. `firstLine` is
/// the number of its first line, where it is part of a larger text.
Module parse(std::string_view text, uint32_t firstLine = 1);

} // namespace ptx
} // namespace fp8emu

#endif // FP8EMU_PTX_PARSER_H
