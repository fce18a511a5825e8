// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reads of a step that get the mean of a gradient over the ranks. Private to the room.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_COLLECTIVES_GRADIENTREADS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_COLLECTIVES_GRADIENTREADS_H

#include "LossScaling/CotangentPaths.h"
#include "RankDependence.h"
#include "llvm/ADT/MapVector.h"

namespace fp8 {

/// The reads at which the backward pass, which is linear, ends: those of the optimizer, of the norm of a
/// clipping, of return. Other reads of the same value go on in the backward pass, and need each rank's own:
/// the gradient of a bias for every element is that of the sum, too.
class GradientReads {
public:
  GradientReads(mlir::func::FuncOp function, mlir::Value loss, const RankDependence &dependence);

  bool hasGradients() const { return paths.hasGradients(); }
  /// Whether `result`, an operand of return, is a gradient.
  bool isGradient(mlir::OpOperand &result) const { return ends.contains(&result); }
  /// Whether it is computed from one: a new parameter, or a gradient with weight decay.
  bool isOfGradients(mlir::OpOperand &result) const { return ofGradients.contains(result.get()); }

  bool isForward(mlir::Value value) const { return paths.isForward(value); }

  /// Returns the reads that get means so that `wanted`, operands of return, are equal on all ranks, by the
  /// value that they read, in the order of the program. They are as early as linear operations with values
  /// that are equal on all ranks allow: W - rate · g needs the mean of g.
  llvm::SmallVector<std::pair<mlir::Value, llvm::SmallVector<mlir::OpOperand *>>>
  find(const llvm::SetVector<mlir::OpOperand *> &wanted) const;

private:
  mlir::Operation *getReader(mlir::OpOperand &read) const;
  void findEnds();
  void findOfGradients();
  llvm::DenseSet<mlir::Operation *> findBackward() const;
  llvm::DenseSet<mlir::Value> findSources(const llvm::SetVector<mlir::OpOperand *> &wanted) const;
  mlir::OpOperand *findEarlier(mlir::Value gradient) const;
  void moveUp(llvm::SetVector<mlir::OpOperand *> &reads, llvm::function_ref<bool(mlir::Value)> isMoved) const;

  mlir::Block &body;
  const RankDependence &dependence;
  CotangentPaths paths;
  llvm::SetVector<mlir::OpOperand *> ends;
  llvm::DenseSet<mlir::Value> ofGradients;
};

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_COLLECTIVES_GRADIENTREADS_H
