// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A warp computes a row where its registers hold it, else a block of up to 1,024 threads. Neighbouring
// threads have neighbouring chunks of 4 elements, so that each access of a warp touches whole sectors once.
// Where warps compute rows and columns are wanted, a block computes 32 rows, whose bytes pass through shared
// memory: a column leaves as two parts of 16 bytes, side by side. The word of row r and columns 4 c to 4 c +
// 3 lies at c ^ (r & 16) in the row's part of the buffer, so that no two lanes of a warp meet in a bank.

#include "RowCastKernelBuilder.h"
#include "fp8/Conversion/FP8ToLinalg/FP8Casts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <numeric>

using namespace mlir;
using namespace fp8;

/// Rows of a block that sums over rows, where their number is dynamic.
static constexpr int64_t kRowsOfSums = 16;

/// Registers of a thread for the values of a row that are kept.
static constexpr int64_t kRowRegisters = 64;

RowPlan::RowPlan(const Chip &chip, int64_t length, int64_t rows, int64_t kept, bool hasSums, bool hasColumns)
    : width(length % 4 == 0 ? 4 : 1), chunks(llvm::divideCeil(length, kWarp * width)), lanes(kWarp),
      teams(kWarps), rowsOfBlock(kWarps) {
  int64_t manyBlocks = 16 * chip.multiprocessors;
  if (countElements() * kept <= kRowRegisters) {
    if (hasSums || hasColumns || rows > manyBlocks * kWarps)
      rowsOfBlock = kColumnRows;
    return;
  }
  teams = 1;
  for (lanes = 2 * kWarp; lanes < 1024; lanes *= 2)
    if (llvm::divideCeil(length, lanes * width) * width * kept <= kRowRegisters)
      break;
  chunks = llvm::divideCeil(length, lanes * width);
  rowsOfBlock = !hasSums ? 1
                : ShapedType::isDynamic(rows)
                    ? kRowsOfSums
                    : std::max<int64_t>(llvm::divideCeil(rows, 2 * chip.multiprocessors), 1);
}

RowKernel::RowKernel(KernelBuilder &b, const TileWork &work, const RowPlan &plan)
    : b(b), work(work), space(work.space), plan(plan), region(*work.region) {
  for (auto [number, type] : llvm::enumerate(b.getKernel().getArgumentTypes()))
    pointers.push_back(isa<LLVM::LLVMPointerType>(type) ? b.globalPointer(number) : Value());
  captured = work.capture(b);
  thread = b.thread();
  lane = thread % plan.lanes;
  rows = space.isEmpty() ? Expr(0) : getRows(b, space);
  if (ShapedType::isDynamic(space.rows) && space.batchDims == 0) {
    batch = b.number(0);
    firstRow = b.block(0) * plan.rowsOfBlock;
    return;
  }
  Expr blocksOfBatch = std::max<int64_t>(llvm::divideCeil(space.rows, plan.rowsOfBlock), 1);
  if (ShapedType::isDynamic(space.rows))
    blocksOfBatch = atLeast((rows + (plan.rowsOfBlock - 1)) / plan.rowsOfBlock, 1);
  batch = b.block(0) / blocksOfBatch;
  firstRow = b.block(0) % blocksOfBatch * plan.rowsOfBlock;
}

/// The condition that `row` is in the tensor.
Expr RowKernel::isRow(Expr row) {
  Expr live = row < rows;
  return ShapedType::isDynamic(space.batches) ? live & (batch < getBatches(b, space)) : live;
}

Value RowKernel::toIndex(Expr value) {
  return arith::IndexCastUIOp::create(b, b.getIndexType(), value.getValue());
}

std::optional<Expr> RowKernel::isInRow(int64_t chunk) {
  if ((chunk + 1) * plan.lanes * plan.width <= space.columns)
    return std::nullopt;
  return columnOf(chunk) < space.columns;
}

void RowKernel::when(std::optional<Expr> condition, function_ref<void()> body) {
  if (condition)
    b.when(*condition, body);
  else
    body();
}

