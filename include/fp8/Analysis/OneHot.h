// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recognizes operands that only select rows of the other operand: one-hot embeddings, dispatch masks.

#ifndef FP8_ANALYSIS_ONEHOT_H
#define FP8_ANALYSIS_ONEHOT_H

#include "mlir/IR/Value.h"

namespace fp8 {

/// Returns whether every element of `value` is 0 or 1 by construction: a comparison that is converted to a
/// float, through casts, views and broadcasts, or a matmul, select or maximum of such values. False for
/// masks with other values, such as the weights of gates.
bool isZeroOrOne(mlir::Value value);

} // namespace fp8

#endif // FP8_ANALYSIS_ONEHOT_H
