// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A common view of scaled matmuls, grouped or not, for passes that arrange their operands. Private to the
// library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_BATCHING_SCALEDMATMULS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_BATCHING_SCALEDMATMULS_H

#include "fp8/Dialect/FP8/IR/FP8.h"

namespace fp8 {

/// Returns the dimensions of a matmul; the groups of a grouped one are batches of the operand that has them.
inline ContractionDims getOperandDims(ScaledMatmulOp op) { return op.getContractionDims(); }
inline ContractionDims getOperandDims(ScaledGroupedMatmulOp op) {
  ContractionDims dims = op.getContractionDims();
  dims.batch.push_back(op.getGroupedDims().group);
  return dims;
}

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_BATCHING_SCALEDMATMULS_H
