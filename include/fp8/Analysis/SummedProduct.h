// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recognizes matmuls that a program writes as two ops: an elementwise multiplication and
// a sum over it. PyTorch's exporters write matmuls of a matrix and a vector in this form.

#ifndef FP8_ANALYSIS_SUMMEDPRODUCT_H
#define FP8_ANALYSIS_SUMMEDPRODUCT_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <optional>

namespace fp8 {

/// A sum over an elementwise product of two tensors that nothing else reads.
struct SummedProduct {
  mlir::Operation *product;
  /// The factors, before transposes and broadcasts, and the map of each in the dimensions of the
  /// sum; the last map is that of the result.
  mlir::Value factors[2];
  llvm::SmallVector<mlir::AffineMap> maps;
  /// Products are rounded to this type before they are added.
  mlir::FloatType productType;
  /// The type in which matmuls are added.
  mlir::FloatType sumType;
};

/// Matches `sum` if it is a matmul, that is, if it has an M or N dimension of a size
/// other than 1. Without one it is a norm, a mean or a dot product of two vectors.
std::optional<SummedProduct> matchSummedProduct(mlir::linalg::LinalgOp sum);

} // namespace fp8

#endif // FP8_ANALYSIS_SUMMEDPRODUCT_H
