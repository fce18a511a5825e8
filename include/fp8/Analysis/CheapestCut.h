// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which values to hand over so that others can be computed from them.

#ifndef FP8_ANALYSIS_CHEAPESTCUT_H
#define FP8_ANALYSIS_CHEAPESTCUT_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace fp8 {

/// The values that `value`'s operation reads, in its regions too.
llvm::SmallVector<mlir::Value> getReadValues(mlir::Operation *op);

/// Values of the least `cost` in sum from which all that are `needed` follow, by repeating
/// operations that `canRepeat` accepts for a result. Of several such sets the one from
/// which the least is repeated: a minimum cut (Ford and Fulkerson) nearest to `needed`.
/// Costs are above 0.
llvm::SmallVector<mlir::Value> findCheapestCut(llvm::ArrayRef<mlir::Value> needed,
                                               llvm::function_ref<bool(mlir::OpResult)> canRepeat,
                                               llvm::function_ref<int64_t(mlir::Value)> cost);

} // namespace fp8

#endif // FP8_ANALYSIS_CHEAPESTCUT_H
