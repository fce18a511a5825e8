// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The mark of loops over rows, by which a target tells them from a program's own.

#ifndef FP8_CONVERSION_EXPANDROWS_ROWLOOPS_H
#define FP8_CONVERSION_EXPANDROWS_ROWLOOPS_H

#include "llvm/ADT/StringRef.h"

namespace fp8 {

/// On an `scf.forall` over rows: the elements of one row. Its iterations share nothing, and what
/// one of them needs for itself is small.
constexpr llvm::StringLiteral kRowElementsAttrName = "fp8.row_elements";

} // namespace fp8

#endif // FP8_CONVERSION_EXPANDROWS_ROWLOOPS_H
