// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds where the scales of a matmul enter, and arranges them along K.

#include "MatmulScales.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace fp8;

static unsigned dimOf(AffineExpr result) { return cast<AffineDimExpr>(result).getPosition(); }

/// Returns whether indices of a dimension that is not contracted share a scale.
static bool spansRows(const TensorScale &scale, unsigned k) {
  return llvm::any_of(scale.map.getResults(), [&](AffineExpr result) {
    return dimOf(result) != k && scale.getExtent(dimOf(result)) != 1;
  });
}

MatmulScales::MatmulScales(ScaledMatmulOp op)
    : MatmulScales(TensorScale(op.getLhsScaleInv(), op.getLhsBlock(), op.getIndexingMapsArray()[0]),
                   TensorScale(op.getRhsScaleInv(), op.getRhsBlock(), op.getIndexingMapsArray()[1]),
                   op.getContractionDims().k.front()) {}

MatmulScales::MatmulScales(const TensorScale &lhs, const TensorScale &rhs, unsigned k)
    : operands{lhs, rhs}, dimK(k) {
  int64_t extents[] = {operands[0].getExtent(dimK), operands[1].getExtent(dimK)};
  length = std::max(extents[0], extents[1]); // equal, or one is 0
  if (length == 0)
    return;
  bool ofElements = false;
  for (auto [operand, extent] : llvm::zip_equal(operands, extents))
    ofElements |= extent != 0 && !getElementTypeOrSelf(operand.scaleInv).isF32();
  for (auto [place, extent] : llvm::zip_equal(places, extents))
    place = !ofElements ? Place::blocks : extent != 0 ? Place::elements : Place::result;
  first = spansRows(operands[0], dimK) && !spansRows(operands[1], dimK) ? 1 : 0;
}

std::string MatmulScales::describeSums(bool split) const {
  std::string blocks = std::to_string(length);
  if (isOfBlocks())
    return ", scaled sums of blocks of " + blocks;
  return (isOfElements() ? ", scales of " + blocks + " elements" : "") +
         std::string(split ? ", split sums" : "");
}

SmallVector<const TensorScale *> MatmulScales::ofResult() const {
  SmallVector<const TensorScale *> scales;
  for (auto [scale, place] : llvm::zip(operands, places))
    if (place == Place::result)
      scales.push_back(&scale);
  return scales;
}

Value MatmulScales::buildAlongK(OpBuilder &b, Location loc, unsigned operand, Value data) const {
  const TensorScale &scale = operands[operand];
  unsigned rank = scale.map.getNumResults();
  SmallVector<int64_t> block(rank, 1);
  for (auto [extent, result] : llvm::zip_equal(block, scale.map.getResults()))
    if (dimOf(result) == dimK)
      extent = length;
  if (ArrayRef(scale.extents) == ArrayRef(block))
    return scale.scaleInv;
  SmallVector<OpFoldResult> sizes = getBlockCounts(b, loc, memref::getMixedSizes(b, loc, data), block);
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(sizes, dynamic, shape);
  Value all = memref::AllocOp::create(b, loc, MemRefType::get(shape, b.getF32Type()), dynamic,
                                      b.getI64IntegerAttr(64));
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  linalg::GenericOp::create(
      b, loc, ValueRange(), all, b.getMultiDimIdentityMap(rank), iterators,
      [&](OpBuilder &body, Location loc, ValueRange) {
        SmallVector<Value> position(scale.map.getNumDims());
        for (auto [i, extent, result] : llvm::enumerate(block, scale.map.getResults())) {
          Value index = linalg::IndexOp::create(body, loc, i);
          if (extent > 1)
            index =
                arith::MulIOp::create(body, loc, index, arith::ConstantIndexOp::create(body, loc, extent));
          position[dimOf(result)] = index;
        }
        linalg::YieldOp::create(body, loc, scale.load(body, loc, position));
      });
  return all;
}

PanelScales MatmulScales::buildPanelScales(OpBuilder &b, Location loc, ArrayRef<Value> data) const {
  PanelScales result;
  result.length = length;
  result.ofBlocks = isOfBlocks();
  result.lhsFirst = first == 0;
  for (unsigned i : {0u, 1u})
    if (length != 0 && places[i] != Place::result)
      (i == 0 ? result.lhs : result.rhs) = buildAlongK(b, loc, i, data[i]);
  return result;
}
