// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packs one operand of a contraction, with any element type and any order of dimensions, into f32
// panels that the micro-kernel reads sequentially.

#include "PackedGemmDetail.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp8;

OpFoldResult fp8::multiplySizes(OpBuilder &builder, Location loc, ArrayRef<OpFoldResult> sizes) {
  AffineExpr product = builder.getAffineConstantExpr(1);
  for (auto index : llvm::seq<unsigned>(sizes.size()))
    product = product * builder.getAffineSymbolExpr(index);
  return affine::makeComposedFoldedAffineApply(builder, loc, product, sizes);
}

OpFoldResult fp8::ceilDivSize(OpBuilder &builder, Location loc, OpFoldResult size, int64_t width) {
  AffineExpr quotient = builder.getAffineSymbolExpr(0).ceilDiv(width);
  return affine::makeComposedFoldedAffineApply(builder, loc, quotient, {size});
}

Value fp8::allocateF32(OpBuilder &builder, Location loc, ArrayRef<OpFoldResult> sizes) {
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(sizes, dynamic, shape);
  return memref::AllocOp::create(builder, loc, MemRefType::get(shape, builder.getF32Type()), dynamic,
                                 builder.getI64IntegerAttr(64));
}

/// Returns whether the positions are consecutive, so that one collapse_shape can merge them.
static bool isRun(ArrayRef<unsigned> positions) {
  for (auto index : llvm::seq<size_t>(1, positions.size()))
    if (positions[index] != positions[index - 1] + 1)
      return false;
  return true;
}

/// Merges every group of consecutive dimensions, which saves the divisions that splitting a linear
/// index takes in the inner loops.
static PackedOperand collapseGroups(OpBuilder &builder, Location loc, PackedOperand operand) {
  auto type = cast<MemRefType>(operand.source.getType());
  SmallVector<unsigned> *groups[] = {&operand.batch, &operand.outer, &operand.reduction};
  SmallVector<SmallVector<unsigned> *> runs;
  SmallVector<bool> merged(type.getRank(), false); // merged with the position before it
  for (SmallVector<unsigned> *group : groups) {
    if (group->size() < 2 || !isRun(*group))
      continue;
    ReassociationIndices run(group->begin(), group->end());
    SmallVector<ReassociationIndices> alone;
    for (int64_t position = 0; position < type.getRank();) {
      bool starts = position == run.front();
      alone.push_back(starts ? run : ReassociationIndices{position});
      position += starts ? run.size() : 1;
    }
    if (!memref::CollapseShapeOp::isGuaranteedCollapsible(type, alone))
      continue;
    for (unsigned position : llvm::drop_begin(*group))
      merged[position] = true;
  }
  // A buffer without elements needs no merging, and upstream's collapse_shape infers a static size for
  // a group with a size of 0 and a dynamic size, which its verifier rejects.
  if (!llvm::is_contained(merged, true) || llvm::is_contained(type.getShape(), 0))
    return operand;

  SmallVector<ReassociationIndices> reassociation;
  SmallVector<unsigned> newPosition;
  for (auto [position, isMerged] : llvm::enumerate(merged)) {
    if (!isMerged)
      reassociation.emplace_back();
    reassociation.back().push_back(position);
    newPosition.push_back(reassociation.size() - 1);
  }
  for (SmallVector<unsigned> *group : groups) {
    for (unsigned &position : *group)
      position = newPosition[position];
    group->erase(llvm::unique(*group), group->end());
  }
  operand.source = memref::CollapseShapeOp::create(builder, loc, operand.source, reassociation);
  return operand;
}

namespace {
/// Writes the loops that fill the panels of one operand.
class PanelWriter {
public:
  PanelWriter(Location loc, const PackedOperand &operand, ArrayRef<OpFoldResult> sizes, int64_t width)
      : loc(loc), operand(operand), sizes(sizes), width(width) {}

