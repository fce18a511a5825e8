// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How an entry's arguments and its module's state say what they are, from the recipe stage
// to the compiled library: discardable attributes.

#ifndef FP8_DIALECT_FP8_IR_BOUNDARY_H
#define FP8_DIALECT_FP8_IR_BOUNDARY_H

#include "llvm/ADT/StringRef.h"

namespace fp8 {

/// `tf.aliasing_output = R : i32` on an argument: result R becomes its value in the next
/// step and is written in place. JAX's donation; state arguments carry the same mark.
inline constexpr llvm::StringLiteral kCarriedAttrName = "tf.aliasing_output";

/// `fp8.state = "scale" | "amax_history"` on an argument or result: the state tensor it is.
inline constexpr llvm::StringLiteral kStateAttrName = "fp8.state";

/// `fp8.program_state = "seed"` on an argument or result: the state tensor that a global of
/// the program became; on the argument `fp8.initial` says what it begins with
/// (fp8-globals-to-state).
inline constexpr llvm::StringLiteral kProgramStateAttrName = "fp8.program_state";
inline constexpr llvm::StringLiteral kInitialAttrName = "fp8.initial";

/// `fp8.result = R : i32` on an argument that fp8-bind-results appended: the memory of
/// result R; on a result that bufferized entries still return, being of dynamic shape: R.
inline constexpr llvm::StringLiteral kResultAttrName = "fp8.result";

/// `fp8.unsigned` on an argument or result of integers: for the caller they are unsigned. Types
/// inside the program are signless (fp8-make-signless).
inline constexpr llvm::StringLiteral kUnsignedAttrName = "fp8.unsigned";

/// The two functions of one step, forward and backward, that share residuals (--pair):
/// `fp8.backward = @B` on the first; `fp8.residual` on those of its results, and of B's
/// arguments, that are handed over, in this order.
inline constexpr llvm::StringLiteral kBackwardAttrName = "fp8.backward";
inline constexpr llvm::StringLiteral kResidualAttrName = "fp8.residual";

/// `fp8.returned = R : i32` on an argument of a pair's forward: result R, a residual, is this
/// argument as it was given. The caller hands the argument's memory to backward; nothing is copied.
inline constexpr llvm::StringLiteral kReturnedAttrName = "fp8.returned";

/// `fp8.state_columns` and `fp8.amax_history_len` on the module: the layout of the state,
/// written by fp8-apply-recipe (see StateLayout).
inline constexpr llvm::StringLiteral kColumnsAttrName = "fp8.state_columns";
inline constexpr llvm::StringLiteral kHistoryAttrName = "fp8.amax_history_len";

} // namespace fp8

#endif // FP8_DIALECT_FP8_IR_BOUNDARY_H
