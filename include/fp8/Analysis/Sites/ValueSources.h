// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the arguments, globals and contractions that the values of a function are computed from.

#ifndef FP8_ANALYSIS_SITES_VALUESOURCES_H
#define FP8_ANALYSIS_SITES_VALUESOURCES_H

#include "fp8/Analysis/Reachability.h"
#include "llvm/ADT/SmallVector.h"

namespace fp8 {

/// The sources of the values of a function, in all iterations of loops: the input of a layer that a loop
/// repeats is computed by contractions of earlier iterations. Constants and indices of loops are no sources.
class ValueSources {
public:
  explicit ValueSources(mlir::FunctionOpInterface function);

  /// The arguments that `value` is computed from, in their order, then globals and results of calls.
  llvm::SmallVector<mlir::Value> getArguments(mlir::Value value) const;
  /// The sources among getArguments that are floating-point tensors.
  llvm::SmallVector<mlir::Value> getFloatArguments(mlir::Value value) const;
  /// The contractions that `value` is computed by: matmuls, and other operations that multiply
  /// tensors and sum (convolutions, matmuls of integers).
  llvm::SmallVector<mlir::Operation *> getContractions(mlir::Value value) const;

private:
  llvm::SmallVector<mlir::Operation *> contractions;
  llvm::SmallVector<mlir::Value> arguments;
  std::optional<Reachability> reachability;
};

} // namespace fp8

#endif // FP8_ANALYSIS_SITES_VALUESOURCES_H
