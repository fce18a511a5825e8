// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What looks like a matrix product of floats and is none.

#ifndef FP8_ANALYSIS_LOOKALIKES_H
#define FP8_ANALYSIS_LOOKALIKES_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <string>

namespace fp8 {

/// Why `op` never becomes an fp8.matmul, though a reader might take it for a matrix product:
/// a convolution, a contraction of other numbers than floats or with other operations, a
/// product that is rounded before it is summed. Empty for every other op.
std::string explainLookAlike(mlir::linalg::LinalgOp op);

} // namespace fp8

#endif // FP8_ANALYSIS_LOOKALIKES_H
