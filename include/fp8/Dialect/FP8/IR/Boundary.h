// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The discardable attributes that describe the arguments and results of entry points, and the
// state of a module, from ingest to the compiled library.

#ifndef FP8_DIALECT_FP8_IR_BOUNDARY_H
#define FP8_DIALECT_FP8_IR_BOUNDARY_H

#include "llvm/ADT/StringRef.h"

namespace fp8 {

/// `tf.aliasing_output = R : i32` on an argument: result R is the value of the argument in the
/// next step and is written into its memory. JAX writes this attribute for donated arguments;
/// state arguments have it too.
inline constexpr llvm::StringLiteral kCarriedAttrName = "tf.aliasing_output";

/// `fp8.state = "scale" | "amax_history"` on an argument or result: which state tensor it is.
inline constexpr llvm::StringLiteral kStateAttrName = "fp8.state";

/// `fp8.program_state = "seed"` on an argument or result: the state tensor that a global of
/// the program became (fp8-globals-to-state). `fp8.initial` on the argument is its initial value.
inline constexpr llvm::StringLiteral kProgramStateAttrName = "fp8.program_state";
inline constexpr llvm::StringLiteral kInitialAttrName = "fp8.initial";

/// `fp8.derived` on an argument with `fp8.program_state`: an entry point computes the tensor from others, so
/// that it is not saved. `fp8.parameters` on a function says which (fp8-keep-parameters):
/// `{entry = "main_fp8_parameters", arguments = [0], casts = [{arguments = [0], tensors =
/// ["weight/fc/data"]}]}`, where the arguments are those of the function. `fp8.parameter_casts` on the module
/// lists the casts of all weights, for the report.
inline constexpr llvm::StringLiteral kDerivedAttrName = "fp8.derived";
inline constexpr llvm::StringLiteral kParametersAttrName = "fp8.parameters";
inline constexpr llvm::StringLiteral kParameterCastsAttrName = "fp8.parameter_casts";

/// `fp8.result = R : i32` on an argument that fp8-bind-results appended: it is the memory of
/// result R. On a result of a bufferized entry point, which has a dynamic shape: its number R
/// among the results of the program.
inline constexpr llvm::StringLiteral kResultAttrName = "fp8.result";

/// `fp8.unsigned` on an argument or result of integers: they are unsigned for the caller. Inside
/// the program all integers are signless (fp8-make-signless).
inline constexpr llvm::StringLiteral kUnsignedAttrName = "fp8.unsigned";

/// Forward and backward as two functions that share residuals (--pair): `fp8.backward = @B` on
/// the forward function names the backward function. `fp8.residual` marks the results of forward
/// that are residuals and the arguments of B that receive them, in the same order.
inline constexpr llvm::StringLiteral kBackwardAttrName = "fp8.backward";
inline constexpr llvm::StringLiteral kResidualAttrName = "fp8.residual";

/// `fp8.returned = R : i32` on an argument of a pair's forward: result R, a residual, is this
/// argument as it was given. The caller hands the argument's memory to backward; nothing is copied.
inline constexpr llvm::StringLiteral kReturnedAttrName = "fp8.returned";

/// `fp8.state_columns` and `fp8.amax_history_len` on the module: the layout of the state,
/// written by fp8-apply-recipe (see StateLayout).
inline constexpr llvm::StringLiteral kColumnsAttrName = "fp8.state_columns";
inline constexpr llvm::StringLiteral kHistoryAttrName = "fp8.amax_history_len";

/// `fp8.grid = array<i64: …>` on the module of a program for several ranks: the extents of the grid on which
/// they lie, of which one may be dynamic. `fp8.grid_axes` names the axes; without it they are numbers.
inline constexpr llvm::StringLiteral kGridAttrName = "fp8.grid";
inline constexpr llvm::StringLiteral kGridAxesAttrName = "fp8.grid_axes";

/// `fp8.reduce_amax_axes = array<i64: …>` on the module: the axes of the grid over which amaxes are combined;
/// all without it.
inline constexpr llvm::StringLiteral kReduceAxesAttrName = "fp8.reduce_amax_axes";

/// Notes of fp8-quantize-before-gather on an fp8.all_gather, for the report: the bytes that a rank sends less
/// because shards are cast before (`fp8.saved_bytes = N : i64`), or the reason why they are not
/// (`fp8.gathered_wide = "…"`).
inline constexpr llvm::StringLiteral kSavedBytesAttrName = "fp8.saved_bytes";
inline constexpr llvm::StringLiteral kGatheredWideAttrName = "fp8.gathered_wide";

/// Note of fp8-bucket-reductions on an fp8.all_reduce, for the report: how many it was before.
inline constexpr llvm::StringLiteral kJoinedAttrName = "fp8.joined";

/// `fp8.batch = D : i64` on an argument (--data-parallel): its value differs from rank to rank along axis
/// `fp8.batch_axis` (on the module); the ranks' tensors are parts, along dimension D, of one batch. -1 for a
/// tensor without dimensions.
inline constexpr llvm::StringLiteral kBatchAttrName = "fp8.batch";
inline constexpr llvm::StringLiteral kBatchAxisAttrName = "fp8.batch_axis";

/// `fp8.shard = array<i64: A, D, …>` on an argument or result (--shard): each rank has a part, along
/// dimension D by its place along axis A of the grid; pairs from the outermost division to the innermost.
inline constexpr llvm::StringLiteral kShardAttrName = "fp8.shard";

} // namespace fp8

#endif // FP8_DIALECT_FP8_IR_BOUNDARY_H
