// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Epilogues of matmuls, inside of kernels. A thread computes all its elements without branches: positions
// beyond the last row or column stand for the last one, only stores are guarded, and such elements count
// neither in sums nor in maxima.

#include "../Kernel/ElementPairs.h"
#include "Epilogue.h"
#include "fp8/Conversion/FP8ToLinalg/MatmulEpilogue.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
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
    return *matmul.maps[2].getResultPosition(getAffineDimExpr(dim, b.getContext()));
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
  Position position = at(b, matmul.dims.m, row, operands);
  position.exists = row < rows;
  position.scale = loadScale(b, /*isLhs=*/true, row, *position.exists);
  return position;
}

Epilogue::Position Epilogue::atColumn(KernelBuilder &b, Expr column, Expr columns) const {
  Position position = at(b, matmul.dims.n, column, operands);
  position.exists = column < columns;
  position.scale = loadScale(b, /*isLhs=*/false, column, *position.exists);
  position.index = column;
  position.sums.assign(sums.size(), b.real(0).getValue());
  return position;
}

/// Returns the address of the scales of `batch`, or of a group of rows.
Value Epilogue::findInBatch(KernelBuilder &b, const Scales &of, Expr batch) const {
  Value start = b.globalPointer(of.operand.argument);
  if (of.groupStride)
    return b.at(start, widen(batch) * b.argument(*of.groupStride));
  Value offset = at(b, matmul.dims.batch, batch, of.operand).offsets[0];
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
  batchPosition = at(b, matmul.dims.batch, batch, operands);
  for (auto [operand, offset] : llvm::zip_equal(operands, batchPosition.offsets)) {
    operand.start = b.globalPointer(operand.argument);
    if (offset)
      operand.start = b.at(operand.start, b.expr(offset));
  }
  for (std::optional<Scales> &of : scales)
    if (of && matmul.scalesAlongK == ScalesAlongK::none)
      of->operand.start = findInBatch(b, *of, batch);
}

/// Returns the scale_inv of a row or column in an operand without blocks along K, if its rows have their own.
Value Epilogue::loadScale(KernelBuilder &b, bool isLhs, Expr index, Expr exists) const {
  const std::optional<Scales> &of = scales[isLhs ? 0 : 1];
  if (!of || matmul.scalesAlongK != ScalesAlongK::none)
    return {};
  Value offset = at(b, isLhs ? matmul.dims.m : matmul.dims.n, index, of->operand).offsets[0];
  auto load = [&]() -> SmallVector<Value> {
    Value pointer = offset ? b.at(of->operand.start, b.expr(offset)) : of->operand.start;
    return {b.load(b.getF32Type(), pointer).getValue()};
  };
  return b.whenElse(exists, load, b.real(1).getValue())[0];
}

