// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tensor of a cast as a batch of matrices, which kernels divide into tiles, and where the elements of its
// operands are in memory. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_TILEOPERANDS_H
#define FP8_LIB_CONVERSION_FP8TOGPU_TILEOPERANDS_H

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"
#include <optional>

namespace fp8 {

/// Rows and columns of a tile.
inline constexpr int64_t kTile = 128;

/// Returns a power of two of up to 16 bytes that divides the address of the first element of `memref`.
int64_t findBaseAlignment(mlir::Value memref);

/// Returns whether nothing reads what the only user of the buffer writes.
bool isUnread(mlir::Value buffer);

/// The dimensions of a tensor of static shape in three groups: the first `batchDims` are the batch, the last
/// `columnDims` the columns, those between the rows.
struct TileSpace {
  TileSpace(llvm::ArrayRef<int64_t> sizes, unsigned batchDims, unsigned columnDims = 1);

  bool isEmpty() const { return batches * rows * columns == 0; }
  /// The number of tiles. A tensor without elements has one, for results that do not depend on elements.
  int64_t countTiles() const { return countRowTiles() * countColumnTiles(); }
  int64_t countRowTiles() const; ///< of all batches
  int64_t countColumnTiles() const;
  /// Returns whether kernels can number its rows, columns and tiles.
  bool isCountable() const;

  llvm::SmallVector<int64_t> sizes;
  unsigned batchDims, columnDims;
  int64_t batches, rows, columns; ///< products of the sizes of each group
};

/// Strides in elements of a memref whose position is linear in batch, row and column.
struct TileStrides {
  int64_t batch, row, column;
};

/// A memref that a kernel reads or writes at one place per element of the tensor.
struct TileOperand {
  /// `map` gives the position in the memref from the dimensions of the tensor. Returns nullopt if the
  /// memref has dynamic sizes or strides.
  static std::optional<TileOperand> create(mlir::Value memref, mlir::AffineMap map, const TileSpace &space);

  mlir::Type getElementType() const;
  int64_t getElementBytes() const;
  /// Returns whether the elements of a row, or of a column, are adjacent.
  bool hasAdjacentColumns(const TileSpace &space) const;
  bool hasAdjacentRows(const TileSpace &space) const;
  /// Returns a power of two, at most 16, that divides the addresses of the first elements of all rows, or of
  /// all columns.
  int64_t getRowAlignment() const { return getAlignment(0); }
  int64_t getColumnAlignment() const { return getAlignment(1); }

  mlir::Value memref;
  mlir::AffineExpr position; ///< in elements from the first one, from the dimensions of the tensor
  /// In elements, one per dimension of the tensor, if the position is a sum of one term per dimension.
  std::optional<llvm::SmallVector<int64_t>> dimStrides;
  std::optional<TileStrides> strides;
  unsigned argument = 0; ///< number of the kernel's argument

private:
  int64_t getAlignment(unsigned adjacentDim) const;
  int64_t baseAlignment; ///< of the first element
};

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_TILEOPERANDS_H
