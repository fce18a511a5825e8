// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers grouped matmuls for the CPU: a loop over the groups, each a packed matmul of its rows in place.

#include "../Cast/CastLowering.h"
#include "GroupedMatmul.h"
#include "MatmulLowering.h"
#include "fp8/Conversion/FP8ToLinalg/FP8Casts.h"
#include "fp8/Conversion/FP8ToLinalg/PackedGemm.h"
#include "fp8/Dialect/FP8/IR/MatmulMarks.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp8;

//===----------------------------------------------------------------------===//
// The view of an operation
//===----------------------------------------------------------------------===//

GroupedParts::GroupedParts(GroupedMatmulOp op)
    : op(op), loc(op.getLoc()), operands{op.getLhs(), op.getRhs()}, out(op.getOuts()),
      ends(op.getGroupEnds()), maps(op.getIndexingMapsArray()), dims(op.getGroupedDims()),
      matmul(op.getContractionDims()) {}

GroupedParts::GroupedParts(ScaledGroupedMatmulOp op)
    : op(op), loc(op.getLoc()), operands{op.getLhs(), op.getRhs()}, out(op.getOuts()),
      ends(op.getGroupEnds()), maps(op.getIndexingMapsArray()), dims(op.getGroupedDims()),
      matmul(op.getContractionDims()), scales{op.getLhsScaleInv(), op.getRhsScaleInv()},
      blocks{op.getLhsBlockAttr(), op.getRhsBlockAttr()},
      placed(TensorScale(scales[0], op.getLhsBlock(), maps[0]),
             TensorScale(scales[1], op.getRhsBlock(), maps[1]), matmul.k.front()),
      split(op.getAccumulation() == Accumulation::split) {}

LogicalResult GroupedParts::verifyLoopScales() const {
  bool isEmpty = llvm::any_of(std::array{operands[0], operands[1], out, ends}, [](Value value) {
    return llvm::is_contained(cast<ShapedType>(value.getType()).getShape(), 0);
  });
  if (placed.length != 0 && !isEmpty) // else no scale along K is read
    return op->emitOpError("with scales per block of K has no loops of threads; use --recipe=delayed, "
                           "--recipe=current or --recipe=row");
  return success();
}

LogicalResult GroupedParts::verifyPackedScales() const {
  for (const TensorScale &scale : placed.operands) {
    int64_t extent = scale.getExtent(matmul.k.front());
    if (extent != 0 && extent != placed.length)
      return op->emitOpError() << "has blocks of " << extent << " and " << placed.length
                               << " along K; both operands need blocks of one length";
  }
  if (placed.length != 0 && matmul.k.front() == dims.rows)
    return op->emitOpError("with scales per block of its rows has no lowering, because groups divide the "
                           "blocks; use --recipe=delayed, --recipe=current or --recipe=row");
  return success();
}

Value GroupedParts::buildSize(OpBuilder &b, unsigned dim) const {
  Value shaped[] = {operands[0], operands[1], out};
  for (auto [value, map] : llvm::zip_equal(shaped, maps))
    if (std::optional<unsigned> position = map.getResultPosition(b.getAffineDimExpr(dim)))
      return getValueOrCreateConstantIndexOp(b, loc, memref::getMixedSize(b, loc, value, *position));
  llvm_unreachable("every dimension is in a map");
}

Value GroupedParts::buildEnd(OpBuilder &b, Value group, Value begin) const {
  Value end =
      arith::IndexCastOp::create(b, loc, b.getIndexType(), memref::LoadOp::create(b, loc, ends, group));
  end = arith::MinSIOp::create(b, loc, end, buildSize(b, dims.rows));
  return arith::MaxSIOp::create(b, loc, end, begin);
}

Value GroupedParts::buildScale(OpBuilder &b, ArrayRef<Value> indices) const {
  if (!isScaled())
    return {};
  Value factor;
  for (unsigned operand : {0, 1}) {
    if (placed.getPlace(operand) != MatmulScales::Place::result)
      continue;
    SmallVector<Value> at;
    ArrayRef<int64_t> block = blocks[operand] ? blocks[operand].asArrayRef() : ArrayRef<int64_t>();
    for (auto [position, extent] : llvm::enumerate(block)) {
      Value index = extent == 0 ? Value() : indices[maps[operand].getDimPosition(position)];
      if (!index)
        index = arith::ConstantIndexOp::create(b, loc, 0);
      else if (extent != 1)
        index = arith::DivUIOp::create(b, loc, index, arith::ConstantIndexOp::create(b, loc, extent));
      at.push_back(index);
    }
    Value own = buildWiden(b, loc, memref::LoadOp::create(b, loc, scales[operand], at));
    factor = factor ? arith::MulFOp::create(b, loc, factor, own).getResult() : own;
  }
  return factor;
}

