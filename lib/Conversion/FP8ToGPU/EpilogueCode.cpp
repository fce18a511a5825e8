// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Epilogues of products, inside of kernels. A thread computes all its elements without branches: positions
// beyond the last row or column stand for the last one, only stores are guarded, and such elements count
// neither in sums nor in maxima.

#include "Epilogue.h"
#include "fp8/Conversion/FP8ToLinalg/ProductEpilogue.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace fp8;

/// Returns whether all operands lie such that `inner` follows `outer` without a gap: then both dimensions are
/// one, and no index needs to be divided.
bool Epilogue::collapses(ArrayRef<Operand> operands, unsigned outer, unsigned inner) const {
  return !ShapedType::isDynamic(sizes[inner]) && llvm::all_of(operands, [&](const Operand &operand) {
    int64_t stride = operand.strides[inner];
    return !ShapedType::isDynamic(stride) && operand.strides[outer] == stride * sizes[inner] &&
           operand.extents[outer] == 1 && operand.extents[inner] == 1;
  });
}

/// Returns the position of element `index` of the dimensions of `group`, with its offsets in `operands`.
Epilogue::Position Epilogue::at(KernelBuilder &b, ArrayRef<unsigned> group, Expr index,
                                ArrayRef<Operand> operands) const {
  Position position;
  position.indices.resize(region.numDims);
  position.offsets.resize(operands.size());
  bool hasIndices = !region.isEmpty() && fused && !region.body().getOps<IndexOp>().empty();
  SmallVector<unsigned> dims = llvm::map_to_vector(group, [&](unsigned dim) {
    return *product.maps[2].getResultPosition(getAffineDimExpr(dim, b.getContext()));
  });
  auto add = [&](unsigned dim, Expr value) {
    position.indices[dim] = value.getValue();
    for (auto [offset, operand] : llvm::zip_equal(position.offsets, operands)) {
      if (operand.strides[dim] == 0)
        continue;
      std::optional<unsigned> argument = operand.strideArguments[dim];
      Expr block = operand.extents[dim] == 1 ? value : value / operand.extents[dim];
      Expr term = widen(block) * (argument ? b.argument(*argument) : b.number(operand.strides[dim], 64));
      offset = (offset ? b.expr(offset) + term : term).getValue();
    }
  };
  while (!dims.empty()) {
    unsigned dim = dims.pop_back_val();
    // The dimensions that are one with this one.
    Expr extent = b.argument(sizeArguments[dim]);
    unsigned outermost = dim;
    while (!hasIndices && !dims.empty() && collapses(operands, dims.back(), outermost)) {
      outermost = dims.pop_back_val();
      extent = extent * b.argument(sizeArguments[outermost]);
    }
    if (dims.empty()) {
      add(dim, index);
      break;
    }
    add(dim, index % extent);
    index = index / extent;
  }
  return position;
}

Epilogue::Position Epilogue::atRow(KernelBuilder &b, Expr row, Expr rows) const {
  Position position = at(b, product.dims.m, row, operands);
  position.exists = row < rows;
  position.scale = loadScale(b, /*isLhs=*/true, row, *position.exists);
  return position;
}

Epilogue::Position Epilogue::atColumn(KernelBuilder &b, Expr column, Expr columns) const {
  Position position = at(b, product.dims.n, column, operands);
  position.exists = column < columns;
  position.scale = loadScale(b, /*isLhs=*/false, column, *position.exists);
  position.index = column;
  position.sums.assign(sums.size(), b.real(0).getValue());
  return position;
}

/// Returns the address of what `operand` has of `batch`.
Value Epilogue::findInBatch(KernelBuilder &b, const Operand &operand, Expr batch) const {
  Value start = b.globalPointer(operand.argument);
  Value offset = at(b, product.dims.batch, batch, operand).offsets[0];
  return offset ? b.at(start, b.expr(offset)) : start;
}

