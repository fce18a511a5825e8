// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attribute by which a target distinguishes loops over rows from loops of the program.

#ifndef FP8_CONVERSION_EXPANDROWS_ROWLOOPS_H
#define FP8_CONVERSION_EXPANDROWS_ROWLOOPS_H

#include "llvm/ADT/StringRef.h"

namespace fp8 {

/// Attribute on an `scf.forall` over rows: the number of elements of a row. The iterations are
/// independent, and their temporaries are small enough for the stack.
constexpr llvm::StringLiteral kRowElementsAttrName = "fp8.row_elements";

} // namespace fp8

#endif // FP8_CONVERSION_EXPANDROWS_ROWLOOPS_H
