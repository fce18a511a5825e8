// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the cheapest values from which others can be computed again: what forward saves for
// backward.

#ifndef FP8_ANALYSIS_CHEAPESTCUT_H
#define FP8_ANALYSIS_CHEAPESTCUT_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace fp8 {

/// Returns the values that `op` reads, including those that its regions read from outside.
llvm::SmallVector<mlir::Value> getReadValues(mlir::Operation *op);

/// Returns the set of values with the smallest total `cost` from which all `needed` values can be
/// computed by repeating operations whose results `canRepeat` accepts. Of several such sets it
/// returns the one that needs the fewest operations repeated: the minimum cut (Edmonds and Karp)
/// nearest to `needed`. Costs must be positive. A result that is computed again costs `work`, 0 or more,
/// instead.
llvm::SmallVector<mlir::Value> findCheapestCut(llvm::ArrayRef<mlir::Value> needed,
                                               llvm::function_ref<bool(mlir::OpResult)> canRepeat,
                                               llvm::function_ref<int64_t(mlir::Value)> cost,
                                               llvm::function_ref<int64_t(mlir::OpResult)> work = nullptr);

} // namespace fp8

#endif // FP8_ANALYSIS_CHEAPESTCUT_H
