// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The scales of an FP8 tensor, one or one per row or block, and where the scales of the two operands
// enter a product: its elements, its blocks of K, or its result. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOLINALG_PRODUCTSCALES_H
#define FP8_LIB_CONVERSION_FP8TOLINALG_PRODUCTSCALES_H

#include "fp8/Conversion/FP8ToLinalg/PackedGemm.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/IR/Builders.h"

namespace fp8 {

/// The scale_inv of an FP8 tensor.
struct TensorScale {
  /// `map` leads from some iteration space to the elements of the tensor; without a `block` there is one
  /// scale.
  TensorScale(mlir::Value scaleInv, std::optional<llvm::ArrayRef<int64_t>> block, mlir::AffineMap map);

  /// Loads the scale_inv, as f32, of the element of the iteration at `position`. Only the indices of
  /// dimensions that the scale_inv differs along are used.
  mlir::Value load(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<mlir::Value> position) const;

  /// Returns the map from the iteration space to the entries of scaleInv; nullopt if blocks have extents
  /// other than 1 and 0.
  std::optional<mlir::AffineMap> getMap() const;

  /// Returns the extent of a block along dimension `dim` of the iteration space: 0 if all indices share
  /// their entries.
  int64_t getExtent(unsigned dim) const;

  mlir::Value scaleInv;               ///< a memref of f32 or f8E8M0FNU
  llvm::SmallVector<int64_t> extents; ///< of a block in each dimension of the tensor; 0: the whole dimension
  mlir::AffineMap map;                ///< from the iteration space to elements
};

/// The scales of a product's operands. fp8.scaled_matmul says what they mean.
struct ProductScales {
  enum class Place {
    result,   ///< the sum is multiplied by the product of the scales
    blocks,   ///< the sum of each block of K is multiplied by one scale and then the other
    elements, ///< each element is multiplied before the sum
  };

  ProductScales() = default; ///< without scales
  explicit ProductScales(ScaledMatmulOp op);
  /// Scales of lhs and rhs, from one iteration space, in which `k` is the only dimension of K if a scale
  /// differs along K.
  ProductScales(const TensorScale &lhs, const TensorScale &rhs, unsigned k);

  /// Returns where the scale of operand 0 (lhs) or 1 (rhs) enters.
  Place getPlace(unsigned operand) const { return places[operand]; }
  bool isOfBlocks() const { return !operands.empty() && places[0] == Place::blocks; }
  bool isOfElements() const { return length != 0 && !isOfBlocks(); }
  /// Returns what the report says about the sums of a product.
  std::string describeSums(bool split) const;

  /// Returns the scales that enter at the result.
  llvm::SmallVector<const TensorScale *> ofResult() const;

  /// Returns the scales of operand 0 or 1 as a memref that has the dimensions of the tensor `data`, but an
  /// entry for each `length` indices of K: scale_inv itself where that is such a memref.
  mlir::Value buildAlongK(mlir::OpBuilder &b, mlir::Location loc, unsigned operand, mlir::Value data) const;

  /// Returns the scales along K for a packed product of `data`, lhs and rhs.
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

#endif // FP8_LIB_CONVERSION_FP8TOLINALG_PRODUCTSCALES_H
