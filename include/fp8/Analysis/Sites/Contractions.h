// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The matmuls of a function, with the tensors that each reads and the use of their dimensions.
//
// The gradient of a weight that is repeated over the batch is a matmul per batch, and a sum over them in the
// program: the batch dimensions that are summed count as contracted, and the sum as the matmul's result.

#ifndef FP8_ANALYSIS_SITES_CONTRACTIONS_H
#define FP8_ANALYSIS_SITES_CONTRACTIONS_H

#include "fp8/Analysis/Sites/SiteNames.h"
#include "fp8/Analysis/TensorIdentity.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace fp8 {

/// A matmul, and its place in the forward or backward pass.
struct Contraction {
  MatmulOp op;
  /// The result of the matmul or, where nothing but a sum over batch dimensions reads it, that sum. The
  /// summed dimensions then count as contracted.
  mlir::Value result;
  TensorUse operands[2];
  NameStack name;
  /// The first matmul of the function that reads the same tensors in the same way: this one, unless
  /// it is computed again.
  unsigned first = 0;

  static constexpr int kNone = -1;
  /// The matmul that this one is a gradient of.
  int forward = kNone;
  /// The operand of this matmul that is the gradient dy, and the operand of the forward matmul that this
  /// matmul is the gradient of. Valid with `forward`.
  unsigned gradientOperand = 0, differentiated = 0;
  /// The name of the rule (BackwardMatching.cpp) that found `forward`.
  llvm::StringRef rule = {};
  /// The gradients of the first and second operand of this matmul; a later one that is added to
  /// one of these (gradients of gradients make such) has `forward` alone.
  int gradients[2] = {kNone, kNone};
  /// A matmul that this one, which is not matched, may be a gradient of: by its form alone, not by dataflow.
  int maybeGradientOf = kNone;

  bool isForward() const { return gradients[0] != kNone || gradients[1] != kNone; }
  bool isBackward() const { return forward != kNone; }
  bool isMatched() const { return isForward() || isBackward(); }
};

/// True if `b` sums over what `a` keeps of a tensor that both read, and the reverse.
bool haveOppositeUses(const TensorUse &a, const TensorUse &b);

/// The use of the groups g in a gradient of a grouped matmul, y[m, n] = sum over g and k of
/// x[g, m, k] · w[g, k, n]: the matmul of dy with w sums over them, that of x with dy keeps them.
enum class GroupUse { summed, kept };

/// The use of the groups by `backward`, if `forward` sums over groups of a tensor that `backward` reads as a
/// gradient of the grouped matmul does: all other dimensions are used the opposite way. Unset otherwise.
std::optional<GroupUse> matchGroupedUses(const TensorUse &forward, const TensorUse &backward);

/// The matmuls of a function in program order, not matched yet.
std::vector<Contraction> collectContractions(mlir::FunctionOpInterface function);

} // namespace fp8

#endif // FP8_ANALYSIS_SITES_CONTRACTIONS_H
