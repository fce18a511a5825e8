// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which stacks can hold bytes: those that nothing but casts reads, all with the same scale.
// Private to the library.
//
// What fills stacks is called forward here, what reads them backward: the halves of a joined
// pair, or in any other function what is before the loop that reads and what is from it on.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_CASTSTACKS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_CASTSTACKS_H

#include "CastScale.h"
#include "Stacks.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace fp8 {

/// What runs before an operation: in its block, in operations there, and around them.
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
  /// False where something but such casts reads one of them, nothing would be saved, or an amax
  /// would be lost.
  bool find(QuantizeOp first);

  /// What all of the casts have in common.
  CastScale scale;
  mlir::Type format;
  mlir::IntegerAttr column;
  mlir::Type element; ///< of what is cast

  llvm::SmallVector<mlir::OpResult> results;       ///< of the loops that fill the stacks
  llvm::DenseMap<mlir::Value, unsigned> stacked;   ///< values of stacks, by number of the stack
  llvm::SetVector<mlir::Operation *> casts, views; ///< that read stacks
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
  llvm::SmallPtrSet<mlir::Operation *, 4> measures; ///< what scales of slices follow from
};

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_CASTSTACKS_H
