// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block of 256 threads computes a tile of 128 rows and 128 columns. A thread computes 8 adjacent columns of
// two groups of 4 adjacent rows: 16-byte loads, 8 bytes of each FP8 row at a time. For the columns, the bytes
// of a group become words of 4 rows, which go through shared memory: column c of the tile has its word of
// group g at c * 32 + (g ^ 2 * (c / 8)), so that the banks of a warp's stores, and of its 16-byte loads, are
// all different.

#include "../Kernel/ColumnSums.h"
#include "../Kernel/ElementAccess.h"
#include "../Kernel/ElementPairs.h"
#include "ScaledCastKernelBuilder.h"
#include "fp8/Conversion/FP8ToLinalg/FP8Casts.h"
#include "fp8/Conversion/FP8ToLinalg/MatmulEpilogue.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp8;

TileKernel::TileKernel(KernelBuilder &b, const TileWork &work) : b(b), work(work), space(work.space) {
  for (auto [number, type] : llvm::enumerate(b.getKernel().getArgumentTypes()))
    pointers.push_back(isa<LLVM::LLVMPointerType>(type) ? b.globalPointer(number) : Value());
  captured = work.capture(b);
  rows = getRows(b, space);
  int64_t tilesN = space.countColumnTiles();
  Expr block = b.block(0);
  thread = b.thread();
  chunk = thread % kChunks;
  tileColumn = block % tilesN * kTile;
  if (ShapedType::isDynamic(space.rows) && space.batchDims == 0) {
    tileRow = block / tilesN * kTile;
    batch = b.number(0);
  } else {
    Expr tilesM =
        rows.isNumber() ? Expr(space.countTilesOfBatch()) : atLeast((rows + (kTile - 1)) / kTile, 1);
    tileRow = block / tilesN % tilesM * kTile;
    batch = block / tilesN / tilesM;
  }
  firstColumn = tileColumn + chunk * kChunk;
  if (work.random && !work.onlyMeasures)
    random.emplace(b, work, pointers[work.random.argument]);
}

void TileKernel::build() {
  if (work.scale)
    writeScaleInv();
  if (work.columns)
    tile = b.staticShared(MemRefType::get({kTile, kGroups}, b.getI32Type()));
  Expr first = thread / kChunks;
  SmallVector<Value> start(1 + countSums() * kChunk, b.real(0.0f).getValue());
  start[0] = b.number(0).getValue(); // the amax, as bits; then 8 sums per extra result that is a sum
  SmallVector<Value> carried =
      b.loop(b.number(0), b.number(kGroups / kGroupsAtOnce), start, [&](Expr i, ValueRange before) {
        SmallVector<Value> values(before);
        computeGroup(first + i * kGroupsAtOnce, values);
        return values;
      });
  if (work.amax)
    b.atomicMaxOfWarp(b.expr(carried[0]), pointers[work.amax.argument]);
  storeSums(ArrayRef(carried).drop_front());
  if (work.columns)
    storeColumns(*work.columns);
}

unsigned TileKernel::countSums() const {
  return llvm::count_if(work.extras, [](const TileExtra &extra) { return extra.isSum; });
}

/// Writes the sums of the tile to its row of the buffer.
void TileKernel::storeSums(ArrayRef<Value> sums) {
  for (const TileExtra &extra : work.extras) {
    if (!extra.isSum)
      continue;
    Expr rowOfTiles = b.block(0) / space.countColumnTiles();
    storeColumnSums(b, sums.take_front(kChunk), [&](Expr column, Expr sum) {
      Expr position = widen(rowOfTiles) * space.columns + widen(tileColumn + column);
      b.when(tileColumn + column < space.columns,
             [&] { b.store(sum, b.at(pointer(extra.operand), position * 4)); });
    });
    sums = sums.drop_front(kChunk);
  }
}

