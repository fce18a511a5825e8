// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recognizes tensors that divide rows among groups, and the matmuls that read them.

#ifndef FP8_ANALYSIS_ROWGROUPS_H
#define FP8_ANALYSIS_ROWGROUPS_H

#include "fp8/Dialect/FP8/IR/FP8.h"

namespace fp8 {

/// Rows that are divided among groups, as the operands of fp8.group_rows.
struct RowGroups {
  mlir::Value rows; ///< [T, K]
  mlir::Value ends; ///< [G], integers
};

/// Matches a tensor [G, T, K] that has row t of `rows` where group g has it, and zeros elsewhere: selected by
/// `start[g] <= t and t < end[g]`, where each start is the end before it and the first is 0.
std::optional<RowGroups> matchRowMask(mlir::Value tensor);

/// A matmul of fp8.group_rows, written without it.
struct GroupedMatmul {
  mlir::Value lhs, rhs, ends;
  llvm::SmallVector<mlir::AffineMap> maps; ///< as those of fp8.grouped_matmul
};

/// Matches a matmul with operands `lhs` and `rhs`, of which one is an fp8.group_rows whose groups are
/// summed, or both are and the result has a matrix for each group.
std::optional<GroupedMatmul> matchGroupedMatmul(mlir::Value lhs, mlir::Value rhs,
                                                llvm::ArrayRef<mlir::AffineMap> maps);

} // namespace fp8

#endif // FP8_ANALYSIS_ROWGROUPS_H
