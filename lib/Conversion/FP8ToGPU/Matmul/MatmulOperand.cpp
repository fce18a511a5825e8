// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operands of matmuls as [batch, rows, K]: a view of memory where it lies so, else a padded copy.

#include "../Cast/ByteTranspose.h"
#include "MatmulView.h"
#include "fp8/Dialect/FP8/IR/Marks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace fp8;

static int64_t getBytes(Type element) { return element.getIntOrFloatBitWidth() / 8; }

/// Returns the distance in elements of neighbours along the dimensions at `positions`, taken as one, if there
/// is one distance: 0 for a single element.
static std::optional<int64_t> findStride(MemRefType type, ArrayRef<unsigned> positions) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return std::nullopt;
  int64_t inner = 0, next = 0; // the stride of the innermost dimension, and the one that the next must have
  for (unsigned position : llvm::reverse(positions)) {
    int64_t size = type.getDimSize(position), stride = strides[position];
    if (size == 1)
      continue;
    if (ShapedType::isDynamic(stride) || (next != 0 && stride != next))
      return std::nullopt;
    inner = inner ? inner : stride;
    next = ShapedType::isDynamic(size) ? ShapedType::kDynamic : stride * size;
  }
  return inner;
}

namespace {
/// The distances of batches in elements: the last `numInner` dimensions have their own, if there are any.
struct BatchStrides {
  int64_t outer, inner;
  unsigned numInner;
};
} // namespace

/// Returns the distances along the dimensions at `positions`: one for all, or else two.
static std::optional<BatchStrides> findBatchStrides(MemRefType type, ArrayRef<unsigned> positions) {
  for (unsigned numInner = 0; numInner == 0 || numInner < positions.size(); ++numInner) {
    std::optional<int64_t> outer = findStride(type, positions.drop_back(numInner));
    std::optional<int64_t> inner = findStride(type, positions.take_back(numInner));
    if (outer && inner)
      return BatchStrides{*outer, *inner, numInner};
  }
  return std::nullopt;
}

namespace {
/// An operand, and the positions of its dimensions.
struct Operand {
  Operand(const MatmulView &matmul, bool isLhs) : memref(isLhs ? matmul.lhs : matmul.rhs) {
    AffineMap map = matmul.maps[isLhs ? 0 : 1];
    auto find = [&](ArrayRef<unsigned> dims) {
      SmallVector<unsigned> positions;
      for (unsigned dim : dims)
        if (auto position = map.getResultPosition(getAffineDimExpr(dim, map.getContext())))
          positions.push_back(*position);
      return positions;
    };
    batch = matmul.groups ? find(matmul.groups->dim) : find(matmul.dims.batch);
    rows = find(isLhs ? matmul.dims.m : matmul.dims.n);
    k = find(matmul.dims.k);
  }
  MemRefType type() const { return cast<MemRefType>(memref.getType()); }

  Value memref;
  SmallVector<unsigned> batch, rows, k;
};
} // namespace

/// Tells `result` the distances of batches.
static void setBatchStrides(OpBuilder &builder, Location loc, const Operand &operand,
                            const BatchStrides &strides, MatmulOperand &result) {
  int64_t bytes = getBytes(operand.type().getElementType());
  result.batchStride = arith::ConstantIndexOp::create(builder, loc, strides.outer * bytes);
  if (strides.numInner == 0)
    return;
  result.innerStride = arith::ConstantIndexOp::create(builder, loc, strides.inner * bytes);
  result.innerBatches = arith::ConstantIndexOp::create(builder, loc, 1);
  for (unsigned position : ArrayRef(operand.batch).take_back(strides.numInner)) {
    OpFoldResult size = memref::getMixedSize(builder, loc, operand.memref, position);
    result.innerBatches = builder.createOrFold<arith::MulIOp>(
        loc, result.innerBatches, getValueOrCreateConstantIndexOp(builder, loc, size));
  }
}

/// Returns the operand as it lies in memory, if kernels can read it so; otherwise says why not.
static std::optional<MatmulOperand> viewInPlace(OpBuilder &builder, Location loc, const Operand &operand,
                                                bool mayTranspose, StringRef &reason) {
  MemRefType type = operand.type();
  int64_t bytes = getBytes(type.getElementType());
  std::optional<int64_t> k = findStride(type, operand.k), rows = findStride(type, operand.rows);
  std::optional<BatchStrides> batch = findBatchStrides(type, operand.batch);
  auto isContiguous = [](std::optional<int64_t> stride) { return stride && *stride <= 1; };
  bool isTransposed = mayTranspose && !isContiguous(k) && isContiguous(rows);
  auto index = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(builder, loc, value); };
  bool isMatrix = operand.batch.empty() && operand.rows.size() == 1 && operand.k.size() == 1;
  if (Value pitch = findPaddedPitch(operand.memref); pitch && isMatrix && (isTransposed || isContiguous(k))) {
    Value inBytes = builder.createOrFold<arith::MulIOp>(loc, pitch, index(bytes));
    return MatmulOperand{operand.memref, inBytes, index(0), index(bytes), isTransposed};
  }
  reason = "the contracted dimension is not contiguous";
  if (!isContiguous(k) && !isTransposed)
    return std::nullopt;
  std::optional<int64_t> pitch = isTransposed ? k : rows;
  reason = "its rows have no common distance";
  if (!pitch)
    return std::nullopt;
  reason = "its batches have more than two distances";
  if (!batch)
    return std::nullopt;
  reason = "its rows are not multiples of 16 bytes";
  for (int64_t stride : {batch->outer, batch->inner, *pitch})
    if (stride * bytes % kOperandAlignment != 0)
      return std::nullopt;
  reason = "its start may not be a multiple of 16 bytes";
  if (!isOperandAligned(operand.memref))
    return std::nullopt;
  MatmulOperand result{operand.memref, index(*pitch * bytes), Value(), index(bytes), isTransposed};
  setBatchStrides(builder, loc, operand, *batch, result);
  return result;
}

