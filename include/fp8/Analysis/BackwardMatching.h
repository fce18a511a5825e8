// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds, by dataflow, which matrix products are the backward of which.
//
// A product y = x · w has two gradients: dx = dy · w and dw = x · dy. Each shares one
// operand with the product and reads the other one's place, the gradient dy, from
// values that y has reached. The shared operand is summed over just those dimensions
// that the product kept of it, and the reverse; batch dimensions are batch dimensions
// in both. (A weight that is repeated over the batch has a gradient per batch, which the
// program sums: what it sums over is no batch dimension.) Where both gradients are there,
// they share dy: that confirms them, and such triples are settled first. Then come pairs
// (the first layer has no dx, a frozen weight no dw), where the names must agree, as far as
// there are names: a tied output projection looks like a gradient of the embedding.
//
// Of layers that are alike, a weight that is carried has the gradients that go into its new
// value, and dy is made of gradients of what reads y. What is computed again for the backward
// pass counts as the tensor that the forward pass had.
//
// Where dy comes from outside (an argument, as in a vector-Jacobian product, or a constant), y
// does not reach it. Then two gradients that share it are taken for such if one is a result.

#ifndef FP8_ANALYSIS_BACKWARDMATCHING_H
#define FP8_ANALYSIS_BACKWARDMATCHING_H

#include "fp8/Analysis/Reachability.h"
#include "fp8/Analysis/SiteNames.h"
#include "fp8/Analysis/TensorIdentity.h"
#include "fp8/Dialect/FP8/IR/FP8.h"

namespace fp8 {

/// A matrix product, and its place in the forward or backward pass.
struct Contraction {
  MatmulOp op;
  /// What the program makes of the product: its result, or the sum of that over batch
  /// dimensions where nothing else reads it. Those then count as contracted.
  mlir::Value result;
  TensorUse operands[2];
  NameStack name;

  static constexpr int kNone = -1;
  /// The product that this one is a gradient of.
  int forward = kNone;
  /// Which of its own operands is the gradient dy (with `forward`).
  unsigned gradientOperand = 0;
  /// The gradients of the first and second operand of this product.
  int gradients[2] = {kNone, kNone};

  bool isForward() const { return gradients[0] != kNone || gradients[1] != kNone; }
  bool isBackward() const { return forward != kNone; }
  bool isMatched() const { return isForward() || isBackward(); }
};

/// True if `b` sums over what `a` keeps of a tensor that both read, and the reverse.
bool haveOppositeUses(const TensorUse &a, const TensorUse &b);

/// The matrix products of a function in program order, not matched yet.
std::vector<Contraction> collectContractions(mlir::FunctionOpInterface function);

/// Fills in `forward`, `gradientOperand` and `gradients`. Sources of `reachability` and of
/// `direct` are the contractions.
void matchBackward(mlir::FunctionOpInterface function, const Reachability &reachability,
                   const Reachability &direct, llvm::MutableArrayRef<Contraction> contractions);

} // namespace fp8

#endif // FP8_ANALYSIS_BACKWARDMATCHING_H