void Epilogue::start(KernelBuilder &b, Expr batch) {
  auto loadF32 = [&](unsigned argument) {
    return b.load(b.getF32Type(), b.globalPointer(argument)).getValue();
  };
  for (auto [value, argument] : llvm::zip_equal(scaleValues, wholeScales))
    value = argument ? loadF32(*argument) : Value();
  if (outScaleArgument)
    outScale = loadF32(*outScaleArgument);
  maxima.assign(amaxArguments.size(), b.number(0).getValue());
  batchPosition = at(b, product.dims.batch, batch, operands);
  for (auto [operand, offset] : llvm::zip_equal(operands, batchPosition.offsets)) {
    operand.start = b.globalPointer(operand.argument);
    if (offset)
      operand.start = b.at(operand.start, b.expr(offset));
  }
  for (std::optional<Scales> &of : scales)
    if (of && product.scalesAlongK == ScalesAlongK::none)
      of->operand.start = findInBatch(b, of->operand, batch);
}

/// Returns the scale_inv of a row or column in an operand without blocks along K, if its rows have their own.
Value Epilogue::loadScale(KernelBuilder &b, bool isLhs, Expr index, Expr exists) const {
  const std::optional<Scales> &of = scales[isLhs ? 0 : 1];
  if (!of || product.scalesAlongK != ScalesAlongK::none)
    return {};
  Value offset = at(b, isLhs ? product.dims.m : product.dims.n, index, of->operand).offsets[0];
  auto load = [&]() -> SmallVector<Value> {
    Value pointer = offset ? b.at(of->operand.start, b.expr(offset)) : of->operand.start;
    return {b.load(b.getF32Type(), pointer).getValue()};
  };
  return b.whenElse(exists, load, b.real(1).getValue())[0];
}

Epilogue::LineOfScales Epilogue::findScales(KernelBuilder &b, bool isLhs, Expr batch, Expr index) const {
  const Scales &of = *scales[isLhs ? 0 : 1];
  if (of.packedParts) {
    Expr tile = batch * b.argument(*of.packedTiles) + index / kPackedRows;
    Expr offset = widen(tile) * widen(b.argument(*of.packedParts)) * kPackedBytes +
                  widen(index % 32 * 16 + index / 32 % 4 * 4);
    return {b.at(b.globalPointer(of.operand.argument), offset), b.number(kPackedBytes, 64)};
  }
  Value first = findInBatch(b, of.operand, batch);
  if (Value offset = at(b, isLhs ? product.dims.m : product.dims.n, index, of.operand).offsets[0])
    first = b.at(first, b.expr(offset));
  return {first, of.kStride ? b.argument(*of.kStride) : b.number(0, 64)};
}

/// Returns what a sum is multiplied by: the product of both scales, rounded once.
std::optional<Expr> Epilogue::findScale(KernelBuilder &b, const Position &row, const Position &column) const {
  Value lhs = row.scale ? row.scale : scaleValues[0], rhs = column.scale ? column.scale : scaleValues[1];
  return lhs ? std::optional(b.expr(lhs) * b.expr(rhs)) : std::nullopt;
}

Value Epilogue::pointerTo(KernelBuilder &b, unsigned operand, const Position &row,
                          const Position &column) const {
  Value pointer = operands[operand].start;
  for (const Position *position : {&row, &column})
    if (Value offset = position->offsets[operand])
      pointer = b.at(pointer, b.expr(offset));
  return pointer;
}

/// Widens any float up to 32 bits to f32.
static Expr widenToF32(KernelBuilder &b, Value value) {
  bool isF32 = value.getType().isF32();
  return b.expr(isF32 ? value : arith::ExtFOp::create(b, b.getF32Type(), value).getResult());
}

