// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the stacks that can hold bytes: only casts read them, all with the same scale. Private to
// the library.
//
// Forward is the code that fills stacks, backward the code that reads them: the halves of a joined
// pair or, in any other function, the code before the loop that reads a stack, and the code from
// this loop on.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_CASTSTACKS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_CASTSTACKS_H

#include "CastScale.h"
#include "Stacks.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace fp8 {

/// The code that runs before the operation `end`: in its block, nested in operations there, and
/// outside of the operation that contains the block.
class Forward {
public:
  explicit Forward(mlir::Operation *end) : end(end) {}
  bool contains(mlir::Operation *op) const;
  bool contains(mlir::Value value) const;

private:
  mlir::Operation *end;
};

/// The stacks that a cast of backward reads, and all casts that read these.
class CastStacks {
public:
  CastStacks(Forward forward, QuantizeOp first, CastScale scale)
      : scale(std::move(scale)), format(first.getFormat()), column(first.getColumnAttr()),
        element(mlir::getElementTypeOrSelf(first.getInputs().front())), forward(forward) {}
  /// Collects the stacks and their readers. False if anything else than such casts reads a stack, no
  /// bytes would be saved, or an amax would be lost.
  bool find(QuantizeOp first);

  /// The scale, format, column and element type that all casts share.
  CastScale scale;
  mlir::Type format;
  mlir::IntegerAttr column;
  mlir::Type element; ///< of the tensors that are cast

  llvm::SmallVector<mlir::OpResult> results;       ///< of the loops that fill the stacks
  llvm::DenseMap<mlir::Value, unsigned> stacked;   ///< values of stacks, by number of the stack
  llvm::SetVector<mlir::Operation *> casts, views; ///< readers of stacks
  llvm::SetVector<mlir::Operation *> sizes;        ///< of stacks and views

  /// Forward's own cast of `value`; null where it has none.
  QuantizeOp findCastInForward(mlir::Value value) const;
  /// The tensor that `value` is a view of: the first, going back through views, that forward
  /// casts; otherwise the last. Where each slice has a scale of its own, a slice of a tensor that
  /// is no stack is such a tensor too.
  mlir::Value getSource(mlir::Value value) const;
  /// The dimensions of `value` that number the slices with scales of their own; unset where
  /// `value` has parts of such slices.
  std::optional<SliceDims> findSliceDims(mlir::Value value, unsigned depth = 0) const;

private:
  bool isSameCast(QuantizeOp op) const;
  bool addSource(mlir::Value value);
  bool addStack(mlir::OpResult result);
  bool addReaders(mlir::Value value, bool inBackward);
  bool addReader(mlir::OpOperand &use);
  bool readsWholeSlices() const;
  bool measuresCastsAlone() const;
  bool savesBytes(mlir::OpResult result) const;
  bool recordsInForward() const;

  Forward forward;
  llvm::SmallPtrSet<mlir::Operation *, 4> measures; ///< amaxes that scales of slices are computed from
};

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_CASTSTACKS_H
