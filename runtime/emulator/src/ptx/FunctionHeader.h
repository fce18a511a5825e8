// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions: the header of .entry and .func, and the directives between it and the
// body (ISA 11.1.1, 11.4).

#ifndef FP8EMU_PTX_FUNCTIONHEADER_H
#define FP8EMU_PTX_FUNCTIONHEADER_H

#include "Cursor.h"

namespace fp8emu::ptx {

/// From .entry or .func to before the body or the `;` of a declaration.
Function parseFunctionHeader(Cursor &cursor, Linkage linkage);

} // namespace fp8emu::ptx

#endif // FP8EMU_PTX_FUNCTIONHEADER_H
