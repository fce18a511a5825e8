// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The amaxes and scales of the blocks of a tile, in shared memory. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_CAST_BLOCKCASTTABLE_H
#define FP8_LIB_CONVERSION_FP8TOGPU_CAST_BLOCKCASTTABLE_H

#include "ScaledCastKernelBuilder.h"

namespace fp8 {

inline constexpr int64_t kPartRows = 8; ///< rows of two groups, whose lanes are in one warp

/// A table in shared memory with the amaxes of parts of blocks, of up to 8 rows. The scale of a block takes
/// the place of its first part.
class BlockTable {
public:
  /// `number` tells apart the tables of one kernel.
  BlockTable(KernelBuilder &b, const TileScaling &scaling, unsigned number);

  int64_t getPartRows() const { return std::min(rows, kPartRows); }
  int64_t countParts() const { return rows / getPartRows(); } ///< of a block
  int64_t countColumns() const { return kTile / columns; }    ///< blocks side by side
  int64_t countBlocks() const { return kTile / rows * countColumns(); }
  /// Blocks side by side that a thread has elements of, and those of its 4 adjacent rows.
  int64_t countOfThread() const { return std::max<int64_t>(kChunk / columns, 1); }
  int64_t countOfGroup() const { return std::max<int64_t>(kGroup / rows, 1); }

  /// Returns the place of a part: block number `j` of those side by side of a chunk of 8 columns.
  Expr find(Expr part, Expr chunk, Expr j) const;
  Expr load(Expr place) const;
  void store(Expr value, Expr place) const;
  /// Loads or stores 4 adjacent places.
  llvm::SmallVector<Expr> loadFour(Expr place) const;
  void storeFour(llvm::ArrayRef<Expr> values, Expr place) const;

private:
  int64_t getPitch() const;
  mlir::Value toIndex(Expr value) const;

  KernelBuilder &b;
  int64_t rows, columns;
  mlir::Value memory;
};

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_CAST_BLOCKCASTTABLE_H
