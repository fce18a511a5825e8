// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tensor of a cast as a batch of matrices, which kernels divide into tiles, and where the elements of its
// operands are in memory. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_TILEOPERANDS_H
#define FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_TILEOPERANDS_H

#include "fp8/Conversion/FP8ToGPU/Alignment.h"

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"
#include <optional>

namespace fp8 {

/// Rows and columns of a tile.
inline constexpr int64_t kTile = 128;

/// Returns whether nothing reads what the only user of the buffer writes.
bool isUnread(mlir::Value buffer);

/// The dimensions of a tensor in three groups: the first `batchDims` are the batch, the last `columnDims` the
/// columns, those between the rows. Sizes of batch and rows may be dynamic (ShapedType::kDynamic): they are
/// arguments of the kernel then. A tensor without elements has one tile, for results that do not depend on
/// elements.
struct TileSpace {
  TileSpace(llvm::ArrayRef<int64_t> sizes, unsigned batchDims, unsigned columnDims = 1);

  /// Returns whether it is known to have no elements.
  bool isEmpty() const { return batches == 0 || rows == 0 || columns == 0; }
  /// Returns whether its rows are known to be a multiple of `count`.
  bool hasMultipleOfRows(int64_t count) const {
    return !mlir::ShapedType::isDynamic(rows) && rows % count == 0;
  }
  /// Returns whether dimension `dim` of the tensor is the first of its group: no index is divided by its
  /// size.
  bool isOutermost(unsigned dim) const {
    return dim == 0 || dim == batchDims || dim + columnDims == sizes.size();
  }
  int64_t countTilesOfBatch() const; ///< along the rows, whose number is known
  int64_t countColumnTiles() const;
  /// Returns whether kernels can number its rows, columns and tiles, as far as they are known.
  bool isCountable() const;

  llvm::SmallVector<int64_t> sizes;
  unsigned batchDims, columnDims;
  int64_t batches, rows, columns; ///< products of the sizes of each group
  // Numbers of the kernel's arguments, i32, for what is dynamic of these; of sizes, those that are not the
  // outermost of their group.
  unsigned batchesArgument = 0, rowsArgument = 0;
  llvm::SmallVector<unsigned> sizeArguments;
};

/// A stride in elements: a number, or ShapedType::kDynamic for entry `number` of TileOperand::dynamicDims.
struct TileStride {
  bool isDynamic() const { return mlir::ShapedType::isDynamic(known); }

  int64_t known = 0;
  unsigned number = 0;
};

/// Strides of a memref whose position is linear in batch, row and column.
struct TileStrides {
  TileStride batch, row, column;
};

/// A memref that a kernel reads or writes at one place per element of the tensor.
struct TileOperand {
  /// `map` gives the position in the memref from the dimensions of the tensor. Returns nullopt if the
  /// memref has no strides.
  static std::optional<TileOperand> create(mlir::Value memref, mlir::AffineMap map, const TileSpace &space);

  mlir::Type getElementType() const;
  int64_t getElementBytes() const;
  /// Returns whether the elements of a row, or of a column, are adjacent.
  bool hasAdjacentColumns(const TileSpace &space) const;
  bool hasAdjacentRows(const TileSpace &space) const;
  /// Returns a power of two, at most 16, that divides the addresses of the first elements of all rows, or of
  /// all columns; `dynamic` is what is known to divide dynamic strides.
  int64_t getRowAlignment() const { return getAlignment(0, 1); }
  int64_t getColumnAlignment(int64_t dynamic = 1) const { return getAlignment(1, dynamic); }
  /// Returns whether kernels take the stride `number` of `dynamicDims` as an argument.
  bool needsStride(unsigned number) const;

  mlir::Value memref;
  /// In elements from the first one, from the dimensions of the tensor; symbols are dynamic strides.
  mlir::AffineExpr position;
  llvm::SmallVector<unsigned> dynamicDims; ///< dimensions of the memref whose stride is dynamic
  /// One per dimension of the tensor, if the position is a sum of one term per dimension.
  std::optional<llvm::SmallVector<TileStride>> dimStrides;
  std::optional<TileStrides> strides;
  unsigned argument = 0;                       ///< number of the kernel's argument
  llvm::SmallVector<unsigned> strideArguments; ///< numbers of the arguments, i64, for `dynamicDims`

private:
  int64_t getAlignment(unsigned adjacentDim, int64_t dynamic) const;
  int64_t baseAlignment; ///< of the first element
};

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_TILEOPERANDS_H
