// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the values that training carries to the next step are made of.

#ifndef FP8_ANALYSIS_SITES_NEWVALUES_H
#define FP8_ANALYSIS_SITES_NEWVALUES_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace fp8 {

/// True for an argument that is carried: a result becomes its value in the next step.
bool isCarried(mlir::Value parameter);

/// The products that the new value of a carried argument is made of element by element, as
/// that of a weight is of its gradients: sums, casts, moments and pieces put together lie
/// between, but no other product, and nothing smaller (the norm that clips all gradients).
llvm::SmallPtrSet<mlir::Operation *, 4> findProductsOfNewValue(mlir::BlockArgument carried);

/// The same of whatever may be the gradient of a parameter: its new value where it is carried, else the
/// results of its type.
llvm::SmallPtrSet<mlir::Operation *, 4> findProductsOfGradient(mlir::Value parameter);

} // namespace fp8

#endif // FP8_ANALYSIS_SITES_NEWVALUES_H
