// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Used by casts and matmuls: the scale_inv of a tensor, one value or one for each row or block. Private to
// the library.

#ifndef FP8_LIB_CONVERSION_FP8TOLINALG_CAST_TENSORSCALE_H
#define FP8_LIB_CONVERSION_FP8TOLINALG_CAST_TENSORSCALE_H

#include "mlir/IR/AffineMap.h"
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

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOLINALG_CAST_TENSORSCALE_H