void TileKernel::writeScaleInv() {
  scale = b.load(b.getF32Type(), pointers[work.scale.argument]);
  b.when((thread == 0) & (b.block(0) == 0),
         [&] { b.store(b.real(1.0f) / *scale, pointers[work.scaleInv.argument]); });
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

std::optional<Expr> TileKernel::isRow(Expr row) const {
  return space.hasMultipleOfRows(kGroup) ? std::nullopt : std::optional<Expr>(row < rows);
}

Expr TileKernel::rowsLess(int64_t count) const {
  return rows.isNumber() ? Expr(space.rows - count) : rows - count;
}

std::optional<Expr> TileKernel::isBatch() const {
  if (space.batches > 0)
    return std::nullopt;
  return batch < getBatches(b, space);
}

std::optional<Expr> TileKernel::isColumn(Expr column) const {
  return space.columns % kChunk == 0 ? std::nullopt : std::optional<Expr>(column < space.columns);
}

void TileKernel::when(std::optional<Expr> condition, function_ref<void()> body) {
  if (condition)
    b.when(*condition, body);
  else
    body();
}

SmallVector<Value> TileKernel::ifElse(Expr condition, function_ref<SmallVector<Value>()> yes,
                                      function_ref<SmallVector<Value>()> no) {
  auto inside = [this](function_ref<SmallVector<Value>()> body) {
    return [this, body](OpBuilder &nested, Location) {
      OpBuilder::InsertionGuard guard(b);
      b.restoreInsertionPoint(nested.saveInsertionPoint());
      SmallVector<Value> values = body();
      scf::YieldOp::create(b, values);
    };
  };
  auto branch = scf::IfOp::create(b, condition.getValue(), inside(yes), inside(no));
  return SmallVector<Value>(branch.getResults());
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Computes 4 rows if any of them is in the tensor. Updates `carried`: amax and sums.
void TileKernel::computeGroup(Expr group, SmallVector<Value> &carried) {
  Expr firstRow = tileRow + group * kGroup;
  auto compute = [&]() -> SmallVector<Value> {
    std::array<SmallVector<Chunk>, kGroup> loaded; // all loads before the first store
    for (unsigned r = 0; r < kGroup; ++r)
      loaded[r] = loadRow(firstRow + r);
    SmallVector<Words> words(kGroup);
    SmallVector<Value> values = carried;
    for (unsigned r = 0; r < kGroup; ++r)
      computeRow(firstRow + r, loaded[r], values, words[r]);
    if (work.columns)
      storeWords(group, words);
    return values;
  };
  auto skip = [&] {
    // LLVM widens a load of three words of a column to four.
    if (work.columns && !space.hasMultipleOfRows(kUnit))
      storeWords(group, SmallVector<Words>(kGroup, Words{b.number(0).getValue(), b.number(0).getValue()}));
    return carried;
  };
  std::optional<Expr> live = isGroup(firstRow);
  carried = live ? ifElse(*live, compute, skip) : compute();
}

/// Returns whether any of the thread's columns of four rows is in the tensor; nullopt if all are.
std::optional<Expr> TileKernel::isGroup(Expr firstRow) const {
  std::optional<Expr> live = isBatch();
  if (space.rows == 0 || !space.hasMultipleOfRows(kTile))
    live = both(live, firstRow < rows);
  if (space.columns == 0 || space.columns % kTile != 0)
    live = both(live, firstColumn < space.columns);
  return live;
}

SmallVector<TileKernel::Chunk> TileKernel::loadRow(Expr row) {
  return llvm::map_to_vector(work.inputs, [&](const TileOperand &input) { return loadChunk(input, row); });
}

/// Returns what the region yields: a chunk per value, the tensor's elements first.
SmallVector<TileKernel::Chunk> TileKernel::runRegion(Expr row, ArrayRef<Chunk> loaded) {
  if (!work.region || work.region->isEmpty())
    return {loaded[0]};
  const ElementRegion &region = *work.region;
  Block &body = region.body();
  SmallVector<Chunk> yielded(body.getTerminator()->getNumOperands());
  if (worksOnPairs(region)) {
    SmallVector<SmallVector<Value>> inputs =
        llvm::map_to_vector(loaded, [&](const Chunk &chunk) { return joinPairs(b, chunk); });
    for (int64_t pair = 0; pair < kChunk / 2; ++pair) {
      IRMapping mapping = captured;
      for (auto [i, pairs] : llvm::enumerate(inputs))
        mapping.map(body.getArgument(region.firstArgument + i), pairs[pair]);
      cloneCodeOnPairs(b, region, mapping);
      for (auto [chunk, value] : llvm::zip_equal(yielded, body.getTerminator()->getOperands()))
        chunk.append(splitPairs(b, mapping.lookup(value)));
    }
    return yielded;
  }
  for (int64_t j = 0; j < kChunk; ++j) {
    IRMapping mapping = captured;
    for (auto [i, chunk] : llvm::enumerate(loaded))
      mapping.map(body.getArgument(region.firstArgument + i), chunk[j]);
    cloneElementCode(b, region, mapping, [&](int64_t dim) { return getDims(row, firstColumn + j)[dim]; });
    for (auto [chunk, value] : llvm::zip_equal(yielded, body.getTerminator()->getOperands()))
      chunk.push_back(mapping.lookupOrDefault(value));
  }
  return yielded;
}

/// Stores what the region yields for the extra results, or adds it to `sums`.
void TileKernel::storeExtras(Expr row, ArrayRef<Chunk> yielded, MutableArrayRef<Value> sums) {
  for (auto [extra, chunk] : llvm::zip_equal(work.extras, yielded.drop_front())) {
    if (extra.isSum) {
      addToSums(row, chunk, sums.take_front(kChunk));
      sums = sums.drop_front(kChunk);
      continue;
    }
    Chunk stored = toStorage(chunk);
    Value vector = vector::FromElementsOp::create(b, VectorType::get(kChunk, stored[0].getType()), stored);
    storeChunk(extra.operand, row, stored, vector);
  }
}

/// Computes and stores the thread's columns of one row.
void TileKernel::computeRow(Expr row, ArrayRef<Chunk> loaded, MutableArrayRef<Value> carried, Words &words) {
  SmallVector<Chunk> yielded = runRegion(row, loaded);
  storeExtras(row, yielded, carried.drop_front());
  Chunk wide = work.scale || work.amax ? widenChunk(yielded[0]) : Chunk();
  if (work.amax)
    for (auto [j, value] : llvm::enumerate(wide))
      carried[0] = countMagnitude(carried[0], value, both(isRow(row), isColumn(firstColumn + j)));
  if (work.scale && (work.data || work.columns)) {
    auto format = cast<FloatType>((work.data ? work.data : work.columns)->getElementType());
    words = encode(row, wide, SmallVector<Expr>(kChunk, *scale), format);
  } else if (work.data || work.columns) {
    words = packBytes(toStorage(yielded[0]));
  }
  if (work.data)
    storeWordsOfRow(*work.data, row, words);
}

void TileKernel::addToSums(Expr row, ArrayRef<Value> values, MutableArrayRef<Value> sums) {
  std::optional<Expr> live = isRow(row);
  for (auto [sum, value] : llvm::zip_equal(sums, values)) {
    Expr added = b.expr(sum) + b.expr(value);
    sum = (live ? select(*live, added, b.expr(sum)) : added).getValue();
  }
}

TileKernel::Chunk TileKernel::widenChunk(const Chunk &chunk) {
  return Chunk(llvm::map_range(chunk, [&](Value value) { return buildWiden(b, b.getLoc(), value); }));
}

TileKernel::Words TileKernel::packBytes(const Chunk &bytes) {
  Value vector = vector::FromElementsOp::create(b, VectorType::get(kChunk, b.getI8Type()), bytes);
  Value words = vector::BitCastOp::create(b, VectorType::get(2, b.getI32Type()), vector);
  return {vector::ExtractOp::create(b, words, 0), vector::ExtractOp::create(b, words, 1)};
}

void TileKernel::storeWordsOfRow(const TileOperand &data, Expr row, const Words &words) {
  Value vector = vector::FromElementsOp::create(b, VectorType::get(2, b.getI32Type()), ValueRange(words));
  Value bytes = vector::BitCastOp::create(b, VectorType::get(kChunk, b.getI8Type()), vector);
  Chunk stored;
  for (int64_t j = 0; j < kChunk; ++j)
    stored.push_back(vector::ExtractOp::create(b, bytes, j));
  storeChunk(data, row, stored, data.getRowAlignment() % 4 == 0 ? vector : bytes);
}

/// Returns the larger of `amax` and |value|, as bits: NaN counts nothing.
Value TileKernel::countMagnitude(Value amax, Value value, std::optional<Expr> live) {
  Expr bits = b.expr(buildMagnitudeBits(b, b.getLoc(), value));
  if (live)
    bits = select(*live, bits, 0);
  return arith::MaxUIOp::create(b, amax, bits.getValue());
}

/// Scales the thread's columns of a row and converts them to FP8.
TileKernel::Words TileKernel::encode(Expr row, ArrayRef<Value> wide, ArrayRef<Expr> scales,
                                     FloatType format) {
  if (random) {
    Chunk bytes;
    for (int64_t j = 0; j < kChunk; ++j)
      bytes.push_back(
          random->encode(b.expr(wide[j]) * scales[j], format, batch, row, firstColumn + j).getValue());
    return packBytes(bytes);
  }
  SmallVector<Expr> pairs;
  for (int64_t j = 0; j < kChunk; j += 2) {
    Expr low = b.expr(wide[j]) * scales[j], high = b.expr(wide[j + 1]) * scales[j + 1];
    Value pair = b.encodeFP8(low, high, format).getValue();
    pairs.push_back(b.expr(arith::ExtUIOp::create(b, b.getI32Type(), pair)));
  }
  return {(pairs[0] | pairs[1] << 16).getValue(), (pairs[2] | pairs[3] << 16).getValue()};
}

void fp8::buildTileKernel(KernelBuilder &b, const TileWork &work) {
  if (work.scalings.empty())
    TileKernel(b, work).build();
  else
    buildBlockTiles(b, work);
}
