// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which linalg ops are matrix products of floats: what ingest turns into fp8.matmul.

#ifndef FP8_ANALYSIS_FLOATCONTRACTION_H
#define FP8_ANALYSIS_FLOATCONTRACTION_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/SetVector.h"
#include <optional>

namespace fp8 {

/// A linalg op that computes acc + Σ f(lhs) · g(rhs) on tensors of floats.
struct FloatContraction {
  mlir::FloatType productType;
  /// The products are subtracted: -(a · b), which is (-a) · b exactly.
  bool negates = false;
  /// f(lhs) and g(rhs): the factors, as values of the body.
  mlir::Value factors[2];
};

/// Matches by indexing maps and body, whatever the name of the op: at least one dimension
/// that both operands have is summed, and between the product and the result the body
/// only adds and casts. A dimension may be in the result alone (the sums are repeated) or
/// be summed in one operand alone (the other is repeated).
std::optional<FloatContraction> matchFloatContraction(mlir::linalg::LinalgOp op);

/// The dimensions of `op`, an op of two operands and one result on tensors, are those of a
/// contraction, as far as its indexing maps tell. The body is another matter.
bool hasContractionMaps(mlir::linalg::LinalgOp op);

/// A value of a body, computed from one block argument by ops without effects; constants
/// and values from outside the body may take part.
struct BodySlice {
  mlir::BlockArgument argument;
  llvm::SetVector<mlir::Operation *> ops; ///< in the order of the body
};
std::optional<BodySlice> sliceOfOneArgument(mlir::Value value, mlir::Block *body);

} // namespace fp8

#endif // FP8_ANALYSIS_FLOATCONTRACTION_H
