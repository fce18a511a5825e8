// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sizes of a function's tensors, expressed as far as possible by sizes of its arguments, so
// that equal sizes can be recognized.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_TENSORSIZES_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_TENSORSIZES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SetVector.h"

namespace fp8 {

/// Builds and compares sizes. The destructor erases operations that it built and nothing uses.
class TensorSizes : mlir::OpBuilder::Listener {
public:
  explicit TensorSizes(mlir::func::FuncOp func);
  TensorSizes(const TensorSizes &) = delete;
  TensorSizes &operator=(const TensorSizes &) = delete;
  ~TensorSizes();

  /// Return the size of one dimension, or of all. The values are available wherever `tensor` is.
  mlir::OpFoldResult get(mlir::Value tensor, int64_t dim);
  mlir::SmallVector<mlir::OpFoldResult> getAll(mlir::Value tensor);

  /// Returns `size` in simpler terms if it is a tensor.dim, else `size` itself.
  mlir::OpFoldResult simplify(mlir::OpFoldResult size);

  /// Returns whether both sizes are known to be equal.
  bool isSame(mlir::OpFoldResult a, mlir::OpFoldResult b);

  /// Records that both sizes are equal, because the program asserts it at the start.
  void setSame(mlir::OpFoldResult a, mlir::OpFoldResult b);

  /// Moves the computation of `size` to the start of the function, if it depends on scalars and
  /// shapes of the arguments only; returns false otherwise.
  bool hoist(mlir::OpFoldResult size);

  /// Returns a builder before the function's own operations, after those that were inserted there.
  mlir::OpBuilder atStart();

  /// Collects the arguments whose shapes or values `size` is computed from.
  void collectArguments(mlir::OpFoldResult size, llvm::SetVector<mlir::BlockArgument> &arguments);

private:
  void notifyOperationInserted(mlir::Operation *op, mlir::OpBuilder::InsertPoint previous) override;
  mlir::OpFoldResult compute(mlir::Value tensor, int64_t dim);
  bool followsFromArguments(mlir::Value value);
  void moveToStart(mlir::Value value);

  mlir::func::FuncOp func;
  mlir::OpBuilder builder;
  /// The first operation of the function that was not inserted at the start.
  mlir::Operation *firstOwn;
  llvm::SmallSetVector<mlir::Operation *, 16> built;
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, mlir::OpFoldResult> known;
  llvm::EquivalenceClasses<void *> same;
};

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_TENSORSIZES_H
