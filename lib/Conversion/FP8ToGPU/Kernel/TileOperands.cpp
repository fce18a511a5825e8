// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Strides and alignment of the operands of casts.

#include "TileOperands.h"
#include "KernelBuilder.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/SmallBitVector.h"
#include <numeric>

using namespace mlir;
using namespace fp8;

/// Returns the product of both, where anything times 0 is 0.
static int64_t multiply(int64_t a, int64_t b) {
  if (a == 0 || b == 0)
    return 0;
  return ShapedType::isDynamic(a) || ShapedType::isDynamic(b) ? ShapedType::kDynamic : a * b;
}

static int64_t product(ArrayRef<int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), multiply);
}

TileSpace::TileSpace(ArrayRef<int64_t> sizes, unsigned batchDims, unsigned columnDims)
    : sizes(sizes), batchDims(batchDims), columnDims(sizes.empty() ? 0 : columnDims),
      sizeArguments(sizes.size(), 0) {
  batches = product(sizes.take_front(batchDims));
  rows = product(sizes.drop_front(batchDims).drop_back(this->columnDims));
  columns = product(sizes.take_back(this->columnDims));
}

int64_t TileSpace::countTilesOfBatch() const { return std::max<int64_t>(llvm::divideCeil(rows, kTile), 1); }

int64_t TileSpace::countColumnTiles() const { return std::max<int64_t>(llvm::divideCeil(columns, kTile), 1); }

bool TileSpace::isCountable() const {
  auto known = [](int64_t count) { return std::max<int64_t>(count, 1); };
  int64_t tiles = known(batches) * llvm::divideCeil(known(rows), kTile) * countColumnTiles();
  return std::max({batches, rows, columns, tiles}) <= kMostOfDimension;
}

/// Returns the stride of each dimension of the tensor: 0 where `map` does not use it. Returns nullopt if the
/// position is not a sum of one term per dimension.
static std::optional<SmallVector<TileStride>> findStrides(AffineMap map, ArrayRef<TileStride> memrefStrides) {
  SmallVector<TileStride> strides(map.getNumDims());
  for (auto [expr, stride] : llvm::zip_equal(map.getResults(), memrefStrides)) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      TileStride &sum = strides[dim.getPosition()];
      if (sum.known == 0)
        sum = stride;
      else if (sum.isDynamic() || stride.isDynamic())
        return std::nullopt;
      else
        sum.known += stride.known;
    } else if (expr != getAffineConstantExpr(0, map.getContext())) {
      return std::nullopt;
    }
  }
  return strides;
}

/// Returns the dimensions of the tensor whose stride is, whatever the sizes, that of the next dimension times
/// its size: neighbours in a memref without gaps.
static llvm::SmallBitVector findContiguous(MemRefType type, AffineMap map) {
  llvm::SmallBitVector contiguous(map.getNumDims());
  if (!type.getLayout().isIdentity() || !map.isProjectedPermutation(/*allowZeroInResults=*/true))
    return contiguous;
  for (unsigned i = 1; i < map.getNumResults(); ++i)
    if (auto dim = dyn_cast<AffineDimExpr>(map.getResult(i - 1)))
      contiguous[dim.getPosition()] =
          map.getResult(i) == getAffineDimExpr(dim.getPosition() + 1, map.getContext());
  return contiguous;
}

/// Returns the stride of the index that counts through the dimensions `first` to `last` - 1, the last one
/// fastest; nullopt if there is no such stride.
static std::optional<TileStride> joinStrides(const TileSpace &space, ArrayRef<TileStride> strides,
                                             const llvm::SmallBitVector &contiguous, unsigned first,
                                             unsigned last) {
  std::optional<TileStride> joined;
  int64_t next = 0;          // the stride that the next dimension outwards must have
  bool isContiguous = false; // whether all dimensions from this one to the joined ones are
  for (unsigned dim = last; dim-- > first;) {
    int64_t size = space.sizes[dim];
    isContiguous = isContiguous && contiguous[dim];
    if (size == 1)
      continue;
    const TileStride &stride = strides[dim];
    if (joined && !isContiguous && (stride.isDynamic() || stride.known != next))
      return std::nullopt;
    if (!joined)
      joined = stride;
    next = multiply(stride.known, size);
    isContiguous = true;
  }
  return joined.value_or(TileStride());
}

