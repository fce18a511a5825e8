// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fp8-ptx coverage: lists the instructions of PTX files, and those that the emulator lacks.

#ifndef FP8_TOOLS_FP8PTX_COVERAGE_H
#define FP8_TOOLS_FP8PTX_COVERAGE_H

#include "llvm/Support/Error.h"

#include <string>

namespace fp8ptx {

/// Prints the table of a file, or only the missing instructions; returns whether none is missing.
llvm::Expected<bool> coverage(const std::string &file, bool missingOnly);

} // namespace fp8ptx

#endif // FP8_TOOLS_FP8PTX_COVERAGE_H