Epilogue::LineOfScales Epilogue::findScales(KernelBuilder &b, bool isLhs, Expr batch, Expr index) const {
  const Scales &of = *scales[isLhs ? 0 : 1];
  if (of.packedParts) {
    Expr tile = index / kPackedRows;
    if (of.packedTiles)
      tile = batch * b.argument(*of.packedTiles) + tile;
    Expr offset = widen(tile) * widen(b.argument(*of.packedParts)) * kPackedBytes +
                  widen(index % 32 * 16 + index / 32 % 4 * 4);
    return {b.at(b.globalPointer(of.operand.argument), offset), b.number(kPackedBytes, 64)};
  }
  Value first = findInBatch(b, of, batch);
  if (Value offset = at(b, isLhs ? matmul.dims.m : matmul.dims.n, index, of.operand).offsets[0])
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

/// Returns `element`, or the vector of it if `value` is a vector.
static Type likeElements(Type element, Value value) {
  auto vector = dyn_cast<VectorType>(value.getType());
  return vector ? vector.clone(element) : element;
}

/// Widens any float up to 32 bits, or a vector of them, to f32.
static Expr widenToF32(KernelBuilder &b, Value value) {
  if (getElementTypeOrSelf(value).isF32())
    return b.expr(value);
  return b.expr(arith::ExtFOp::create(b, likeElements(b.getF32Type(), value), value));
}

/// Returns the elements of `operand` at the columns, as many by one access as lie side by side.
Epilogue::Elements Epilogue::loadElements(KernelBuilder &b, unsigned operand, const Position &row,
                                          ArrayRef<Position> columns) const {
  Type element = operands[operand].element;
  size_t run = std::min<size_t>(operands[operand].run, columns.size());
  Elements elements;
  for (size_t first = 0; first < columns.size(); first += run) {
    Value pointer = pointerTo(b, operand, row, columns[first]);
    if (run == 1) {
      elements.push_back(b.load(element, pointer).getValue());
      continue;
    }
    Value vector = b.load(VectorType::get(run, element), pointer).getValue();
    for (size_t i = 0; i < run; ++i)
      elements.push_back(LLVM::ExtractElementOp::create(b, vector, b.number(i).getValue()));
  }
  return elements;
}

/// The reverse of loadElements(). A value may have the bits of two elements that lie side by side.
void Epilogue::storeElements(KernelBuilder &b, unsigned operand, const Position &row,
                             ArrayRef<Position> columns, ArrayRef<Value> values) const {
  size_t run = std::min<size_t>(operands[operand].run, columns.size());
  size_t count = run * values.size() / columns.size(); // of a run's values
  for (size_t first = 0; first < columns.size(); first += run, values = values.drop_front(count)) {
    Value stored = values.front();
    if (count > 1) {
      stored = LLVM::UndefOp::create(b, VectorType::get(count, stored.getType()));
      for (auto [i, value] : llvm::enumerate(values.take_front(count)))
        stored = LLVM::InsertElementOp::create(b, stored, value, b.number(i).getValue());
    }
    b.store(b.expr(stored), pointerTo(b, operand, row, columns[first]));
  }
}

/// Stores the result at the columns, cast to FP8 if it has a scale.
void Epilogue::storeData(KernelBuilder &b, const Position &row, ArrayRef<Position> columns,
                         ArrayRef<Value> values) const {
  bool inPairs = values.size() < columns.size();
  if (!outScale)
    return storeElements(b, 0, row, columns, inPairs ? splitPairs(b, values) : Elements(values));
  Type format = operands[0].element;
  Elements bytes;
  for (Value value : values) {
    Expr wide = widenToF32(b, value);
    if (!inPairs) {
      bytes.push_back(b.encodeFP8(wide * b.expr(outScale), format).getValue());
      continue;
    }
    Expr scales = b.expr(joinPair(b, outScale, outScale));
    Elements scaled = splitPairs(b, (wide * scales).getValue());
    Expr pair = b.encodeFP8(b.expr(scaled[0]), b.expr(scaled[1]), format);
    if (operands[0].run > 1)
      bytes.push_back(pair.getValue());
    else
      for (Expr byte : {pair, pair >> 8})
        bytes.push_back(arith::TruncIOp::create(b, b.getI8Type(), byte.getValue()));
  }
  storeElements(b, 0, row, columns, bytes);
}

/// Returns what the region yields for scaled sums, and for the elements of the inputs, at the columns: of
/// each yielded value, those of all columns. Without a region, the sums, as elements of the result.
SmallVector<Epilogue::Elements> Epilogue::runRegion(KernelBuilder &b, const Position &row,
                                                    ArrayRef<Position> columns, ArrayRef<Value> values,
                                                    ArrayRef<Elements> inputs) const {
  bool inPairs = values.size() < columns.size();
  if (region.isEmpty()) {
    Type element = operands[0].element;
    Elements rounded(values);
    if (!outScale && !element.isF32()) // the amax is that of the rounded result
      for (Value &value : rounded)
        value = arith::TruncFOp::create(b, likeElements(element, value), value);
    return {rounded};
  }
  Block &body = region.body();
  SmallVector<Elements> yielded(body.getTerminator()->getNumOperands());
  for (auto [i, value] : llvm::enumerate(values)) {
    IRMapping mapping;
    const Position *column = &columns[i];
    mapping.map(body.getArgument(0), value);
    for (auto [argument, input] : llvm::zip_equal(body.getArguments().drop_front(), inputs))
      mapping.map(argument, input[i]);
    if (inPairs)
      cloneCodeOnPairs(b, region, mapping);
    else
      cloneElementCode(b, region, mapping, [&](int64_t dim) -> Value {
        for (const Position *position : {&batchPosition, &row, column})
          if (Value index = position->indices[dim])
            return arith::IndexCastOp::create(b, b.getIndexType(), index);
        llvm_unreachable("every dimension of the result is a batch, a row or a column");
      });
    for (auto [of, value] : llvm::zip_equal(yielded, body.getTerminator()->getOperands()))
      of.push_back(mapping.lookupOrDefault(value));
  }
  return yielded;
}

/// Stores the results of the elements of one row at `columns`, neighbours; returns, column after column, the
/// values that are summed and the bits that maxima are taken of.
SmallVector<Value> Epilogue::storeResults(KernelBuilder &b, const Position &row, ArrayRef<Position> columns,
                                          ArrayRef<Value> sums) const {
  // Where the region's code works on pairs, each value below is a vector of two columns.
  bool inPairs = columns.size() > 1 && worksOnPairs(region);
  auto join = [&](ArrayRef<Value> elements) { return inPairs ? joinPairs(b, elements) : Elements(elements); };
  auto split = [&](ArrayRef<Value> values) { return inPairs ? splitPairs(b, values) : Elements(values); };
  Elements values = join(sums);
  if (findScale(b, row, columns[0])) {
    Elements scales = join(llvm::map_to_vector(
        columns, [&](const Position &column) { return findScale(b, row, column)->getValue(); }));
    for (auto [value, scale] : llvm::zip_equal(values, scales))
      value = (b.expr(scale) * b.expr(value)).getValue();
  }
  if (!fused) {
    storeElements(b, 0, row, columns, split(values));
    return {};
  }
  if (results.accumulate)
    for (auto [value, addend] : llvm::zip_equal(values, join(loadElements(b, 0, row, columns))))
      value = (b.expr(value) + widenToF32(b, addend)).getValue();
  SmallVector<Elements> inputs;
  for (unsigned i = 1; i <= region.inputs.size(); ++i)
    inputs.push_back(join(loadElements(b, i, row, columns)));
  SmallVector<Elements> yielded = runRegion(b, row, columns, values, inputs);
  storeData(b, row, columns, yielded[0]);
  unsigned operand = 1 + region.inputs.size();
  for (unsigned place : storedExtras)
    storeElements(b, operand++, row, columns, split(yielded[place]));
  SmallVector<Elements> totals;
  for (const Sum &out : this->sums)
    totals.push_back(split(yielded[out.yielded]));
  for (int64_t place : region.amaxes)
    totals.push_back(split(llvm::map_to_vector(
        yielded[place], [&](Value value) { return b.magnitudeBits(widenToF32(b, value)).getValue(); })));
  SmallVector<Value> byColumn;
  for (size_t i = 0; i < columns.size(); ++i)
    for (const Elements &of : totals)
      byColumn.push_back(of[i]);
  return byColumn;
}

/// Computes columns of which all exist, or none: their number divides that of all columns.
void Epilogue::computeRun(KernelBuilder &b, const Position &row, MutableArrayRef<Position> columns,
                          ArrayRef<Value> elements) {
  SmallVector<Value> ofColumn(sums.size(), b.real(0).getValue());
  ofColumn.append(amaxArguments.size(), b.number(0).getValue());
  SmallVector<Value> nothing;
  for (size_t i = 0; i < columns.size(); ++i)
    nothing.append(ofColumn);
  SmallVector<Value> values = b.whenElse(
      *row.exists & *columns[0].exists, [&] { return storeResults(b, row, columns, elements); }, nothing);
  ArrayRef<Value> left = values;
  for (Position &column : columns) {
    for (Value &total : column.sums) {
      total = (b.expr(total) + b.expr(left.front())).getValue();
      left = left.drop_front();
    }
    for (Value &maximum : maxima) {
      maximum = arith::MaxUIOp::create(b, maximum, left.front());
      left = left.drop_front();
    }
  }
}

int64_t Epilogue::getRun() const {
  int64_t run = 1;
  for (const Operand &operand : operands)
    run = std::max(run, operand.run);
  return run;
}

void Epilogue::compute(KernelBuilder &b, const Position &row, MutableArrayRef<Position> columns,
                       ArrayRef<Value> elements) {
  size_t run = std::min<size_t>(getRun(), columns.size());
  for (size_t first = 0; first < columns.size(); first += run)
    computeRun(b, row, columns.slice(first, run), elements.slice(first, run));
}

/// Transposes the matrix of lanes and groups by halves.
void fp8::exchangeColumns(KernelBuilder &b, MutableArrayRef<Value> sums) {
  for (int64_t bit : {1, 2}) {
    Expr isLower = (b.lane() & bit) == 0;
    for (int64_t i = 0; i < 8; ++i) {
      if ((i / 2) & bit)
        continue;
      Expr low = b.expr(sums[i]), high = b.expr(sums[i + 2 * bit]);
      Expr received = b.fromLane(select(isLower, high, low), bit);
      sums[i] = select(isLower, low, received).getValue();
      sums[i + 2 * bit] = select(isLower, received, high).getValue();
    }
  }
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
