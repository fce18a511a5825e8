// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The matmuls of groups of rows (mixture of experts) that a target computes group by group, and their code.

#ifndef FP8_DIALECT_FP8_IR_GROUPEDMATMULSUPPORT_H
#define FP8_DIALECT_FP8_IR_GROUPEDMATMULSUPPORT_H

#include "fp8/Dialect/FP8/IR/Chips.h"

namespace fp8 {

/// The place of an operand in a matmul of groups of rows.
struct GroupedOperand {
  TensorKind kind;
  llvm::SmallVector<bool> contracted; ///< per dimension of the rows, or of the matrix of one group
  bool hasRows;                       ///< whether one of them is the rows that groups divide
  bool areRowsSummed;                 ///< whether these are contracted, as in a weight gradient
};

/// Returns whether `target` multiplies this operand with the scales of `recipe` group by group; else rows are
/// masked, as the program wrote them. A scale of several rows would be that of rows of several groups.
bool canGroupScales(TargetAttrInterface target, RecipeAttrInterface recipe, const GroupedOperand &operand);

/// Returns the instructions that compute grouped matmuls: for 16-bit operands mma.sync, which reads those of
/// weight gradients in place, on every chip.
MatmulFamily getGroupedFamily(const Chip &chip, bool isFP8);

/// Does what ChipAttr::describeMatmul() does, for matmuls by instructions of `family`.
MatmulSupport describeMatmulOf(ChipAttr chip, MatmulFamily family, RecipeAttrInterface recipe, Role role);

/// Does what `target.describeMatmul()` does, for matmuls of groups of rows.
MatmulSupport describeGroupedMatmul(TargetAttrInterface target, RecipeAttrInterface recipe, Role role);

} // namespace fp8

#endif // FP8_DIALECT_FP8_IR_GROUPEDMATMULSUPPORT_H