void RowKernel::build() {
  if (work.scale) {
    scale = b.load(b.getF32Type(), pointers[work.scale.argument]);
    b.when((thread == 0) & (b.block(0) == 0),
           [&] { b.store(b.real(1.0f) / *scale, pointers[work.scaleInv.argument]); });
  }
  if (work.random)
    random.emplace(b, work, pointers[work.random.argument]);
  int64_t numSums = llvm::count_if(work.extras, [](const TileExtra &extra) { return extra.isSum; });
  if (plan.teams > 1 && (work.columns || numSums != 0)) {
    int64_t words = work.columns ? RowPlan::kColumnRows * getSharedPitch() : 0;
    words = std::max(words, numSums != 0 ? RowPlan::kWarps * space.columns : 0);
    shared = b.staticShared(MemRefType::get({words}, b.getI32Type()));
  }
  SmallVector<Value> start(1 + numSums * plan.countElements(), b.real(0.0f).getValue());
  start[0] = b.number(0).getValue(); // the amax, as bits; then the sums of the thread's elements
  Expr team = thread / plan.lanes;
  auto compute = [&](Expr i, ValueRange before) -> SmallVector<Value> {
    Expr rowOfBlock = i * plan.teams + team;
    row = firstRow + rowOfBlock;
    if (!space.isEmpty() && space.hasMultipleOfRows(plan.rowsOfBlock) && space.batches > 0)
      return computeRow(rowOfBlock, before);
    return b.whenElse(isRow(row), [&] { return computeRow(rowOfBlock, before); }, before);
  };
  int64_t count = plan.rowsOfBlock / plan.teams;
  SmallVector<Value> carried =
      count == 1 ? compute(b.number(0), start) : b.loop(b.number(0), b.number(count), start, compute);
  if (work.columns)
    storeColumns();
  storeSums(ArrayRef(carried).drop_front());
  if (work.amax)
    raiseAmax(b.expr(carried[0]));
}

/// Computes a row and stores its results. Returns amax and sums.
RowKernel::Values RowKernel::computeRow(Expr rowOfBlock, ValueRange before) {
  Values carried(before);
  elements.clear();
  scalars = captured;
  storeStatistics(); // first: one lane's branch at the end of the loop would divide the warp's next row
  for (int64_t chunk = 0; chunk < plan.chunks; ++chunk)
    writeChunk(chunk, rowOfBlock, carried);
  bool isRepeated = plan.rowsOfBlock != plan.teams;
  if (isRepeated && plan.lanes > RowPlan::kWarp && reductions % 2 == 1)
    b.barrier(); // the first reduction of the next row uses the buffer of the last one
  return carried;
}

/// Stores the scalars that a row has one of.
void RowKernel::storeStatistics() {
  for (auto [extra, value] : llvm::zip_equal(work.extras, region.yield().getExtras())) {
    if (isa<VectorType>(value.getType()))
      continue;
    Value stored = toStorage(b, b.getLoc(), getScalar(value));
    b.when(lane == 0, [&, &extra = extra] {
      b.store(b.expr(stored), getAddress(b, space, extra.operand, pointer(extra.operand), {batch, row, 0}));
    });
  }
}

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

/// Computes one chunk of the row and of the extra results, and stores it. Updates `carried`: amax and sums.
void RowKernel::writeChunk(int64_t chunk, Expr rowOfBlock, Values &carried) {
  auto getChunk = [&](Value value) {
    Values values;
    for (int64_t j = 0; j < plan.width; ++j)
      values.push_back(getElement(value, chunk * plan.width + j));
    return values;
  };
  int64_t firstSum = 1 + chunk * plan.width;
  for (auto [extra, value] : llvm::zip_equal(work.extras, region.yield().getExtras())) {
    if (!isa<VectorType>(value.getType()))
      continue;
    Values values = getChunk(value);
    if (!extra.isSum) {
      storeChunk(extra.operand, chunk, values);
      continue;
    }
    for (auto [j, added] : llvm::enumerate(values))
      carried[firstSum + j] = (b.expr(carried[firstSum + j]) + b.expr(added)).getValue();
    firstSum += plan.countElements();
  }
  if (!work.scale && !work.amax)
    return;
  Values wide = getChunk(region.yield().getValue());
  for (Value &value : wide)
    value = buildWiden(b, b.getLoc(), value);
  if (work.amax)
    carried[0] = countMagnitudes(carried[0], wide, chunk);
  if (work.scale)
    storeData(chunk, rowOfBlock, wide);
}

