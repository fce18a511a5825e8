// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// FP8 tensors of the program's own, which it extends and scales before it multiplies them,
// as those who serve checkpoints do.

#ifndef FP8_ANALYSIS_DEQUANTIZATION_H
#define FP8_ANALYSIS_DEQUANTIZATION_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"
#include <optional>

namespace fp8 {

/// One number for a whole tensor: a scalar, a constant, or a tensor all elements of which
/// are that number, and the casts (extf, truncf) to these types on the way to its use.
struct UniformFactor {
  mlir::Value value; ///< null for a constant
  mlir::FloatAttr constant;
  llvm::SmallVector<mlir::FloatType> casts;
  bool divides = false; ///< the tensor is divided by it
};

/// tensor[i] = data[map(i)] · factors, up to the roundings that the program writes in
/// between: bytes, scaled once, are exact.
struct Dequantization {
  mlir::Value data; ///< of f8E4M3FN or f8E5M2
  mlir::AffineMap map;
  llvm::SmallVector<UniformFactor> factors;
  /// False where some scale is one of a row, a channel or a block.
  bool perTensor = true;

  /// The product of all factors, a tensor<f32>.
  mlir::Value createScaleInv(mlir::OpBuilder &builder, mlir::Location loc) const;
};

/// Matches a tensor that is made of FP8 bytes by casts, transposes, broadcasts and
/// multiplications with (or divisions by) scales, in ops of any granularity; or is FP8.
std::optional<Dequantization> matchDequantization(mlir::Value tensor);

/// The same for an operand of a product, behind reshapes; nothing where the product could
/// not read the bytes.
std::optional<Dequantization> matchOwnBytes(MatmulOp op, unsigned operand);

/// The tensor that `value` is a reshaped view of: behind collapse_shape, expand_shape, cast.
mlir::Value getViewSource(mlir::Value value);

} // namespace fp8

#endif // FP8_ANALYSIS_DEQUANTIZATION_H
