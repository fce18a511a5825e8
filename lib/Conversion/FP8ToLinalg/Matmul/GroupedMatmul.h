// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The view of fp8.grouped_matmul and fp8.scaled_grouped_matmul on memrefs that their lowerings share.
// Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_GROUPEDMATMUL_H
#define FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_GROUPEDMATMUL_H

#include "MatmulScales.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/IR/Builders.h"

namespace fp8 {

/// A grouped matmul: its operands, which dimension is which, and its scales.
struct GroupedParts {
  explicit GroupedParts(GroupedMatmulOp op);
  explicit GroupedParts(ScaledGroupedMatmulOp op);

  /// Emits an error if a scale differs along K, which loops have no code for.
  mlir::LogicalResult verifyLoopScales() const;
  /// Emits an error if a scale differs along K where K is the rows, whose groups divide blocks.
  mlir::LogicalResult verifyPackedScales() const;
  bool isScaled() const { return bool(scales[0]); }
  /// Returns whether both scales are one for the whole operand.
  bool hasOneScale() const { return !blocks[0] && !blocks[1]; }

  /// Returns the number of rows of all groups, the size of dimension `dim`.
  mlir::Value buildSize(mlir::OpBuilder &b, unsigned dim) const;
  /// Returns the end of group `group`, which begins with row `begin`.
  mlir::Value buildEnd(mlir::OpBuilder &b, mlir::Value group, mlir::Value begin) const;
  /// Returns the product of the scales of the result at `indices`, one per dimension; those of dimensions
  /// along which scales do not vary may be null. Null without such scales.
  mlir::Value buildScale(mlir::OpBuilder &b, mlir::ArrayRef<mlir::Value> indices) const;
  /// Returns the marks of the code (MatmulMarks.h); `products` and `where` describe it.
  mlir::ArrayAttr mark(llvm::StringRef products, llvm::StringRef where) const;

  mlir::Operation *op;
  mlir::Location loc;
  mlir::Value operands[2], out, ends;
  mlir::SmallVector<mlir::AffineMap> maps;
  GroupedDims dims;
  ContractionDims matmul; ///< M, N and K of the matmul of one group
  mlir::Value scales[2];  ///< scale_inv; null in high precision
  mlir::DenseI64ArrayAttr blocks[2];
  MatmulScales placed; ///< where the scales enter
  bool split = false;
};

/// Lowers to a thread for each element of the result, all groups in one kernel.
mlir::LogicalResult lowerGroupedToLoops(mlir::OpBuilder &builder, const GroupedParts &parts);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_GROUPEDMATMUL_H
