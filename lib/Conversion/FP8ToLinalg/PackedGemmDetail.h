// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packing of one operand into panels, and helpers that both files of the packed contraction use.
// Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOLINALG_PACKEDGEMMDETAIL_H
#define FP8_LIB_CONVERSION_FP8TOLINALG_PACKEDGEMMDETAIL_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

namespace fp8 {

/// One operand as [batch][outer][K], where outer is M or N. Each group lists positions of
/// the operand's own dimensions, in the order of the iteration space.
struct PackedOperand {
  mlir::Value source;
  mlir::SmallVector<unsigned> batch, outer, reduction;
};

/// Allocates [batch][ceil(outer/width)][K][width] of f32 and fills it from the operand, with zeros
/// in the unused part of the last panel.
mlir::Value buildPackedPanels(mlir::OpBuilder &builder, mlir::Location loc, PackedOperand operand,
                              int64_t width);

/// Returns the product of `sizes`, folded if they are constants.
mlir::OpFoldResult multiplySizes(mlir::OpBuilder &builder, mlir::Location loc,
                                 mlir::ArrayRef<mlir::OpFoldResult> sizes);

/// Returns ceil(size / width), folded if size is a constant.
mlir::OpFoldResult ceilDivSize(mlir::OpBuilder &builder, mlir::Location loc, mlir::OpFoldResult size,
                               int64_t width);

/// Allocates a 64-byte aligned buffer of f32 in identity layout.
mlir::Value allocateF32(mlir::OpBuilder &builder, mlir::Location loc,
                        mlir::ArrayRef<mlir::OpFoldResult> sizes);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOLINALG_PACKEDGEMMDETAIL_H
