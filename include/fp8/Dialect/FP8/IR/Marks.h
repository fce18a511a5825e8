// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The names of the dialect's discardable attributes, k<Name>AttrName for each line of Marks.def, and what is
// known of them.

#ifndef FP8_DIALECT_FP8_IR_MARKS_H
#define FP8_DIALECT_FP8_IR_MARKS_H

#include "llvm/ADT/StringRef.h"

namespace fp8 {

#define FP8_MARK(NAME, TEXT, ...) inline constexpr llvm::StringLiteral k##NAME##AttrName = TEXT;
#include "fp8/Dialect/FP8/IR/Marks.def"

/// The stages that can be the last at whose exit a mark stands, in order.
enum class MarkStage { ingest, recipe, fusion, batching, bufferize, kernels, code };

/// Returns the last stage at whose exit the discardable attribute `name` may stand; `code` for names that are
/// not the dialect's.
MarkStage getLastStage(llvm::StringRef name);

} // namespace fp8

#endif // FP8_DIALECT_FP8_IR_MARKS_H
