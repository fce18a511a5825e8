// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Infers the role of every matmul of a function in the training step.
//
// Forward matmuls with a weight (Weights.h) are fprop; their gradients are dgrad, which reads the
// weight, and wgrad, which reads the input. Matmuls without a weight, such as attention's, and their
// gradients are other.
//
// A matmul that is matched with no forward matmul is a gradient if names mark it as backward
// code (the backward half of a step that was split in two), else a forward matmul. Where two such gradients
// share dy and read a parameter each, the parameter of lower rank is the weight. Where names mark nothing,
// the gradient of a table that rows are gathered from is known by its size and by the result that it ends in.
//
// A matmul that computes the same as an earlier forward matmul belongs to the site of that one.

#ifndef FP8_ANALYSIS_SITES_ROLES_H
#define FP8_ANALYSIS_SITES_ROLES_H

#include "fp8/Analysis/Sites/BackwardMatching.h"
#include "fp8/Analysis/Sites/Weights.h"

namespace fp8 {

/// Role and operand kinds of one matmul.
struct ContractionRole {
  Contraction contraction;
  Role role = Role::other;
  TensorKind kinds[2] = {TensorKind::input, TensorKind::input};
  /// The matmul whose site this one belongs to: its forward matmul, the one that it computes again, or
  /// itself.
  unsigned leader = 0;
  /// The weight of a leader: the parameter that the operand is a view of (getParameter), or the operand where
  /// it is computed. Null if the leader has no weight.
  mlir::Value weight;
  /// The floating-point arguments and globals that the weight is computed from.
  llvm::SmallVector<mlir::Value> weightArguments;
  /// The operand that is the weight (fprop, dgrad).
  unsigned weightOperand = 1;
  /// The matmuls that each operand is computed from, with no other matmul between.
  llvm::BitVector sources[2];
  /// Neither dataflow nor names tell whether this matmul is forward.
  bool inDoubt = false;
};

/// The roles of all matmuls of each of the functions of a module, in program order.
/// `fp8.role` attributes win over what is inferred.
std::vector<std::vector<ContractionRole>> inferRoles(llvm::ArrayRef<mlir::FunctionOpInterface> functions);

} // namespace fp8

#endif // FP8_ANALYSIS_SITES_ROLES_H
