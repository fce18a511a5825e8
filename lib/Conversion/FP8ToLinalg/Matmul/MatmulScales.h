// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The scales of an FP8 tensor, one or one per row or block, and where the scales of the two operands
// enter a matmul: its elements, its blocks of K, or its result. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_MATMULSCALES_H
#define FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_MATMULSCALES_H

#include "../Cast/TensorScale.h"
#include "fp8/Conversion/FP8ToLinalg/PackedGemm.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/IR/Builders.h"

namespace fp8 {

/// The scales of a matmul's operands. fp8.scaled_matmul says what they mean.
struct MatmulScales {
  enum class Place {
    result,   ///< the sum is multiplied by the product of the scales
    blocks,   ///< the sum of each block of K is multiplied by one scale and then the other
    elements, ///< each element is multiplied before the sum
  };

  MatmulScales() = default; ///< without scales
  explicit MatmulScales(ScaledMatmulOp op);
  /// Scales of lhs and rhs, from one iteration space, in which `k` is the only dimension of K if a scale
  /// differs along K.
  MatmulScales(const TensorScale &lhs, const TensorScale &rhs, unsigned k);

  /// Returns where the scale of operand 0 (lhs) or 1 (rhs) enters.
  Place getPlace(unsigned operand) const { return places[operand]; }
  bool isOfBlocks() const { return !operands.empty() && places[0] == Place::blocks; }
  bool isOfElements() const { return length != 0 && !isOfBlocks(); }
  /// Returns what the report says about the sums of a matmul.
  std::string describeSums(bool split) const;

  /// Returns the scales that enter at the result.
  llvm::SmallVector<const TensorScale *> ofResult() const;

  /// Returns the scales of operand 0 or 1 as a memref that has the dimensions of the tensor `data`, but an
  /// entry for each `length` indices of K: scale_inv itself where that is such a memref.
  mlir::Value buildAlongK(mlir::OpBuilder &b, mlir::Location loc, unsigned operand, mlir::Value data) const;

  /// Returns the scales along K for a packed matmul of `data`, lhs and rhs.
  PanelScales buildPanelScales(mlir::OpBuilder &b, mlir::Location loc,
                               llvm::ArrayRef<mlir::Value> data) const;

  llvm::SmallVector<TensorScale, 2> operands; ///< none, or those of lhs and rhs
  /// The number of indices of K that share a scale; 0 if no scale differs along K.
  int64_t length = 0;
  /// The operand whose scale multiplies the sum of a block first.
  unsigned first = 0;

private:
  Place places[2] = {Place::result, Place::result};
  unsigned dimK = 0; ///< the only dimension of K, if `length` is not 0
};

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_MATMULSCALES_H