/// Returns what the region yields for the scaled sum `value`; the value itself without a region.
SmallVector<Value> Epilogue::runRegion(KernelBuilder &b, const Position &row, const Position &column,
                                       Value value) const {
  if (region.isEmpty())
    return {value};
  IRMapping mapping;
  Block &body = region.body();
  mapping.map(body.getArgument(0), value);
  for (unsigned i = 1; i <= region.inputs.size(); ++i)
    mapping.map(body.getArgument(i), b.load(operands[i].element, pointerTo(b, i, row, column)).getValue());
  cloneElementCode(b, region, mapping, [&](int64_t dim) -> Value {
    for (const Position *position : {&batchPosition, &row, &column})
      if (Value index = position->indices[dim])
        return arith::IndexCastOp::create(b, b.getIndexType(), index);
    llvm_unreachable("every dimension of the result is a batch, a row or a column");
  });
  return llvm::map_to_vector(region.yield()->getOperands(),
                             [&](Value yielded) { return mapping.lookupOrDefault(yielded); });
}

/// Stores the results of one element; returns the values that are summed and the bits that maxima are taken
/// of.
SmallVector<Value> Epilogue::storeElement(KernelBuilder &b, const Position &row, const Position &column,
                                          Expr sum) const {
  auto store = [&](Expr value, unsigned operand) { b.store(value, pointerTo(b, operand, row, column)); };
  std::optional<Expr> scale = findScale(b, row, column);
  Expr value = scale ? *scale * sum : sum;
  if (!fused) {
    store(value, 0);
    return {};
  }
  Type element = operands[0].element;
  if (results.accumulate)
    value = value + widenToF32(b, b.load(element, pointerTo(b, 0, row, column)).getValue());
  SmallVector<Value> yielded = runRegion(b, row, column, value.getValue());
  if (region.isEmpty() && !outScale && !element.isF32())
    yielded[0] = arith::TruncFOp::create(b, element, yielded[0]); // the amax is that of the rounded result
  store(outScale ? b.encodeFP8(widenToF32(b, yielded[0]) * b.expr(outScale), element) : b.expr(yielded[0]),
        0);
  for (auto [i, place] : llvm::enumerate(storedExtras))
    store(b.expr(yielded[place]), 1 + region.inputs.size() + i);
  SmallVector<Value> totals;
  for (const Sum &out : sums)
    totals.push_back(yielded[out.yielded]);
  for (int64_t place : region.amaxes)
    totals.push_back(b.magnitudeBits(widenToF32(b, yielded[place])).getValue());
  return totals;
}

void Epilogue::compute(KernelBuilder &b, const Position &row, Position &column, Expr sum) {
  SmallVector<Value> nothing(sums.size(), b.real(0).getValue());
  nothing.append(amaxArguments.size(), b.number(0).getValue());
  SmallVector<Value> values =
      b.whenElse(*row.exists & *column.exists, [&] { return storeElement(b, row, column, sum); }, nothing);
  for (auto [total, value] : llvm::zip(column.sums, values))
    total = (b.expr(total) + b.expr(value)).getValue();
  for (auto [maximum, bits] : llvm::zip_equal(maxima, ArrayRef(values).drop_front(sums.size())))
    maximum = arith::MaxUIOp::create(b, maximum, bits);
}

void Epilogue::finishTile(KernelBuilder &b, ArrayRef<Position> columns, Expr part, ArrayRef<int64_t> lanes) {
  for (auto [bits, argument] : llvm::zip_equal(maxima, amaxArguments))
    b.atomicMaxOfWarp(b.expr(bits), b.globalPointer(argument));
  if (sums.empty())
    return;
  Expr first = b.lane() == b.lane(); // whether the lane has the first of the rows
  for (int64_t bit : lanes)
    first = first & ((b.lane() & bit) == 0);
  for (const Position &column : columns)
    for (size_t i = 0; i < sums.size(); ++i) {
      Expr value = b.expr(column.sums[i]);
      for (int64_t bit : lanes)
        value = value + b.fromLane(value, bit);
      Expr place = widen(part) * widen(b.argument(*columnsArgument)) + widen(*column.index);
      b.when(first & *column.exists,
             [&] { b.store(value, b.at(b.globalPointer(sums[i].argument), place * 4)); });
    }
}
