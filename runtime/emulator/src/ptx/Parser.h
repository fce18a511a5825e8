// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From PTX text to the tree of Ast.h.

#ifndef FP8EMU_PTX_PARSER_H
#define FP8EMU_PTX_PARSER_H

#include "Ast.h"

#include "fp8emu/Types.h"

#include <string_view>

namespace fp8emu::ptx {

/// Parses a module and resolves every name in it. Any text ends in a module or in
/// a PtxError; it may hold NUL bytes, be truncated, or nest without end. `firstLine` is
/// the number of its first line, where it is part of a larger text.
Module parse(std::string_view text, uint32_t firstLine = 1);

} // namespace fp8emu::ptx

#endif // FP8EMU_PTX_PARSER_H
