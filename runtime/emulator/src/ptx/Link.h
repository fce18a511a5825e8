// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several PTX texts as one module: what a linker does. The linked image is text too:
// the units one after the other, each behind a line with its name, so that a line of
// an error is a line of the image.

#ifndef FP8EMU_PTX_LINK_H
#define FP8EMU_PTX_LINK_H

#include "Ast.h"

#include <string>
#include <string_view>
#include <vector>

namespace fp8emu::ptx {

/// A PTX text and what it is called in errors.
struct Unit {
  std::string name, text;
};

/// The image of these units.
std::string join(const std::vector<Unit> &units);

/// Joins modules to one (ISA 11.6): a definition of one module that is .visible or .weak stands for .extern
/// of that name in the others; names without linkage stay each module's own. Throws PtxError where two define
/// one name. A name that none defines stays declared: using it is the decoder's error.
Module link(std::vector<Module> modules);

/// Parses PTX text, or an image that join made.
Module parseImage(std::string_view image);

} // namespace fp8emu::ptx

#endif // FP8EMU_PTX_LINK_H
