// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Views of an operand as matrices: a row per index of M or N, a column per index of K. An operand of
// which no such view exists is copied first.

#include "PackedGemmDetail.h"
#include "fp8/Conversion/IndexFacts.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace fp8;

static constexpr int64_t kDynamic = ShapedType::kDynamic;

/// Returns the strides of `type`; all dynamic if its layout has none.
static SmallVector<int64_t> stridesOf(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    strides.assign(type.getRank(), kDynamic);
  return strides;
}

bool fp8::hasOneStride(MemRefType type, ArrayRef<unsigned> group) {
  SmallVector<int64_t> strides = stridesOf(type);
  for (auto [position, next] : llvm::zip(group, group.drop_front())) {
    bool adjacent = type.getLayout().isIdentity() && next == position + 1;
    bool known = strides[position] != kDynamic && strides[next] != kDynamic && !type.isDynamicDim(next) &&
                 strides[position] == strides[next] * type.getDimSize(next);
    if (!adjacent && !known)
      return false;
  }
  return true;
}

/// Returns whether the elements along the dimensions at `group` are contiguous.
static bool isContiguous(MemRefType type, ArrayRef<unsigned> group) {
  return !group.empty() && stridesOf(type)[group.back()] == 1;
}

/// Allocates a buffer of these sizes, as a part of one of known size if it is known how large they can be.
static Value allocateAtMost(OpBuilder &builder, Location loc, ArrayRef<OpFoldResult> sizes, Type element) {
  SmallVector<int64_t> shape = llvm::map_to_vector(sizes, findMost);
  bool isKnown = llvm::none_of(shape, ShapedType::isDynamic);
  SmallVector<Value> dynamic;
  if (!isKnown) {
    shape.clear();
    dispatchIndexOpFoldResults(sizes, dynamic, shape);
  }
  Value buffer = memref::AllocOp::create(builder, loc, MemRefType::get(shape, element), dynamic,
                                         builder.getI64IntegerAttr(64));
  if (!isKnown ||
      llvm::all_of(sizes, [](OpFoldResult size) { return getConstantIntValue(size).has_value(); }))
    return buffer;
  SmallVector<OpFoldResult> offsets(sizes.size(), builder.getIndexAttr(0)),
      strides(sizes.size(), builder.getIndexAttr(1));
  return memref::SubViewOp::create(builder, loc, buffer, offsets, sizes, strides);
}

/// Copies `operand` into a buffer whose dimensions are in the order batch, outer, K.
static PackedOperand copyOperand(OpBuilder &builder, Location loc, const PackedOperand &operand) {
  MemRefType type = operand.type();
  unsigned rank = type.getRank();
  SmallVector<unsigned> order;
  for (const auto *group : {&operand.batch, &operand.outer, &operand.reduction})
    order.append(group->begin(), group->end());
  SmallVector<OpFoldResult> sizes;
  SmallVector<AffineExpr> exprs(rank);
  for (auto [target, position] : llvm::enumerate(order)) {
    sizes.push_back(memref::getMixedSize(builder, loc, operand.source, position));
    exprs[position] = builder.getAffineDimExpr(target);
  }
  Value copy = allocateAtMost(builder, loc, sizes, type.getElementType());
  AffineMap maps[] = {AffineMap::get(rank, 0, exprs, builder.getContext()),
                      builder.getMultiDimIdentityMap(rank)};
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  linalg::GenericOp::create(builder, loc, operand.source, copy, maps, iterators,
                            [](OpBuilder &body, Location bodyLoc, ValueRange values) {
                              linalg::YieldOp::create(body, bodyLoc, values.front());
                            });
  PackedOperand result{copy, {}, {}, {}};
  auto positions = llvm::seq<unsigned>(rank);
  result.batch.append(positions.begin(), positions.begin() + operand.batch.size());
  result.outer.append(positions.begin() + operand.batch.size(), positions.end() - operand.reduction.size());
  result.reduction.append(positions.end() - operand.reduction.size(), positions.end());
  return result;
}

PackedOperand fp8::makePackable(OpBuilder &builder, Location loc, PackedOperand operand, unsigned rowDims) {
  MemRefType type = operand.type();
  if (hasOneStride(type, ArrayRef(operand.outer).take_back(rowDims)) &&
      hasOneStride(type, operand.reduction) &&
      (isContiguous(type, operand.reduction) || isContiguous(type, operand.outer)))
    return operand;
  return copyOperand(builder, loc, operand);
}

OperandMatrix fp8::viewAsMatrix(OpBuilder &builder, Location loc, const PackedOperand &operand,
                                unsigned rowDims, ArrayRef<OpFoldResult> offsets, OpFoldResult rows) {
  auto metadata = memref::ExtractStridedMetadataOp::create(builder, loc, operand.source);
  SmallVector<OpFoldResult> strides = metadata.getConstifiedMixedStrides();
  SmallVector<OpFoldResult> sizes = memref::getMixedSizes(builder, loc, operand.source);
  OpFoldResult offset = metadata.getConstifiedMixedOffset();
  for (auto [begin, stride] : llvm::zip_equal(offsets, strides))
    offset = addSizes(builder, loc, offset, multiplySizes(builder, loc, {begin, stride}));
  auto strideOf = [&](ArrayRef<unsigned> group) -> OpFoldResult {
    return group.empty() ? builder.getIndexAttr(1) : strides[group.back()];
  };
  SmallVector<OpFoldResult> depths =
      llvm::map_to_vector(operand.reduction, [&](unsigned position) { return sizes[position]; });
  OpFoldResult depth = multiplySizes(builder, loc, depths);
  ArrayRef<unsigned> outer = ArrayRef(operand.outer).take_back(rowDims);
  bool alongK = isContiguous(operand.type(), operand.reduction) || outer.empty();
  OpFoldResult shape[] = {rows, depth}, steps[] = {strideOf(outer), strideOf(operand.reduction)};
  if (!alongK) {
    std::swap(shape[0], shape[1]);
    std::swap(steps[0], steps[1]);
  }
  steps[1] = builder.getIndexAttr(1);
  Value view =
      memref::ReinterpretCastOp::create(builder, loc, metadata.getBaseBuffer(), offset,
                                        ArrayRef<OpFoldResult>(shape), ArrayRef<OpFoldResult>(steps));
  return {view, alongK};
}
