// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Grouped matmuls (mixture of experts) on GPUs: their operands, and the groups as a kernel finds them.
// Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_GROUPEDMATMUL_H
#define FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_GROUPEDMATMUL_H

#include "../Kernel/LoweringContext.h"
#include "MatmulView.h"

namespace fp8 {

/// Returns both operands of a grouped matmul as a kernel reads them. In a weight gradient each is either
/// [rows, M or N] in place, of 16-bit elements, or a copy along the rows where each group begins at a
/// multiple of `stepBytes`, and is followed by zeros up to the next.
std::array<MatmulOperand, 2> prepareGroupedOperands(mlir::OpBuilder &builder, LoweringContext &context,
                                                    const MatmulView &matmul, int64_t stepBytes);

/// The arguments of a kernel that tell the groups.
struct GroupArguments {
  GroupArguments(KernelArguments &arguments, mlir::OpBuilder &host, mlir::Location loc,
                 const RowsOfGroups &groups);

  unsigned ends, count;
  mlir::Type type; ///< of an end
  bool ofResult;
};

/// The group whose rows a tile of the result has. Tiles of rows are numbered through all groups, and through
/// the rows after the last group, which count as one more.
struct GroupOfTile {
  Expr group;      ///< the last group for rows of none
  Expr begin, end; ///< its rows; none, after the last, for a tile beyond the last
  Expr firstTile;
  Expr isGroup; ///< whether it is one: rows of none are zeros
};

/// Finds the group of `tile`, a block of `tileRows` rows; `rows` is the number of all rows.
GroupOfTile findGroupOfTile(KernelBuilder &b, const GroupArguments &groups, Expr rows, Expr tile,
                            int64_t tileRows);

/// The rows of a group, and its first row where each group before takes a multiple of some number of rows.
struct RowsOfGroup {
  Expr begin, end, start;
};

/// Finds the rows of `group`; groups before take multiples of `step` rows.
RowsOfGroup findRowsOfGroup(KernelBuilder &b, const GroupArguments &groups, Expr rows, Expr group,
                            int64_t step);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_GROUPEDMATMUL_H
