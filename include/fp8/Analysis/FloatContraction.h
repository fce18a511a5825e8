// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recognizes the linalg ops that are matmuls of floats, which ingest turns into fp8.matmul.

#ifndef FP8_ANALYSIS_FLOATCONTRACTION_H
#define FP8_ANALYSIS_FLOATCONTRACTION_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/SetVector.h"
#include <optional>

namespace fp8 {

/// A linalg op that computes acc + Σ f(lhs) · g(rhs) on tensors of floats.
struct FloatContraction {
  mlir::FloatType productType;
  /// The matmuls are subtracted. -(a · b) equals (-a) · b exactly.
  bool negates = false;
  /// f(lhs) and g(rhs): the factors, as values of the body.
  mlir::Value factors[2];
};

/// Matches by indexing maps and body, whatever the name of the op: at least one dimension of
/// both operands is summed, and the body does nothing but add and cast between the matmul and
/// the result. A dimension may occur in the result only (the sums are broadcast along it), and a
/// summed dimension in one operand only (the other operand is broadcast along it).
std::optional<FloatContraction> matchFloatContraction(mlir::linalg::LinalgOp op);

/// Returns whether the body of `op`, which has two operands and one result, is that of a contraction. The
/// indexing maps are not checked.
bool sumsFloatProducts(mlir::linalg::LinalgOp op);

/// Returns whether `op` has two operands and one result, on tensors, and the indexing maps of a
/// contraction. The body is not checked.
bool hasContractionMaps(mlir::linalg::LinalgOp op);

/// The code that computes a value of a body from one block argument, by ops without side effects;
/// it may use constants and values from outside the body.
struct BodySlice {
  mlir::BlockArgument argument;
  llvm::SetVector<mlir::Operation *> ops; ///< in the order of the body
};
std::optional<BodySlice> sliceOfOneArgument(mlir::Value value, mlir::Block *body);

} // namespace fp8

#endif // FP8_ANALYSIS_FLOATCONTRACTION_H
