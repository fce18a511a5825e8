// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recognizes FP8 tensors of the program itself, which it extends and scales before a matmul, as
// programs that serve quantized checkpoints do.

#ifndef FP8_ANALYSIS_DEQUANTIZATION_H
#define FP8_ANALYSIS_DEQUANTIZATION_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"
#include <optional>

namespace fp8 {

/// A scale of a whole tensor: a scalar, a constant, or a tensor whose elements are all equal.
struct UniformFactor {
  mlir::Value value; ///< null for a constant
  mlir::FloatAttr constant;
  llvm::SmallVector<mlir::FloatType> casts; ///< types it is cast to (extf, truncf) before its use
  bool divides = false;                     ///< the tensor is divided by the scale, not multiplied
};

/// tensor[i] = data[map(i)] · factors, up to intermediate roundings of the program.
struct Dequantization {
  mlir::Value data; ///< of f8E4M3FN or f8E5M2
  mlir::AffineMap map;
  llvm::SmallVector<UniformFactor> factors;
  /// False if a scale belongs to a row, a channel or a block.
  bool perTensor = true;

  /// Creates the product of all factors, a tensor<f32>.
  mlir::Value createScaleInv(mlir::OpBuilder &builder, mlir::Location loc) const;
};

/// Matches a tensor that is FP8, or is computed from an FP8 tensor by casts, transposes,
/// broadcasts and multiplications with (or divisions by) scales, written in one op or several.
std::optional<Dequantization> matchDequantization(mlir::Value tensor);

/// Matches an operand of a matmul in the same way, also through reshapes. Returns nullopt if the
/// matmul could not read the FP8 tensor itself.
std::optional<Dequantization> matchOwnBytes(MatmulOp op, unsigned operand);

/// Returns the tensor that `value` is a view of, through collapse_shape, expand_shape and cast, and that it
/// divides among groups of rows (fp8.group_rows).
mlir::Value getViewSource(mlir::Value value);

} // namespace fp8

#endif // FP8_ANALYSIS_DEQUANTIZATION_H
