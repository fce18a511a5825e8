// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SHAREDOPERAND_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SHAREDOPERAND_H

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"

namespace fp8::detail {

/// A part of the index of dimension `dim`: (index floordiv step) mod size. Without a dimension, 0. The index
/// of a group of heads is one of the index of a head.
struct Digit {
  std::optional<unsigned> dim;
  int64_t step, size;
};

/// An operation on elements: a cast, or one whose other operands are constants.
struct Step {
  mlir::Operation *op;
  llvm::SmallVector<mlir::TypedAttr> constants; ///< of the operands; null for the element
};

/// A tensor that an operand of attention repeats.
struct SharedOperand {
  mlir::Value tensor;
  /// The digits that the index of each of its dimensions is joined of, the most significant first.
  llvm::SmallVector<llvm::SmallVector<Digit>> digits;
  llvm::SmallVector<Step> steps; ///< from its elements to those of the operand, the last one first
};

/// Returns the digit that an expression of dimensions of these sizes is; nothing if it is none.
std::optional<Digit> toDigit(mlir::AffineExpr expr, llvm::ArrayRef<int64_t> sizes);

/// Follows `tensor`, which has the given map of dimensions of these sizes, back to one that it repeats along
/// some of `dims`; returns nothing if there is none.
std::optional<SharedOperand> findSharedOperand(mlir::Value tensor, mlir::AffineMap map,
                                               llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<unsigned> dims);

/// Builds what `steps` compute of the elements of a tensor.
mlir::Value buildSteps(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<Step> steps,
                       mlir::Value tensor);

} // namespace fp8::detail

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SHAREDOPERAND_H