void RowKernel::storeChunk(const TileOperand &operand, int64_t chunk, ArrayRef<Value> values) {
  Values stored;
  for (Value value : values)
    stored.push_back(toStorage(b, b.getLoc(), value));
  bool isAdjacent = plan.width > 1 && operand.hasAdjacentColumns(space);
  when(isInRow(chunk), [&] {
    Place place = at(chunk);
    if (!isAdjacent) {
      for (auto [j, value] : llvm::enumerate(stored))
        b.store(b.expr(value), getAddress(b, space, operand, pointer(operand),
                                          {batch, row, place.column + static_cast<double>(j)}));
      return;
    }
    int64_t alignment = std::gcd(operand.getRowAlignment(), plan.width * operand.getElementBytes());
    Type type = stored[0].getType();
    Value vector = vector::FromElementsOp::create(b, VectorType::get(plan.width, type), stored);
    if (type.isInteger(8) && alignment % 4 == 0)
      vector = vector::BitCastOp::create(b, VectorType::get(1, b.getI32Type()), vector);
    LLVM::StoreOp::create(b, vector, getAddress(b, space, operand, pointer(operand), place), alignment);
  });
}

/// Returns the larger of `amax` and the magnitudes, as bits: NaN counts nothing, nor what is beyond the row.
Value RowKernel::countMagnitudes(Value amax, ArrayRef<Value> values, int64_t chunk) {
  Value largest = amax;
  for (Value value : values)
    largest = arith::MaxUIOp::create(b, largest, buildMagnitudeBits(b, b.getLoc(), value));
  std::optional<Expr> inside = isInRow(chunk);
  return inside ? select(*inside, b.expr(largest), b.expr(amax)).getValue() : largest;
}

/// As encode(), with stochastic rounding.
Expr RowKernel::encodeRandomly(int64_t chunk, ArrayRef<Value> values, FloatType format) {
  Expr word = 0;
  for (auto [j, value] : llvm::enumerate(values)) {
    Expr byte = random->encode(b.expr(value) * *scale, format, batch, row, columnOf(chunk) + j);
    if (values.size() == 1)
      return byte;
    Expr placed = b.expr(arith::ExtUIOp::create(b, b.getI32Type(), byte.getValue())) << 8 * j;
    word = j == 0 ? placed : word | placed;
  }
  return word;
}

/// Scales the elements and converts them to FP8: an i32 of 4, or an i8 of one.
Expr RowKernel::encode(int64_t chunk, ArrayRef<Value> values) {
  auto format = cast<FloatType>((work.data ? work.data : work.columns)->getElementType());
  if (random)
    return encodeRandomly(chunk, values, format);
  if (values.size() == 1)
    return b.encodeFP8(b.expr(values[0]) * *scale, format);
  Expr word = 0;
  for (int64_t j = 2; j >= 0; j -= 2) {
    Expr low = b.expr(values[j]) * *scale, high = b.expr(values[j + 1]) * *scale;
    Value pair = b.encodeFP8(low, high, format).getValue();
    Expr half = b.expr(arith::ExtUIOp::create(b, b.getI32Type(), pair));
    word = j == 2 ? half << 16 : word | half;
  }
  return word;
}

void RowKernel::storeData(int64_t chunk, Expr rowOfBlock, ArrayRef<Value> values) {
  if (!work.data && !work.columns)
    return;
  Expr bytes = encode(chunk, values);
  when(isInRow(chunk), [&] {
    Place place = at(chunk);
    if (work.columns) {
      Expr word = place.column / 4 ^ (rowOfBlock & kPartRows);
      memref::StoreOp::create(b, bytes.getValue(), shared, toIndex(rowOfBlock * getSharedPitch() + word));
    }
    if (!work.data)
      return;
    bool isWhole = plan.width == 1 || work.data->getRowAlignment() % 4 == 0;
    auto address = [&](int64_t j) {
      return getAddress(b, space, *work.data, pointer(*work.data), {batch, row, place.column + j});
    };
    if (isWhole)
      b.store(bytes, address(0));
    for (int64_t j = 0; !isWhole && j < plan.width; ++j)
      b.store(b.expr(arith::TruncIOp::create(b, b.getI8Type(), (bytes >> 8 * j).getValue())), address(j));
  });
}

void fp8::buildRowKernel(KernelBuilder &b, const TileWork &work, const RowPlan &plan) {
  RowKernel(b, work, plan).build();
}

void fp8::launchRows(OpBuilder &builder, LoweringContext &context, TileWork &work, const RowPlan &plan,
                     StringRef name) {
  Value blocks = countRowBlocks(builder, work, plan.rowsOfBlock);
  launchWork(builder, context, work, {name, blocks, plan.countThreads(), /*partsOfSums=*/blocks},
             [&](KernelBuilder &b) { buildRowKernel(b, work, plan); });
}
