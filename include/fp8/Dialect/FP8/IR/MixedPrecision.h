// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The discardable attribute that says in which precision a part of a program runs.

#ifndef FP8_DIALECT_FP8_IR_MIXEDPRECISION_H
#define FP8_DIALECT_FP8_IR_MIXEDPRECISION_H

#include "fp8/Dialect/FP8/IR/Marks.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

namespace fp8 {

/// Returns whether `word` is a value of the attribute.
inline bool isMixedPrecision(llvm::StringRef word) {
  return llvm::is_contained({"off", "bf16", "f16", "tf32"}, word);
}

} // namespace fp8

#endif // FP8_DIALECT_FP8_IR_MIXEDPRECISION_H
