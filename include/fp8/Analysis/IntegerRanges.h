// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bounds of integers in the program, at compile time.

#ifndef FP8_ANALYSIS_INTEGERRANGES_H
#define FP8_ANALYSIS_INTEGERRANGES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/DenseMap.h"

namespace fp8 {

/// Bounds of integers, and of all elements of tensors of integers, that hold where one operation
/// runs: they use the conditions of the branches around it, the assertions before it in its block,
/// and all assertions of the linalg body that contains it.
///
/// Computes the range of a value from those of its operands, by upstream's InferIntRangeInterface,
/// and in addition supports elements of tensors, bodies of linalg operations and induction
/// variables. mlir::dataflow::IntegerRangeAnalysis supports none of these, nor conditions.
class IntegerRanges {
public:
  explicit IntegerRanges(mlir::Operation *at);

  mlir::ConstantIntRanges get(mlir::Value value);
  mlir::ConstantIntRanges get(mlir::OpFoldResult value);

  /// Returns true if 0 <= index < size is proved.
  bool isInside(mlir::OpFoldResult index, mlir::OpFoldResult size);

  /// Returns true if it is proved that first + (count - 1) * stride < size and that first, count
  /// and stride are not negative.
  bool isInside(mlir::OpFoldResult first, mlir::OpFoldResult count, mlir::OpFoldResult stride,
                mlir::OpFoldResult size);

private:
  /// Narrows the ranges of both operands of a comparison that is known to hold or not to hold.
  void assume(mlir::Value condition, bool holds);
  void assume(mlir::arith::CmpIPredicate predicate, mlir::Value value, mlir::Value bound);

  mlir::ConstantIntRanges compute(mlir::Value value);
  mlir::ConstantIntRanges computeResult(mlir::OpResult result);
  mlir::ConstantIntRanges computeArgument(mlir::BlockArgument argument);
  mlir::ConstantIntRanges computeElements(mlir::linalg::LinalgOp op, unsigned result);
  std::optional<mlir::ConstantIntRanges> computeLoopIndex(mlir::LoopLikeOpInterface loop,
                                                          mlir::BlockArgument argument);
  mlir::ConstantIntRanges join(mlir::ValueRange values);

  llvm::DenseMap<mlir::Value, mlir::ConstantIntRanges> assumed, known;
  unsigned depth = 0, steps = 0;
};

/// Returns the predicate p with p(b, a) == predicate(a, b).
mlir::arith::CmpIPredicate swapOperands(mlir::arith::CmpIPredicate predicate);

} // namespace fp8

#endif // FP8_ANALYSIS_INTEGERRANGES_H
