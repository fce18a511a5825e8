// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the matmuls that the new value of an argument is computed from, where training carries the argument
// to the next step.

#ifndef FP8_ANALYSIS_SITES_NEWVALUES_H
#define FP8_ANALYSIS_SITES_NEWVALUES_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace fp8 {

/// True for an argument that is carried: a result becomes its value in the next step.
bool isCarried(mlir::Value parameter);

/// The matmuls that the new value of a carried argument is computed from element by element, as the new
/// value of a weight is computed from its gradients. Sums, casts, moments and concatenations may lie between,
/// but no other matmul, and no smaller tensor (such as the norm that clips all gradients).
llvm::SmallPtrSet<mlir::Operation *, 4> findMatmulsOfNewValue(mlir::BlockArgument carried);

/// The matmuls that may be a gradient of a parameter: those of its new value if the parameter is carried,
/// else those of the results that have its type.
llvm::SmallPtrSet<mlir::Operation *, 4> findMatmulsOfGradient(mlir::Value parameter);

} // namespace fp8

#endif // FP8_ANALYSIS_SITES_NEWVALUES_H
