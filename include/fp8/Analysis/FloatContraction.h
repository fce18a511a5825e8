// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which linalg ops are matrix products of floats: what ingest turns into fp8.matmul.

#ifndef FP8_ANALYSIS_FLOATCONTRACTION_H
#define FP8_ANALYSIS_FLOATCONTRACTION_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <optional>

namespace fp8 {

/// A linalg op that computes acc + Σ f(lhs) · g(rhs) on tensors of floats.
struct FloatContraction {
  mlir::FloatType productType;
  /// The products are subtracted: -(a · b), which is (-a) · b exactly.
  bool negates = false;
  /// f and g: unary operations of the body from the operand to the product, in order.
  llvm::SmallVector<mlir::Operation *> prologues[2];
};

/// Matches by indexing maps and body, whatever the name of the op: every dimension is a
/// batch, M, N or K dimension, at least one of them K; between the product and the
/// result the body only adds and casts.
std::optional<FloatContraction> matchFloatContraction(mlir::linalg::LinalgOp op);

} // namespace fp8

#endif // FP8_ANALYSIS_FLOATCONTRACTION_H