  void write(OpBuilder &builder, Value panels, OpFoldResult outer, OpFoldResult depth);

private:
  /// Splits a linear index into the indices of a group's dimensions.
  void splitIndex(OpBuilder &builder, Value linear, ArrayRef<unsigned> group,
                  MutableArrayRef<Value> indices) const;
  /// panels[batch, panel, k, i] = source[batch, panel * width + i, k], for all k, i < rows.
  void copyRows(OpBuilder &builder, Value panels, Value batch, Value panel, Value rows, Value depth) const;
  void zeroRows(OpBuilder &builder, Value panels, Value batch, Value panel, Value rows, Value depth) const;
  Value index(OpBuilder &builder, int64_t value) const {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  /// Returns whether the source is contiguous along K.
  bool isContiguousInK() const {
    return !operand.reduction.empty() && operand.reduction.back() + 1 == sizes.size();
  }

  Location loc;
  const PackedOperand &operand;
  SmallVector<OpFoldResult> sizes;
  int64_t width;
};
} // namespace

void PanelWriter::splitIndex(OpBuilder &builder, Value linear, ArrayRef<unsigned> group,
                             MutableArrayRef<Value> indices) const {
  if (group.size() == 1) {
    indices[group.front()] = linear;
    return;
  }
  if (group.empty())
    return;
  SmallVector<OpFoldResult> basis;
  for (unsigned position : group) // a basis must not be 0; without elements its value is irrelevant
    basis.push_back(isZeroInteger(sizes[position]) ? builder.getIndexAttr(1) : sizes[position]);
  auto split = affine::AffineDelinearizeIndexOp::create(builder, loc, linear, basis);
  for (auto [position, part] : llvm::zip_equal(group, split.getResults()))
    indices[position] = part;
}

/// Extends an element to f32; fp8-expand-casts expands arith.extf from FP8.
static Value extendToF32(OpBuilder &builder, Location loc, Value element) {
  if (element.getType().isF32())
    return element;
  return arith::ExtFOp::create(builder, loc, builder.getF32Type(), element);
}

void PanelWriter::copyRows(OpBuilder &builder, Value panels, Value batch, Value panel, Value rows,
                           Value depth) const {
  Value zero = index(builder, 0), one = index(builder, 1);
  Value first = arith::MulIOp::create(builder, loc, panel, index(builder, width));
  // Read along the contiguous dimension, so that the conversion of the elements vectorizes.
  bool rowsOutside = isContiguousInK();
  auto loop = scf::ForOp::create(builder, loc, zero, rowsOutside ? rows : depth, one);
  OpBuilder outside = OpBuilder::atBlockTerminator(loop.getBody());
  auto inner = scf::ForOp::create(outside, loc, zero, rowsOutside ? depth : rows, one);
  OpBuilder body = OpBuilder::atBlockTerminator(inner.getBody());
  Value row = (rowsOutside ? loop : inner).getInductionVar();
  Value k = (rowsOutside ? inner : loop).getInductionVar();

  SmallVector<Value> indices(sizes.size());
  splitIndex(body, batch, operand.batch, indices);
  splitIndex(body, arith::AddIOp::create(body, loc, first, row), operand.outer, indices);
  splitIndex(body, k, operand.reduction, indices);
  Value element = memref::LoadOp::create(body, loc, operand.source, indices);
  memref::StoreOp::create(body, loc, extendToF32(body, loc, element), panels,
                          ValueRange{batch, panel, k, row});
}

void PanelWriter::zeroRows(OpBuilder &builder, Value panels, Value batch, Value panel, Value rows,
                           Value depth) const {
  Value zero = index(builder, 0), one = index(builder, 1);
  Value nothing = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0.0f));
  auto overK = scf::ForOp::create(builder, loc, zero, depth, one);
  OpBuilder outside = OpBuilder::atBlockTerminator(overK.getBody());
  auto overRows = scf::ForOp::create(outside, loc, rows, index(outside, width), one);
  OpBuilder body = OpBuilder::atBlockTerminator(overRows.getBody());
  memref::StoreOp::create(body, loc, nothing, panels,
                          ValueRange{batch, panel, overK.getInductionVar(), overRows.getInductionVar()});
}

void PanelWriter::write(OpBuilder &builder, Value panels, OpFoldResult outer, OpFoldResult depth) {
  Value zero = index(builder, 0), one = index(builder, 1);
  Value batches = memref::DimOp::create(builder, loc, panels, zero);
  Value count = memref::DimOp::create(builder, loc, panels, one);
  Value depthValue = getValueOrCreateConstantIndexOp(builder, loc, depth);
  auto loop = scf::ParallelOp::create(builder, loc, ValueRange{zero, zero}, ValueRange{batches, count},
                                      ValueRange{one, one});
  OpBuilder body = OpBuilder::atBlockTerminator(loop.getBody());
  Value batch = loop.getInductionVars()[0], panel = loop.getInductionVars()[1];

  std::optional<int64_t> size = getConstantIntValue(outer);
  if (size && *size % width == 0) {
    copyRows(body, panels, batch, panel, index(body, width), depthValue);
    return;
  }
  AffineExpr d0 = body.getAffineDimExpr(0), s0 = body.getAffineSymbolExpr(0);
  AffineExpr widthExpr = body.getAffineConstantExpr(width);
  auto left = AffineMap::get(1, 1, {widthExpr, s0 - d0 * width}, body.getContext());
  OpFoldResult rows = affine::makeComposedFoldedAffineMin(body, loc, left, {OpFoldResult(panel), outer});
  Value rowsValue = getValueOrCreateConstantIndexOp(body, loc, rows);
  copyRows(body, panels, batch, panel, rowsValue, depthValue);
  zeroRows(body, panels, batch, panel, rowsValue, depthValue);
}

Value fp8::buildPackedPanels(OpBuilder &builder, Location loc, PackedOperand operand, int64_t width) {
  operand = collapseGroups(builder, loc, std::move(operand));
  SmallVector<OpFoldResult> sizes = memref::getMixedSizes(builder, loc, operand.source);
  auto groupSize = [&](ArrayRef<unsigned> group) {
    SmallVector<OpFoldResult> parts;
    for (unsigned position : group)
      parts.push_back(sizes[position]);
    return multiplySizes(builder, loc, parts);
  };
  OpFoldResult outer = groupSize(operand.outer), depth = groupSize(operand.reduction);
  Value panels = allocateF32(builder, loc,
                             {groupSize(operand.batch), ceilDivSize(builder, loc, outer, width), depth,
                              builder.getIndexAttr(width)});
  PanelWriter(loc, operand, sizes, width).write(builder, panels, outer, depth);
  return panels;
}
