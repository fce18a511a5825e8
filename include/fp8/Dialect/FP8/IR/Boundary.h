// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The discardable attributes that describe the arguments and results of entry points, and the
// state of a module, from ingest to the compiled library.

#ifndef FP8_DIALECT_FP8_IR_BOUNDARY_H
#define FP8_DIALECT_FP8_IR_BOUNDARY_H

#include "fp8/Dialect/FP8/IR/Marks.h"
#include "llvm/ADT/StringRef.h"

namespace fp8 {

/// `tf.aliasing_output = R : i32` on an argument: result R is the value of the argument in the
/// next step and is written into its memory. JAX writes this attribute for donated arguments;
/// state arguments have it too.
inline constexpr llvm::StringLiteral kCarriedAttrName = "tf.aliasing_output";

} // namespace fp8

#endif // FP8_DIALECT_FP8_IR_BOUNDARY_H
