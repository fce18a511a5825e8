// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions of a loop that lanes can share: each lane runs some of the iterations, and the lanes combine the
// values that they carry. Private to the library.

#ifndef FP8_LIB_TARGET_PTX_KERNELS_LANEREDUCTION_H
#define FP8_LIB_TARGET_PTX_KERNELS_LANEREDUCTION_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include <memory>

namespace fp8 {

/// The values of one reduction: `before` are those of the last iteration in the body of the loop, `after`
/// what the iteration makes of them. A lane carries values of its own, which may be more or wider.
class LaneReduction {
public:
  virtual ~LaneReduction() = default;

  /// Whether each lane starts with the initial values, not with a neutral element: the combined values are
  /// the result then.
  virtual bool startsWithInitial() const = 0;
  /// Builds what a lane starts with; `initial` is empty unless startsWithInitial().
  virtual llvm::SmallVector<mlir::Value> buildStart(mlir::OpBuilder &b, mlir::ValueRange initial) = 0;
  /// Makes the body compute with what a lane carries; returns what it carries to its next iteration. Nothing
  /// else uses the values after the iteration any more. `b` is at the end of the body.
  virtual llvm::SmallVector<mlir::Value> rewriteBody(mlir::OpBuilder &b, mlir::ValueRange carried,
                                                     mlir::Value iteration) = 0;
  /// Combines what two lanes carry, in either order.
  virtual llvm::SmallVector<mlir::Value> combine(mlir::OpBuilder &b, mlir::ValueRange mine,
                                                 mlir::ValueRange others) = 0;
  /// Builds the values of the reduction from what is combined of all lanes; `initial` as in buildStart(), but
  /// empty if startsWithInitial().
  virtual llvm::SmallVector<mlir::Value> buildResult(mlir::OpBuilder &b, mlir::ValueRange initial,
                                                     mlir::ValueRange combined) = 0;
};

/// Makes an addition or multiplication of integers wrap: in another order it may overflow on the way.
void dropOverflowFlags(mlir::Operation *combiner);

/// Returns the reduction by one operation that has a neutral element, such as a sum or a maximum; null if
/// `after` is computed in another way. Sums of bf16 and f16 are taken in f32 and rounded once.
std::unique_ptr<LaneReduction> matchCombiner(mlir::Value before, mlir::Value after);

/// Returns the reduction that selects one of all elements by comparisons: a value, such as the greatest one,
/// and what belongs to it, such as its place. Null if the result depends on the order of the elements in
/// more than which of equal ones is taken.
std::unique_ptr<LaneReduction> matchSelection(mlir::scf::ForOp loop, mlir::ValueRange before,
                                              mlir::ValueRange after);

} // namespace fp8

#endif // FP8_LIB_TARGET_PTX_KERNELS_LANEREDUCTION_H
