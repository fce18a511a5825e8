// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stacks, which are tensors that loops fill slice by slice, views of stacks, and tensors beside a
// stack that hold one value for each of its slices. Private to the library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_STACKS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_STACKS_H

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <optional>

namespace fp8 {

/// A tensor that a loop carries and fills: `body[index] = source` in every iteration.
struct Stack {
  mlir::OpOperand *init;
  llvm::SmallVector<mlir::Value, 4> values; ///< in the loop's regions, and its result
  mlir::tensor::InsertSliceOp insert;
  llvm::SmallVector<mlir::OpOperand *, 2> handedOn; ///< in the loop's terminators
};
/// The stack that is `result` of a loop; unset where `result` is no stack.
std::optional<Stack> matchStack(mlir::OpResult result);

/// A value that a loop carries: in its body, and its result.
struct Carried {
  mlir::BlockArgument body;
  mlir::OpResult result;
};
/// Replaces `loop` (scf.for, scf.while) by one that carries one more value: `init`, which every
/// iteration hands on.
Carried addCarried(mlir::Operation *loop, mlir::Value init);

/// Whether `op` rounds the elements of operand 0 from f32 to a narrower type.
bool isNarrowing(mlir::Operation *op);
/// Whether the elements of the result of `op` are elements of operand 0, each as it is or narrowed.
bool isView(mlir::Operation *op);

/// The dimensions of a stack, or of a view of one, that number its slices, in increasing order.
using SliceDims = llvm::SmallVector<int64_t, 2>;

/// The slice dimensions of `view`, whose operand has slice dimensions `dims`; unset where a slice
/// of the view is no slice of the operand.
std::optional<SliceDims> getSliceDims(mlir::Operation *view, llvm::ArrayRef<int64_t> dims);
/// The slice dimensions of the stack that `insert` fills from a tensor with slice dimensions
/// `dims`; unset where `insert` does not insert whole slices.
std::optional<SliceDims> getSliceDims(mlir::tensor::InsertSliceOp insert, llvm::ArrayRef<int64_t> dims);

/// `values` has one element for each slice of the operand of `view`, which has slice dimensions
/// `dims`; the result has one for each slice of `view`.
mlir::Value viewSliceValues(mlir::OpBuilder &builder, mlir::Operation *view, mlir::Value values,
                            llvm::ArrayRef<int64_t> dims);
/// `into` has one element for each slice of a stack with slice dimensions `dims`, `values` one for
/// each slice that `insert` inserts; the result has one for each slice after `insert`.
mlir::Value insertSliceValues(mlir::OpBuilder &builder, mlir::tensor::InsertSliceOp insert,
                              mlir::Value values, mlir::Value into, llvm::ArrayRef<int64_t> dims);

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_STACKS_H
