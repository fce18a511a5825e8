// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sizes of a function's tensors, as far as possible in terms of the sizes of its
// arguments, so that equal ones can be told.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_TENSORSIZES_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_TENSORSIZES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SetVector.h"

namespace fp8 {

/// Builds and compares sizes. What it builds and nobody uses is erased at its end.
class TensorSizes : mlir::OpBuilder::Listener {
public:
  explicit TensorSizes(mlir::func::FuncOp func);
  TensorSizes(const TensorSizes &) = delete;
  TensorSizes &operator=(const TensorSizes &) = delete;
  ~TensorSizes();

  /// The size of one dimension, available wherever `tensor` is.
  mlir::OpFoldResult get(mlir::Value tensor, int64_t dim);
  mlir::SmallVector<mlir::OpFoldResult> getAll(mlir::Value tensor);

  /// `size`, or what it is the size of another tensor's dimension for.
  mlir::OpFoldResult simplify(mlir::OpFoldResult size);

  /// True where both are known to be one number.
  bool isSame(mlir::OpFoldResult a, mlir::OpFoldResult b);

  /// From now on both count as one number: the program checks it before anything else.
  void setSame(mlir::OpFoldResult a, mlir::OpFoldResult b);

  /// Puts the computation of `size` at the start of the function, if it follows from scalars
  /// and the shapes of the arguments alone.
  bool hoist(mlir::OpFoldResult size);

  /// In front of the function's own operations, behind all that was put there.
  mlir::OpBuilder atStart();

  /// The arguments whose shapes or values `size` follows from.
  void collectArguments(mlir::OpFoldResult size, llvm::SetVector<mlir::BlockArgument> &arguments);

private:
  void notifyOperationInserted(mlir::Operation *op, mlir::OpBuilder::InsertPoint previous) override;
  mlir::OpFoldResult compute(mlir::Value tensor, int64_t dim);
  bool followsFromArguments(mlir::Value value);
  void moveToStart(mlir::Value value);

  mlir::func::FuncOp func;
  mlir::OpBuilder builder;
  /// Marks the end of what is put at the start.
  mlir::Operation *firstOwn;
  llvm::SmallSetVector<mlir::Operation *, 16> built;
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, mlir::OpFoldResult> known;
  llvm::EquivalenceClasses<void *> same;
};

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_TENSORSIZES_H
