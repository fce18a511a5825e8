// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Follows values into and out of the regions of loops and branches.

#ifndef FP8_ANALYSIS_REGIONFLOW_H
#define FP8_ANALYSIS_REGIONFLOW_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

namespace fp8 {

/// Returns the values that control flow may forward to `value`, a result or region argument of an
/// op with control flow (scf.for, scf.while, scf.if, …): its initial value and the operands of
/// terminators. Empty for every other value.
llvm::SmallVector<mlir::Value> getForwardedValues(mlir::Value value);

/// Follows getForwardedValues through all regions and iterations to the values that are not
/// forwarded themselves, except for undefined ones (ub.poison). A value that is not forwarded is
/// its own origin.
llvm::SmallVector<mlir::Value> getOrigins(mlir::Value value);

/// Returns the origin of `value` if it is another value of the same type and the only origin; null otherwise.
mlir::Value getOnlyOrigin(mlir::Value value);

} // namespace fp8

#endif // FP8_ANALYSIS_REGIONFLOW_H
