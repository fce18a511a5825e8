// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work that threads divide among themselves as they go.

#ifndef FP8_CONVERSION_TAKINGLOOP_H
#define FP8_CONVERSION_TAKINGLOOP_H

#include "mlir/IR/Builders.h"

namespace fp8 {

/// So many tasks are computed at a time at most: more than machines have cores.
inline constexpr int64_t kMostWorkers = 256;

/// Returns whether `op` is in a loop over tasks, whose iterations run on one thread each.
bool isInTask(mlir::Operation *op);

/// Allocates the counter of the tasks that have been taken, an i64.
mlir::Value allocateTaken(mlir::OpBuilder &b, mlir::Location loc);
/// Sets the counter to zero.
void resetTaken(mlir::OpBuilder &b, mlir::Location loc, mlir::Value taken);

/// Emits a loop that takes one number after the other, by adding to `taken`, while it is below `count`.
/// Several threads may run it.
void buildTakingLoop(mlir::OpBuilder &b, mlir::Location loc, mlir::Value taken, mlir::Value count,
                     llvm::function_ref<void(mlir::OpBuilder &, mlir::Value)> body);

} // namespace fp8

#endif // FP8_CONVERSION_TAKINGLOOP_H
