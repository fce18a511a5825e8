// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Between which bounds an integer of the program lies, before it runs.

#ifndef FP8_ANALYSIS_INTEGERRANGES_H
#define FP8_ANALYSIS_INTEGERRANGES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/DenseMap.h"

namespace fp8 {

/// Bounds of integers, and of all elements of tensors of integers, as they are where one
/// operation runs: in the branches it lies in, after the assertions before it in its block, or
/// after all assertions of the linalg body it lies in.
///
/// Goes from a value to what it is computed from, by upstream's InferIntRangeInterface, and
/// knows beyond it the elements of tensors, the bodies of linalg operations and loops' indices.
/// (mlir::dataflow::IntegerRangeAnalysis knows none of these, nor conditions.)
class IntegerRanges {
public:
  explicit IntegerRanges(mlir::Operation *at);

  mlir::ConstantIntRanges get(mlir::Value value);
  mlir::ConstantIntRanges get(mlir::OpFoldResult value);

  /// True where 0 <= index < size for sure.
  bool isInside(mlir::OpFoldResult index, mlir::OpFoldResult size);

  /// True where first + (count - 1) * stride < size for sure, and none of them is negative.
  bool isInside(mlir::OpFoldResult first, mlir::OpFoldResult count, mlir::OpFoldResult stride,
                mlir::OpFoldResult size);

private:
  /// Holds what follows for both operands of a comparison.
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

/// The predicate that holds of b and a where `predicate` holds of a and b.
mlir::arith::CmpIPredicate swapOperands(mlir::arith::CmpIPredicate predicate);

} // namespace fp8

#endif // FP8_ANALYSIS_INTEGERRANGES_H
