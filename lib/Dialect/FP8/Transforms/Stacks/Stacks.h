// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors that loops fill slice by slice, views of them, and a value for each slice that lies
// in a stack beside. Private to the library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_STACKS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_STACKS_H

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <optional>

namespace fp8 {

/// A value that a loop carries and fills: `body[index] = source` in every iteration.
struct Stack {
  mlir::OpOperand *init;
  llvm::SmallVector<mlir::Value, 4> values; ///< in the loop's regions, and its result
  mlir::tensor::InsertSliceOp insert;
  llvm::SmallVector<mlir::OpOperand *, 2> handedOn; ///< in the loop's terminators
};
std::optional<Stack> matchStack(mlir::OpResult result);

/// A value that a loop carries: in its body, and its result.
struct Carried {
  mlir::BlockArgument body;
  mlir::OpResult result;
};
/// `loop` (scf.for, scf.while) with one more value, which it starts from `init` and hands on as
/// it is, in place of the old one.
Carried addCarried(mlir::Operation *loop, mlir::Value init);

/// The elements of operand 0, from f32 to what the program casts: rounded.
bool isNarrowing(mlir::Operation *op);
/// Elements of operand 0, each as it is or narrowed.
bool isView(mlir::Operation *op);

/// The dimensions of a stack, or of a view of one, that number its slices, in increasing order.
using SliceDims = llvm::SmallVector<int64_t, 2>;

/// Those of a view of a tensor that has `dims`; unset where a slice of the view is not one of
/// the tensor.
std::optional<SliceDims> getSliceDims(mlir::Operation *view, llvm::ArrayRef<int64_t> dims);
/// Those of the stack that `insert` fills with what has `dims`; unset where it does not insert
/// whole slices.
std::optional<SliceDims> getSliceDims(mlir::tensor::InsertSliceOp insert, llvm::ArrayRef<int64_t> dims);

/// `values` has an element for each slice of a tensor with slices along `dims`: those of the
/// slices of `view`.
mlir::Value viewSliceValues(mlir::OpBuilder &builder, mlir::Operation *view, mlir::Value values,
                            llvm::ArrayRef<int64_t> dims);
/// Those of a stack with slices along `dims` after `insert`; `values` are the inserted ones.
mlir::Value insertSliceValues(mlir::OpBuilder &builder, mlir::tensor::InsertSliceOp insert,
                              mlir::Value values, mlir::Value into, llvm::ArrayRef<int64_t> dims);

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_STACKS_H
