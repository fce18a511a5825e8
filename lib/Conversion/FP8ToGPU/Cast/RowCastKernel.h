// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel of casts and amaxes with `rows`, such as a norm or a softmax and the cast of its result. It
// reads a row once, keeps it in registers, and writes FP8 rows and columns, scale_inv, amax, statistics of
// rows, stored rows and sums over rows. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_CAST_ROWCASTKERNEL_H
#define FP8_LIB_CONVERSION_FP8TOGPU_CAST_ROWCASTKERNEL_H

#include "ScaledCastKernel.h"

namespace fp8 {

/// How threads share rows: `lanes` of them compute a row, a warp or a whole block, each `chunks` times
/// `width` adjacent elements. A block computes `teams` rows at once, and `rowsOfBlock` one after the other.
struct RowPlan {
  /// Lanes of a warp, and the rows that a block computes at once where a warp computes each.
  static constexpr int64_t kWarp = 32, kWarps = 8;
  /// Rows of a block whose columns are written.
  static constexpr int64_t kColumnRows = 32;

  /// Plans rows of `length` elements. `kept` is the number of values per element that are alive at once
  /// (RowVectors.h); with sums or columns a block computes more rows.
  RowPlan(const Chip &chip, int64_t length, int64_t rows, int64_t kept, bool hasSums, bool hasColumns);

  /// Returns whether a block can write the columns of its rows of FP8: they pass through shared memory.
  bool canWriteColumns() const { return teams > 1 && width == 4; }
  int64_t countThreads() const { return lanes * teams; }
  /// Elements of a thread, those beyond the end of a row included.
  int64_t countElements() const { return chunks * width; }

  int64_t width, chunks, lanes, teams, rowsOfBlock;
};

/// Writes the code of the kernel of `work`, whose region is on vectors.
void buildRowKernel(KernelBuilder &b, const TileWork &work, const RowPlan &plan);

/// Launches the kernel before the insertion point, as launchTiles() does.
void launchRows(mlir::OpBuilder &builder, LoweringContext &context, TileWork &work, const RowPlan &plan,
                llvm::StringRef name);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_CAST_ROWCASTKERNEL_H
