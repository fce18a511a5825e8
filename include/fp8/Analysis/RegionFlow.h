// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How values enter and leave the regions of loops and branches.

#ifndef FP8_ANALYSIS_REGIONFLOW_H
#define FP8_ANALYSIS_REGIONFLOW_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

namespace fp8 {

/// The values that `value` may be a plain copy of, where it is a result or a region
/// argument of an op with control flow (scf.for, scf.while, scf.if, …): its initial
/// value, and what terminators hand on. Empty for every other value.
llvm::SmallVector<mlir::Value> getForwardedValues(mlir::Value value);

/// The same, followed through all regions and iterations to values that are computed
/// elsewhere or enter from outside, undefined ones (ub.poison) left out. A value that is not forwarded is its
/// own origin.
llvm::SmallVector<mlir::Value> getOrigins(mlir::Value value);

} // namespace fp8

#endif // FP8_ANALYSIS_REGIONFLOW_H