/// Copies the operand to `buffer`, where its dimensions have `strides`: by a kernel that transposes bytes
/// where there is one, else by generic code.
static void copyToMatrices(OpBuilder &builder, LoweringContext &context, Location loc, const Operand &operand,
                           Value buffer, ArrayRef<OpFoldResult> sizes, ArrayRef<OpFoldResult> strides) {
  SmallVector<int64_t> order; // batches, rows, K
  for (const auto *group : {&operand.batch, &operand.rows, &operand.k})
    order.append(group->begin(), group->end());
  Value view =
      memref::ReinterpretCastOp::create(builder, loc, buffer, builder.getIndexAttr(0),
                                        applyPermutation(sizes, order), applyPermutation(strides, order));
  if (getBytes(operand.type().getElementType()) == 1 && canTransposeBytes(operand.memref, view, order))
    return launchByteTranspose(builder, context, loc, operand.memref, view, order);
  // The dimensions of the loops are those of the copy.
  AffineMap map = inversePermutation(AffineMap::getPermutationMap(order, builder.getContext()));
  AffineMap identity = builder.getMultiDimIdentityMap(order.size());
  SmallVector<utils::IteratorType> iterators(order.size(), utils::IteratorType::parallel);
  auto copy = linalg::GenericOp::create(
      builder, loc, operand.memref, view, ArrayRef<AffineMap>{map, identity}, iterators,
      [](OpBuilder &b, Location loc, ValueRange args) { linalg::YieldOp::create(b, loc, args[0]); });
  copy->setAttr(kComputesAttrName, builder.getStringAttr("pack"));
}

/// Copies the operand into rows of a multiple of 16 bytes.
static MatmulOperand packOperand(OpBuilder &builder, LoweringContext &context, Location loc,
                                 const Operand &operand) {
  MemRefType type = operand.type();
  int64_t bytes = getBytes(type.getElementType());
  auto multiply = [&](Value lhs, Value rhs) { return builder.createOrFold<arith::MulIOp>(loc, lhs, rhs); };
  auto index = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(builder, loc, value); };
  SmallVector<OpFoldResult> sizes = memref::getMixedSizes(builder, loc, operand.memref);
  SmallVector<OpFoldResult> strides(sizes.size(), builder.getIndexAttr(0));
  // Strides of a dimension are those of the copy; `next` is the number of elements inside of it.
  auto assign = [&](ArrayRef<unsigned> positions, Value next) {
    for (unsigned position : llvm::reverse(positions)) {
      strides[position] = getAsOpFoldResult(next);
      next = multiply(next, getValueOrCreateConstantIndexOp(builder, loc, sizes[position]));
    }
    return next;
  };
  Value perPitch = index(kOperandAlignment / bytes);
  Value k = assign(operand.k, index(1));
  Value pitch = multiply(builder.createOrFold<arith::CeilDivUIOp>(loc, k, perPitch), perPitch);
  Value batchStride = assign(operand.rows, pitch);
  Value count = assign(operand.batch, batchStride);

  std::optional<int64_t> known = getConstantIntValue(count);
  auto bufferType = MemRefType::get({known.value_or(ShapedType::kDynamic)}, type.getElementType());
  Value buffer = memref::AllocOp::create(builder, loc, bufferType, known ? ValueRange() : ValueRange(count));
  copyToMatrices(builder, context, loc, operand, buffer, sizes, strides);
  return {buffer, multiply(pitch, index(bytes)), multiply(batchStride, index(bytes)), index(bytes)};
}

std::optional<MatmulOperand> fp8::viewOperand(OpBuilder &builder, const MatmulView &matmul, bool isLhs) {
  StringRef reason;
  return viewInPlace(builder, matmul.op->getLoc(), Operand(matmul, isLhs), /*mayTranspose=*/true, reason);
}

MatmulOperand fp8::prepareOperand(OpBuilder &builder, LoweringContext &context, const MatmulView &matmul,
                                  bool isLhs, bool mayTranspose) {
  Location loc = matmul.op->getLoc();
  Operand operand(matmul, isLhs);
  StringRef reason;
  if (std::optional<MatmulOperand> inPlace = viewInPlace(builder, loc, operand, mayTranspose, reason))
    return *inPlace;
  matmul.addNote(Twine(isLhs ? "left" : "right") + " operand copied first: " + reason);
  return packOperand(builder, context, loc, operand);
}

MatmulOperand fp8::prepareStridedOperand(OpBuilder &builder, LoweringContext &context,
                                         const MatmulView &matmul, bool isLhs) {
  Operand operand(matmul, isLhs);
  int64_t bytes = getBytes(operand.type().getElementType());
  std::optional<BatchStrides> batch = findBatchStrides(operand.type(), operand.batch);
  std::optional<int64_t> rows = findStride(operand.type(), operand.rows);
  std::optional<int64_t> k = findStride(operand.type(), operand.k);
  if (!batch || !rows || !k)
    return prepareOperand(builder, context, matmul, isLhs);
  auto index = [&](int64_t value) {
    return arith::ConstantIndexOp::create(builder, matmul.op->getLoc(), value);
  };
  MatmulOperand result{operand.memref, index(*rows * bytes), Value(), index(*k * bytes)};
  setBatchStrides(builder, matmul.op->getLoc(), operand, *batch, result);
  return result;
}