static std::optional<TileStrides> joinDims(ArrayRef<TileStride> each, const TileSpace &space,
                                           const llvm::SmallBitVector &contiguous) {
  if (each.empty())
    return TileStrides();
  unsigned rank = each.size(), columns = rank - space.columnDims;
  std::optional<TileStride> batch = joinStrides(space, each, contiguous, 0, space.batchDims),
                            row = joinStrides(space, each, contiguous, space.batchDims, columns),
                            column = joinStrides(space, each, contiguous, columns, rank);
  if (!batch || !row || !column)
    return std::nullopt;
  if (space.columnDims == 1)
    column = each.back();
  return TileStrides{*batch, *row, *column};
}

std::optional<TileOperand> TileOperand::create(Value memref, AffineMap map, const TileSpace &space) {
  auto type = cast<MemRefType>(memref.getType());
  SmallVector<int64_t> numbers;
  int64_t offset;
  if (type.hasStaticShape() && type.getNumElements() == 0) // of which upstream computes no strides
    numbers.assign(type.getRank(), 0);
  else if (failed(type.getStridesAndOffset(numbers, offset)))
    return std::nullopt;
  TileOperand operand;
  operand.memref = memref;
  operand.position = getAffineConstantExpr(0, map.getContext());
  SmallVector<TileStride> memrefStrides;
  for (auto [dim, stride] : llvm::enumerate(numbers)) {
    unsigned number = operand.dynamicDims.size();
    bool isDynamic = ShapedType::isDynamic(stride);
    if (isDynamic && type.getDimSize(dim) == 1)
      isDynamic = false, stride = 0; // of which there is one index, 0
    AffineExpr factor = isDynamic ? getAffineSymbolExpr(number, map.getContext())
                                  : getAffineConstantExpr(stride, map.getContext());
    operand.position = operand.position + map.getResult(dim) * factor;
    memrefStrides.push_back({stride, isDynamic ? number : 0});
    if (isDynamic)
      operand.dynamicDims.push_back(dim);
  }
  operand.strideArguments.assign(operand.dynamicDims.size(), 0);
  operand.dimStrides = findStrides(map, memrefStrides);
  if (operand.dimStrides)
    operand.strides = joinDims(*operand.dimStrides, space, findContiguous(type, map));
  operand.baseAlignment = findBaseAlignment(memref);
  return operand;
}

bool TileOperand::needsStride(unsigned number) const {
  if (!strides)
    return true;
  return llvm::any_of(
      std::array{strides->batch, strides->row, strides->column},
      [&](const TileStride &stride) { return stride.isDynamic() && stride.number == number; });
}

Type TileOperand::getElementType() const { return cast<MemRefType>(memref.getType()).getElementType(); }
int64_t TileOperand::getElementBytes() const { return countElementBytes(getElementType()); }

bool TileOperand::hasAdjacentColumns(const TileSpace &space) const {
  if (space.isEmpty() || space.columns == 1 || !dimStrides)
    return space.isEmpty() || space.columns == 1;
  if (strides)
    return strides->column.known == 1;
  // The 8 columns of a thread are in the last dimension.
  return dimStrides->back().known == 1 && (space.columnDims == 1 || space.sizes.back() % 8 == 0);
}

bool TileOperand::hasAdjacentRows(const TileSpace &space) const {
  if (space.isEmpty() || space.rows == 1 || !dimStrides)
    return space.isEmpty() || space.rows == 1;
  // One dimension of rows, or several that count as one.
  return strides ? strides->row.known == 1
                 : space.columnDims == 1 && dimStrides->size() == space.batchDims + 2 &&
                       (*dimStrides)[space.batchDims].known == 1;
}

int64_t TileOperand::getAlignment(unsigned adjacentDim, int64_t dynamic) const {
  int64_t alignment = baseAlignment, bytes = getElementBytes();
  auto divide = [&](const TileStride &stride) {
    alignment = std::gcd(alignment, (stride.isDynamic() ? dynamic : stride.known) * bytes);
  };
  if (strides) {
    divide(strides->batch);
    divide(adjacentDim == 0 ? strides->row : strides->column);
    return alignment;
  }
  if (!dimStrides)
    return std::gcd(alignment, bytes);
  for (auto [dim, stride] : llvm::enumerate(*dimStrides))
    if (dim + 1 + adjacentDim != dimStrides->size())
      divide(stride);
  return alignment;
}
