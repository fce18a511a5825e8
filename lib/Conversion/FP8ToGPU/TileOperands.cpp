// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Strides and alignment of the operands of casts.

#include "TileOperands.h"
#include "KernelBuilder.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include <numeric>

using namespace mlir;
using namespace fp8;

/// The widest access of a thread. Every allocation and argument is aligned to more.
static constexpr int64_t kMaxAlignment = 16;

static int64_t product(ArrayRef<int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<int64_t>());
}

TileSpace::TileSpace(ArrayRef<int64_t> sizes, unsigned batchDims, unsigned columnDims)
    : sizes(sizes), batchDims(batchDims), columnDims(sizes.empty() ? 0 : columnDims) {
  batches = product(sizes.take_front(batchDims));
  rows = product(sizes.drop_front(batchDims).drop_back(this->columnDims));
  columns = product(sizes.take_back(this->columnDims));
  if (batches == 0)
    rows = 0; // kernels compare with rows and columns, not with batches
}

int64_t TileSpace::countRowTiles() const {
  return std::max<int64_t>(batches, 1) * std::max<int64_t>(llvm::divideCeil(rows, kTile), 1);
}

int64_t TileSpace::countColumnTiles() const { return std::max<int64_t>(llvm::divideCeil(columns, kTile), 1); }

bool TileSpace::isCountable() const {
  return std::max({batches, rows, columns, countTiles()}) <= kMostOfDimension;
}

static int64_t bytesOf(Type type) {
  return type.isIndex() ? 8 : llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
}

int64_t fp8::findBaseAlignment(Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  if (type.hasStaticShape() && type.getNumElements() == 0)
    return kMaxAlignment;
  auto [strides, offset] = type.getStridesAndOffset();
  int64_t bytes = bytesOf(type.getElementType());
  if (!ShapedType::isDynamic(offset))
    return std::gcd(kMaxAlignment, offset * bytes);
  auto view = memref.getDefiningOp<memref::SubViewOp>();
  if (!view)
    return std::gcd(kMaxAlignment, bytes);
  int64_t alignment = findBaseAlignment(view.getSource());
  auto [sourceStrides, sourceOffset] = view.getSourceType().getStridesAndOffset();
  for (auto [start, stride] : llvm::zip_equal(view.getMixedOffsets(), sourceStrides)) {
    int64_t step = ShapedType::isDynamic(stride) ? 1 : stride;
    alignment = std::gcd(alignment, getConstantIntValue(start).value_or(1) * step * bytes);
  }
  return alignment;
}

/// Returns the stride of each dimension of the tensor: 0 where `map` does not use it. Returns nullopt if the
/// position is not a sum of one term per dimension.
static std::optional<SmallVector<int64_t>> findStrides(AffineMap map, ArrayRef<int64_t> memrefStrides) {
  SmallVector<int64_t> strides(map.getNumDims(), 0);
  for (auto [expr, stride] : llvm::zip_equal(map.getResults(), memrefStrides)) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      strides[dim.getPosition()] += stride;
    else if (expr != getAffineConstantExpr(0, map.getContext()))
      return std::nullopt;
  }
  return strides;
}

/// Returns the stride of the index that counts through all `sizes`, the last one fastest; nullopt if there is
/// no such stride.
static std::optional<int64_t> joinStrides(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  std::optional<int64_t> joined;
  int64_t next = 0; // the stride that the next dimension outwards must have
  for (auto [size, stride] : llvm::reverse(llvm::zip_equal(sizes, strides))) {
    if (size == 1)
      continue;
    if (joined && stride != next)
      return std::nullopt;
    if (!joined)
      joined = stride;
    next = stride * size;
  }
  return joined.value_or(0);
}

static std::optional<TileStrides> joinDims(ArrayRef<int64_t> each, const TileSpace &space) {
  if (each.empty())
    return TileStrides{0, 0, 0};
  ArrayRef<int64_t> sizes = space.sizes;
  std::optional<int64_t> batch =
      joinStrides(sizes.take_front(space.batchDims), each.take_front(space.batchDims));
  std::optional<int64_t> row = joinStrides(sizes.drop_front(space.batchDims).drop_back(space.columnDims),
                                           each.drop_front(space.batchDims).drop_back(space.columnDims));
  std::optional<int64_t> column =
      joinStrides(sizes.take_back(space.columnDims), each.take_back(space.columnDims));
  if (!batch || !row || !column)
    return std::nullopt;
  if (space.columnDims == 1)
    column = each.back();
  return TileStrides{*batch, *row, *column};
}

std::optional<TileOperand> TileOperand::create(Value memref, AffineMap map, const TileSpace &space) {
  auto type = cast<MemRefType>(memref.getType());
  SmallVector<int64_t> memrefStrides;
  int64_t offset;
  if (!type.hasStaticShape())
    return std::nullopt;
  if (type.getNumElements() == 0) // of which upstream computes no strides
    memrefStrides.assign(type.getRank(), 0);
  else if (failed(type.getStridesAndOffset(memrefStrides, offset)) ||
           !ShapedType::isStaticShape(memrefStrides))
    return std::nullopt;
  TileOperand operand;
  operand.memref = memref;
  operand.position = getAffineConstantExpr(0, map.getContext());
  for (auto [expr, stride] : llvm::zip_equal(map.getResults(), memrefStrides))
    operand.position = operand.position + expr * stride;
  operand.dimStrides = findStrides(map, memrefStrides);
  if (operand.dimStrides)
    operand.strides = joinDims(*operand.dimStrides, space);
  operand.baseAlignment = findBaseAlignment(memref);
  return operand;
}

Type TileOperand::getElementType() const { return cast<MemRefType>(memref.getType()).getElementType(); }
int64_t TileOperand::getElementBytes() const { return bytesOf(getElementType()); }

bool TileOperand::hasAdjacentColumns(const TileSpace &space) const {
  if (space.isEmpty() || space.columns == 1 || !dimStrides)
    return space.isEmpty() || space.columns == 1;
  if (strides)
    return strides->column == 1;
  // The 8 columns of a thread are in the last dimension.
  return dimStrides->back() == 1 && (space.columnDims == 1 || space.sizes.back() % 8 == 0);
}

bool TileOperand::hasAdjacentRows(const TileSpace &space) const {
  if (space.isEmpty() || space.rows == 1 || !dimStrides)
    return space.isEmpty() || space.rows == 1;
  // One dimension of rows, or several that count as one.
  return strides ? strides->row == 1
                 : space.columnDims == 1 && dimStrides->size() == space.batchDims + 2 &&
                       (*dimStrides)[space.batchDims] == 1;
}

int64_t TileOperand::getAlignment(unsigned adjacentDim) const {
  int64_t alignment = baseAlignment, bytes = getElementBytes();
  if (strides) {
    int64_t other = adjacentDim == 0 ? strides->row : strides->column;
    return std::gcd(std::gcd(alignment, strides->batch * bytes), other * bytes);
  }
  if (!dimStrides)
    return std::gcd(alignment, bytes);
  for (auto [dim, stride] : llvm::enumerate(*dimStrides))
    if (dim + 1 + adjacentDim != dimStrides->size())
      alignment = std::gcd(alignment, stride * bytes);
  return alignment;
}
