// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which products the new value of an argument that training carries to the next step is made of.

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

/// The products that a gradient of a parameter may be: of its new value where the parameter is carried, else
/// of the results of its type.
llvm::SmallPtrSet<mlir::Operation *, 4> findProductsOfGradient(mlir::Value parameter);

} // namespace fp8

#endif // FP8_ANALYSIS_SITES_NEWVALUES_H
