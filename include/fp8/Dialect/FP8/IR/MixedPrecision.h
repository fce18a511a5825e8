// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The discardable attribute that says in which precision a part of a program runs.

#ifndef FP8_DIALECT_FP8_IR_MIXEDPRECISION_H
#define FP8_DIALECT_FP8_IR_MIXEDPRECISION_H

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

namespace fp8 {

/// `fp8.mixed_precision = "off" | "bf16" | "f16" | "tf32"` on an operation, a call or a function: in which
/// precision the contractions of the operation run, of its regions, or of the function that it calls.
/// "off" leaves them as the program wrote them. The innermost attribute holds; a function's own is inside
/// that of the call.
inline constexpr llvm::StringLiteral kMixedPrecisionAttrName = "fp8.mixed_precision";

/// `fp8.tf32` on an fp8.matmul or fp8.grouped_matmul of f32: its operands have the precision of TF32, 10 bits
/// of mantissa, so that tensor cores which read no more of them multiply the same values.
inline constexpr llvm::StringLiteral kTF32AttrName = "fp8.tf32";

/// Returns whether `word` is a value of the attribute.
inline bool isMixedPrecision(llvm::StringRef word) {
  return llvm::is_contained({"off", "bf16", "f16", "tf32"}, word);
}

} // namespace fp8

#endif // FP8_DIALECT_FP8_IR_MIXEDPRECISION_H