ArrayAttr GroupedParts::mark(StringRef products, StringRef where) const {
  std::string code = (products + (isScaled() ? " of decoded FP8" : "") + placed.describeSums(split) +
                      ", a product per group (" + where + ")")
                         .str();
  if (auto grouped = dyn_cast<GroupedMatmulOp>(op))
    return markMatmul(grouped, code);
  return markMatmul(cast<ScaledGroupedMatmulOp>(op), code);
}

//===----------------------------------------------------------------------===//
// Packed matmuls
//===----------------------------------------------------------------------===//

/// Returns the part of `operand` of one group: its matrix, or its rows from `begin` on.
static Value viewGroup(OpBuilder &b, const GroupedParts &parts, Value operand, AffineMap map, Value group,
                       Value begin, Value rows) {
  SmallVector<OpFoldResult> sizes = memref::getMixedSizes(b, parts.loc, operand);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0)),
      strides(sizes.size(), b.getIndexAttr(1));
  SmallVector<int64_t> shape;
  auto type = cast<MemRefType>(operand.getType());
  for (auto [position, size] : llvm::enumerate(type.getShape())) {
    unsigned dim = map.getDimPosition(position);
    if (dim == parts.dims.group) {
      offsets[position] = group;
      sizes[position] = b.getIndexAttr(1);
      continue;
    }
    if (dim == parts.dims.rows) {
      offsets[position] = begin;
      sizes[position] = rows;
    }
    shape.push_back(dim == parts.dims.rows ? ShapedType::kDynamic : size);
  }
  MemRefType view = memref::SubViewOp::inferRankReducedResultType(shape, type, offsets, sizes, strides);
  return memref::SubViewOp::create(b, parts.loc, view, operand, offsets, sizes, strides);
}

/// Writes the sums of a box of the result of one group, which begins with row `begin`, to `out`.
static void storeBox(OpBuilder &b, const GroupedParts &parts, Value out, const OutputBox &box, Value sums,
                     Value group, Value begin, Value scale) {
  Location loc = parts.loc;
  SmallVector<OpFoldResult> strides(box.sizes.size(), b.getIndexAttr(1));
  Value view = memref::SubViewOp::create(b, loc, out, box.offsets, box.sizes, strides);
  AffineMap identity = b.getMultiDimIdentityMap(box.sizes.size());
  SmallVector<utils::IteratorType> iterators(box.sizes.size(), utils::IteratorType::parallel);
  AffineMap outMap = dropGroup(parts.maps, parts.dims.group)[2];
  auto buildIndices = [&](OpBuilder &inner) {
    SmallVector<Value> indices(4);
    indices[parts.dims.group] = group;
    for (auto [position, offset] : llvm::enumerate(box.offsets)) {
      unsigned dim = outMap.getDimPosition(position);
      dim += dim >= parts.dims.group;
      Value index = linalg::IndexOp::create(inner, loc, position);
      index = arith::AddIOp::create(inner, loc, index, getValueOrCreateConstantIndexOp(inner, loc, offset));
      indices[dim] =
          dim == parts.dims.rows ? arith::AddIOp::create(inner, loc, index, begin).getResult() : index;
    }
    return indices;
  };
  auto body = [&](OpBuilder &inner, Location, ValueRange arguments) {
    Value factor = scale || !parts.isScaled() ? scale : parts.buildScale(inner, buildIndices(inner));
    Value value = arguments[0];
    if (factor)
      value = arith::MulFOp::create(inner, loc, factor, value);
    linalg::YieldOp::create(inner, loc, buildNarrow(inner, loc, value, arguments[1].getType()));
  };
  linalg::GenericOp::create(b, loc, sums, view, ArrayRef{identity, identity}, iterators, body);
}

