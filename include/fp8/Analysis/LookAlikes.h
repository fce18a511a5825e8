// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recognizes operations that resemble a matmul of floats but are not one, for the report.

#ifndef FP8_ANALYSIS_LOOKALIKES_H
#define FP8_ANALYSIS_LOOKALIKES_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <string>

namespace fp8 {

/// Returns why `op` does not become an fp8.matmul although it resembles a matmul: it is a
/// convolution, a contraction of other numbers than floats or with other operations, or a
/// product that is rounded before it is summed. Returns "" for every other op.
std::string explainLookAlike(mlir::linalg::LinalgOp op);

} // namespace fp8

#endif // FP8_ANALYSIS_LOOKALIKES_H