/// Builds the matmul of one group.
static LogicalResult buildGroup(OpBuilder &b, const GroupedParts &parts, PackedMatmulOptions options,
                                Value group, Value begin, Value end, Value scale) {
  Value rows = arith::SubIOp::create(b, parts.loc, end, begin);
  Value views[3];
  Value shaped[] = {parts.operands[0], parts.operands[1], parts.out};
  for (auto [view, value, map] : llvm::zip_equal(views, shaped, parts.maps))
    view = viewGroup(b, parts, value, map, group, begin, rows);
  // Scales along K have the dimensions of their operand, with other sizes along K.
  if (options.scales.lhs)
    options.scales.lhs = viewGroup(b, parts, options.scales.lhs, parts.maps[0], group, begin, rows);
  if (options.scales.rhs)
    options.scales.rhs = viewGroup(b, parts, options.scales.rhs, parts.maps[1], group, begin, rows);
  auto epilogue = [&](OpBuilder &inner, Location, const OutputBox &box, Value sums) {
    storeBox(inner, parts, views[2], box, sums, group, begin, scale);
  };
  return buildPackedMatmul(b, parts.loc, views[0], views[1], dropGroup(parts.maps, parts.dims.group), options,
                           epilogue);
}

static linalg::FillOp fillWithZeros(OpBuilder &b, const GroupedParts &parts, Value memref) {
  auto element = cast<FloatType>(getElementTypeOrSelf(memref));
  Value zero = arith::ConstantOp::create(b, parts.loc, b.getFloatAttr(element, 0.0));
  return linalg::FillOp::create(b, parts.loc, zero, memref);
}

/// Fills the rows that belong to no group, from `begin` on, with zeros.
static void fillRest(OpBuilder &b, const GroupedParts &parts, Value begin) {
  Value rows = arith::SubIOp::create(b, parts.loc, parts.buildSize(b, parts.dims.rows), begin);
  Value rest = viewGroup(b, parts, parts.out, parts.maps[2], /*group=*/Value(), begin, rows);
  fillWithZeros(b, parts, rest);
}

static LogicalResult lowerToPacked(OpBuilder &builder, const GroupedParts &parts,
                                   const VectorRegisters &registers) {
  Location loc = parts.loc;
  PackedMatmulOptions options{
      parts.split, registers.withMultiplyAdds(), parts.mark("packed f32 products", "CPU"), {}};
  if (isZeroInteger(getAsOpFoldResult(parts.buildSize(builder, parts.matmul.k.front())))) {
    fillWithZeros(builder, parts, parts.out)->setAttr(kMatmulsAttrName, options.marks);
    return success();
  }
  // A group has at most all rows: buffers are of that size.
  for (unsigned dim : llvm::seq(4u))
    if (dim != parts.dims.group)
      options.atMost.push_back(
          dim == parts.dims.rows
              ? getConstantIntValue(parts.buildSize(builder, dim)).value_or(ShapedType::kDynamic)
              : ShapedType::kDynamic);
  if (parts.isScaled())
    options.scales = parts.placed.buildPanelScales(builder, loc, parts.operands);
  Value scale = parts.isScaled() && parts.hasOneScale() ? parts.buildScale(builder, {}) : Value();
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0),
        one = arith::ConstantIndexOp::create(builder, loc, 1);
  auto loop = scf::ForOp::create(builder, loc, zero, parts.buildSize(builder, parts.dims.group), one, zero);
  OpBuilder inside = OpBuilder::atBlockEnd(loop.getBody());
  Value group = loop.getInductionVar(), begin = loop.getRegionIterArg(0);
  Value end = parts.buildEnd(inside, group, begin);
  if (failed(buildGroup(inside, parts, options, group, begin, end, scale)))
    return failure();
  scf::YieldOp::create(inside, loc, end);
  if (parts.dims.divided != 2)
    fillRest(builder, parts, loop.getResult(0));
  return success();
}

template <typename Op>
static LogicalResult lower(OpBuilder &builder, Op op, const VectorRegisters *registers) {
  GroupedParts parts(op);
  if (failed(registers ? parts.verifyPackedScales() : parts.verifyLoopScales()))
    return failure();
  return registers ? lowerToPacked(builder, parts, *registers) : lowerGroupedToLoops(builder, parts);
}

LogicalResult fp8::lowerGroupedMatmul(OpBuilder &builder, GroupedMatmulOp op,
                                      const VectorRegisters *registers) {
  return lower(builder, op, registers);
}

LogicalResult fp8::lowerScaledGroupedMatmul(OpBuilder &builder, ScaledGroupedMatmulOp op,
                                            const VectorRegisters *registers) {
  return lower(builder, op, registers);
}
