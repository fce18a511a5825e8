// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block of 256 threads computes a tile of 128 rows and 128 columns. A thread computes 8 adjacent columns of
// two groups of 4 adjacent rows: 16-byte loads, 8 bytes of each FP8 row at a time. For the columns, the bytes
// of a group become words of 4 rows, which go through shared memory: column c of the tile has its word of
// group g at c * 32 + (g ^ 2 * (c / 8)), so that the banks of a warp's stores, and of its 16-byte loads, are
// all different.

#include "TileKernel.h"
#include "ColumnSums.h"
#include "fp8/Conversion/FP8ToLinalg/FP8Casts.h"
#include "fp8/Conversion/FP8ToLinalg/ProductEpilogue.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <numeric>

using namespace mlir;
using namespace fp8;

static constexpr int64_t kChunk = 8; ///< columns of a thread
static constexpr int64_t kGroup = 4; ///< rows of a group
static constexpr int64_t kChunks = kTile / kChunk;
static constexpr int64_t kGroups = kTile / kGroup;
static constexpr int64_t kThreads = 256;
static constexpr int64_t kGroupsAtOnce = kThreads / kChunks;

//===----------------------------------------------------------------------===//
// TileKernel
//===----------------------------------------------------------------------===//

namespace {

/// Writes the code of one kernel.
class TileKernel {
public:
  TileKernel(KernelBuilder &b, const TileWork &work);
  void build();

private:
  /// 8 elements of a row, as the region reads or yields them.
  using Chunk = SmallVector<Value, 8>;
  /// One 32-bit word per 4 columns.
  using Words = std::array<Value, 2>;

  void captureValues();
  void writeScaleInv();
  void computeGroup(Expr group, SmallVector<Value> &carried);
  void computeRow(Expr row, ArrayRef<Chunk> loaded, MutableArrayRef<Value> carried, Words &words);
  void addToSums(Expr row, ArrayRef<Value> values, MutableArrayRef<Value> sums);
  SmallVector<Chunk> runRegion(Expr row, ArrayRef<Chunk> loaded);
  Chunk widenChunk(const Chunk &chunk);
  Chunk toStorage(const Chunk &chunk);
  Words packBytes(const Chunk &bytes);
  void storeWordsOfRow(Expr row, const Words &words);
  Value countMagnitude(Value amax, Value value, std::optional<Expr> live);
  Words encode(ArrayRef<Value> wide);
  void storeWords(Expr group, ArrayRef<Words> rows);
  void reduceAmax(Value amax);
  void storeSums(ArrayRef<Value> sums);
  void storeColumns();
  void storeColumnPart(Expr tileColumn, Expr unit);
  Value loadColumnPart(Expr tileColumn, Expr unit);
  void storeColumnBytes(Expr tileColumn, Expr unit);

  // Elements of operands.
  Value getAddress(const TileOperand &operand, Expr row, Expr column);
  Chunk loadChunk(const TileOperand &operand, Expr row);
  Chunk loadVector(const TileOperand &operand, Expr row);
  Chunk loadScalars(const TileOperand &operand, Expr row);
  void storeChunk(const TileOperand &operand, Expr row, ArrayRef<Value> stored, Value vector);
  SmallVector<Value> getDims(Expr row, Expr column);

  /// Runs `body` where `condition` is true; nullopt is true everywhere.
  void when(std::optional<Expr> condition, function_ref<void()> body);
  SmallVector<Value> ifElse(Expr condition, function_ref<SmallVector<Value>()> yes,
                            function_ref<SmallVector<Value>()> no);
  /// Whether a row of a group, or a column of a chunk, of which some are in the tensor, is in it.
  std::optional<Expr> isRow(Expr row) const;
  std::optional<Expr> isColumn(Expr column) const;

  Value toIndex(Expr value) { return arith::IndexCastUIOp::create(b, b.getIndexType(), value.getValue()); }
  Expr permute(Expr low, Expr high, uint32_t selector);
  Value pointer(const TileOperand &operand) { return pointers[operand.argument]; }

  KernelBuilder &b;
  const TileWork &work;
  const TileSpace &space;
  SmallVector<Value> pointers; ///< per argument
  IRMapping captured;
  Expr thread = 0, chunk = 0, firstColumn = 0, tileRow = 0, tileColumn = 0, batch = 0;
  std::optional<Expr> scale;
  Value tile; ///< shared memory for the columns
};

} // namespace

static std::optional<Expr> both(std::optional<Expr> a, std::optional<Expr> b) {
  return a && b ? std::optional<Expr>(*a & *b) : a ? a : b;
}

TileKernel::TileKernel(KernelBuilder &b, const TileWork &work) : b(b), work(work), space(work.space) {
  for (auto [number, type] : llvm::enumerate(b.getKernel().getArgumentTypes()))
    pointers.push_back(isa<LLVM::LLVMPointerType>(type) ? b.globalPointer(number) : Value());
  captureValues();
  int64_t tilesN = space.countColumnTiles(),
          tilesM = space.countRowTiles() / std::max<int64_t>(space.batches, 1);
  Expr block = b.block(0);
  thread = b.thread();
  chunk = thread % kChunks;
  tileColumn = block % tilesN * kTile;
  tileRow = block / tilesN % tilesM * kTile;
  batch = block / tilesN / tilesM;
  firstColumn = tileColumn + chunk * kChunk;
}

/// Copies constants of the region's surroundings into the kernel.
void TileKernel::captureValues() {
  for (Value value : work.constants)
    captured.map(value, b.clone(*value.getDefiningOp())->getResult(0));
  for (auto [value, argument] : work.indices)
    captured.map(
        value,
        arith::IndexCastOp::create(b, b.getIndexType(), b.getKernel().getArgument(argument)).getResult());
}

void TileKernel::build() {
  if (work.scale)
    writeScaleInv();
  if (work.columns)
    tile = b.staticShared(MemRefType::get({kTile, kGroups}, b.getI32Type()));
  Expr first = thread / kChunks;
  int64_t numSums = llvm::count_if(work.extras, [](const TileExtra &extra) { return extra.isSum; });
  SmallVector<Value> start(1 + numSums * kChunk, b.real(0.0f).getValue());
  start[0] = b.number(0).getValue(); // the amax, as bits; then 8 sums per extra result that is a sum
  SmallVector<Value> carried =
      b.loop(b.number(0), b.number(kGroups / kGroupsAtOnce), start, [&](Expr i, ValueRange before) {
        SmallVector<Value> values(before);
        computeGroup(first + i * kGroupsAtOnce, values);
        return values;
      });
  if (work.amax)
    reduceAmax(carried[0]);
  storeSums(ArrayRef(carried).drop_front());
  if (work.columns)
    storeColumns();
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
  return space.rows % kGroup == 0 ? std::nullopt : std::optional<Expr>(row < space.rows);
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
// Operands
//===----------------------------------------------------------------------===//

/// Returns the type in which memory holds elements of `type`.
static Type getStorageType(Type type) {
  if (isa<Float8E4M3FNType, Float8E5M2Type>(type) || type.isInteger(1))
    return IntegerType::get(type.getContext(), 8);
  return type.isIndex() ? IntegerType::get(type.getContext(), 64) : type;
}

static Value fromStorage(OpBuilder &b, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  if (type.isIndex())
    return arith::IndexCastOp::create(b, loc, type, value);
  if (type.isInteger(1))
    return arith::TruncIOp::create(b, loc, type, value);
  return arith::BitcastOp::create(b, loc, type, value);
}

static Value toStorage(OpBuilder &b, Location loc, Value value) {
  Type type = value.getType(), storage = getStorageType(type);
  if (type == storage)
    return value;
  if (type.isIndex())
    return arith::IndexCastOp::create(b, loc, storage, value);
  if (type.isInteger(1))
    return arith::ExtUIOp::create(b, loc, storage, value);
  return arith::BitcastOp::create(b, loc, storage, value);
}

/// Returns the indices of an element in the dimensions of the tensor.
SmallVector<Value> TileKernel::getDims(Expr row, Expr column) {
  SmallVector<Value> dims(space.sizes.size());
  auto split = [&](Expr index, unsigned first, unsigned last) {
    for (unsigned dim = last; dim-- > first; index = index / space.sizes[dim])
      dims[dim] = toIndex(dim == first ? index : index % space.sizes[dim]);
  };
  if (dims.empty())
    return dims;
  dims.back() = toIndex(column);
  split(row, space.batchDims, dims.size() - 1);
  split(batch, 0, space.batchDims);
  return dims;
}

/// Returns the address of the element. Positions are i64: they may be beyond 2^31.
Value TileKernel::getAddress(const TileOperand &operand, Expr row, Expr column) {
  Expr position = 0;
  if (operand.strides) {
    const TileStrides &strides = *operand.strides;
    position = widen(row) * strides.row + widen(column) * strides.column;
    if (strides.batch != 0)
      position = position + widen(batch) * strides.batch;
  } else {
    Value index = affine::expandAffineExpr(b, b.getLoc(), operand.position, getDims(row, column), {});
    position = b.expr(arith::IndexCastOp::create(b, b.getI64Type(), index));
  }
  return b.at(pointer(operand), position * operand.getElementBytes());
}

/// Loads the elements of the thread's columns. Rows and columns beyond the tensor read as the last ones.
TileKernel::Chunk TileKernel::loadChunk(const TileOperand &operand, Expr row) {
  if (space.rows % kGroup != 0)
    row = atMost(row, space.rows - 1);
  if (!operand.hasAdjacentColumns(space) || space.columns < kChunk)
    return loadScalars(operand, row);
  if (space.columns % kChunk == 0)
    return loadVector(operand, row);
  return Chunk(ifElse(
      firstColumn < space.columns - (kChunk - 1), [&] { return loadVector(operand, row); },
      [&] { return loadScalars(operand, row); }));
}

TileKernel::Chunk TileKernel::loadVector(const TileOperand &operand, Expr row) {
  Type type = getStorageType(operand.getElementType());
  int64_t alignment = std::gcd(operand.getRowAlignment(), kChunk * operand.getElementBytes());
  bool asWords = type.isInteger(8) && alignment % 4 == 0; // LLVM loads a vector of bytes one by one
  auto vectorType = VectorType::get(kChunk, type);
  Type loadedType = asWords ? VectorType::get(kChunk / 4, b.getI32Type()) : vectorType;
  Value vector = LLVM::LoadOp::create(b, loadedType, getAddress(operand, row, firstColumn), alignment);
  if (asWords)
    vector = vector::BitCastOp::create(b, vectorType, vector);
  Chunk chunk;
  for (int64_t j = 0; j < kChunk; ++j)
    chunk.push_back(
        fromStorage(b, b.getLoc(), vector::ExtractOp::create(b, vector, j), operand.getElementType()));
  return chunk;
}

TileKernel::Chunk TileKernel::loadScalars(const TileOperand &operand, Expr row) {
  bool same = operand.strides && operand.strides->column == 0;
  Chunk chunk;
  for (int64_t j = 0; j < (same ? 1 : kChunk); ++j) {
    Expr column = firstColumn + j;
    if (space.columns % kChunk != 0)
      column = atMost(column, space.columns - 1);
    Expr value = b.load(getStorageType(operand.getElementType()), getAddress(operand, row, column));
    chunk.push_back(fromStorage(b, b.getLoc(), value.getValue(), operand.getElementType()));
  }
  if (same)
    chunk.resize(kChunk, chunk[0]);
  return chunk;
}

/// Stores the elements of the thread's columns that are in the tensor: `vector` at once where all of them
/// are, else those of `stored`.
void TileKernel::storeChunk(const TileOperand &operand, Expr row, ArrayRef<Value> stored, Value vector) {
  auto storeScalars = [&]() -> SmallVector<Value> {
    for (auto [j, value] : llvm::enumerate(stored)) {
      Expr column = firstColumn + j;
      when(isColumn(column),
           [&, value = value] { b.store(b.expr(value), getAddress(operand, row, column)); });
    }
    return {};
  };
  auto storeVector = [&]() -> SmallVector<Value> {
    int64_t alignment = std::gcd(operand.getRowAlignment(), kChunk * operand.getElementBytes());
    LLVM::StoreOp::create(b, vector, getAddress(operand, row, firstColumn), alignment);
    return {};
  };
  when(isRow(row), [&] {
    if (!operand.hasAdjacentColumns(space) || space.columns < kChunk)
      storeScalars();
    else if (space.columns % kChunk == 0)
      storeVector();
    else
      ifElse(firstColumn < space.columns - (kChunk - 1), storeVector, storeScalars);
  });
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
      for (const TileOperand &input : work.inputs)
        loaded[r].push_back(loadChunk(input, firstRow + r));
    SmallVector<Words> words(kGroup);
    SmallVector<Value> values = carried;
    for (unsigned r = 0; r < kGroup; ++r)
      computeRow(firstRow + r, loaded[r], values, words[r]);
    if (work.columns)
      storeWords(group, words);
    return values;
  };
  std::optional<Expr> live;
  if (space.rows == 0 || space.rows % kTile != 0)
    live = firstRow < space.rows;
  if (space.columns == 0 || space.columns % kTile != 0)
    live = both(live, firstColumn < space.columns);
  carried = live ? ifElse(*live, compute, [&] { return carried; }) : compute();
}

/// Returns what the region yields: a chunk per value, the tensor's elements first.
SmallVector<TileKernel::Chunk> TileKernel::runRegion(Expr row, ArrayRef<Chunk> loaded) {
  if (!work.region || work.region->isEmpty())
    return {loaded[0]};
  const ElementRegion &region = *work.region;
  Block &body = region.body();
  SmallVector<Chunk> yielded(body.getTerminator()->getNumOperands());
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

/// Computes and stores the thread's columns of one row.
void TileKernel::computeRow(Expr row, ArrayRef<Chunk> loaded, MutableArrayRef<Value> carried, Words &words) {
  SmallVector<Chunk> yielded = runRegion(row, loaded);
  MutableArrayRef<Value> sums = carried.drop_front();
  for (auto [extra, chunk] : llvm::zip_equal(work.extras, ArrayRef(yielded).drop_front())) {
    if (extra.isSum) {
      addToSums(row, chunk, sums.take_front(kChunk));
      sums = sums.drop_front(kChunk);
      continue;
    }
    Chunk stored = toStorage(chunk);
    Value vector = vector::FromElementsOp::create(b, VectorType::get(kChunk, stored[0].getType()), stored);
    storeChunk(extra.operand, row, stored, vector);
  }
  Chunk wide = work.scale || work.amax ? widenChunk(yielded[0]) : Chunk();
  if (work.amax)
    for (auto [j, value] : llvm::enumerate(wide))
      carried[0] = countMagnitude(carried[0], value, both(isRow(row), isColumn(firstColumn + j)));
  if (work.data || work.columns)
    words = work.scale ? encode(wide) : packBytes(toStorage(yielded[0]));
  if (work.data)
    storeWordsOfRow(row, words);
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

TileKernel::Chunk TileKernel::toStorage(const Chunk &chunk) {
  return Chunk(llvm::map_range(chunk, [&](Value value) { return ::toStorage(b, b.getLoc(), value); }));
}

TileKernel::Words TileKernel::packBytes(const Chunk &bytes) {
  Value vector = vector::FromElementsOp::create(b, VectorType::get(kChunk, b.getI8Type()), bytes);
  Value words = vector::BitCastOp::create(b, VectorType::get(2, b.getI32Type()), vector);
  return {vector::ExtractOp::create(b, words, 0), vector::ExtractOp::create(b, words, 1)};
}

void TileKernel::storeWordsOfRow(Expr row, const Words &words) {
  Value vector = vector::FromElementsOp::create(b, VectorType::get(2, b.getI32Type()), ValueRange(words));
  Value bytes = vector::BitCastOp::create(b, VectorType::get(kChunk, b.getI8Type()), vector);
  Chunk stored;
  for (int64_t j = 0; j < kChunk; ++j)
    stored.push_back(vector::ExtractOp::create(b, bytes, j));
  storeChunk(*work.data, row, stored, work.data->getRowAlignment() % 4 == 0 ? vector : bytes);
}

/// Returns the larger of `amax` and |value|, as bits: NaN counts nothing.
Value TileKernel::countMagnitude(Value amax, Value value, std::optional<Expr> live) {
  Expr bits = b.expr(buildMagnitudeBits(b, b.getLoc(), value));
  if (live)
    bits = select(*live, bits, 0);
  return arith::MaxUIOp::create(b, amax, bits.getValue());
}

/// Scales 8 values and converts them to FP8.
TileKernel::Words TileKernel::encode(ArrayRef<Value> wide) {
  auto format = cast<FloatType>((work.data ? work.data : work.columns)->getElementType());
  SmallVector<Expr> pairs;
  for (int64_t j = 0; j < kChunk; j += 2) {
    Expr low = b.expr(wide[j]) * *scale, high = b.expr(wide[j + 1]) * *scale;
    Value pair = NVVM::ConvertF32x2ToF8x2Op::create(b, b.getI16Type(), high.getValue(), low.getValue(),
                                                    NVVM::FPRoundingMode::RN, NVVM::SaturationMode::SATFINITE,
                                                    /*relu=*/false, format);
    pairs.push_back(b.expr(arith::ExtUIOp::create(b, b.getI32Type(), pair)));
  }
  return {(pairs[0] | pairs[1] << 16).getValue(), (pairs[2] | pairs[3] << 16).getValue()};
}

void TileKernel::reduceAmax(Value amax) {
  Value all = b.number(-1).getValue();
  Value largest = NVVM::ReduxOp::create(b, b.getI32Type(), amax, NVVM::ReduxKind::UMAX, all);
  b.when(thread % 32 == 0, [&] {
    LLVM::AtomicRMWOp::create(b, LLVM::AtomicBinOp::umax, pointers[work.amax.argument], largest,
                              LLVM::AtomicOrdering::monotonic);
  });
}

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

/// Returns four of the eight bytes of `low` and `high`, chosen by the four digits of `selector`.
Expr TileKernel::permute(Expr low, Expr high, uint32_t selector) {
  return b.expr(LLVM::CallIntrinsicOp::create(
                    b, b.getI32Type(), b.getStringAttr("llvm.nvvm.prmt"),
                    ValueRange{low.getValue(), high.getValue(), b.number(selector).getValue()})
                    .getResult(0));
}

/// Writes 4 rows of 8 bytes to shared memory as 8 words, one per column.
void TileKernel::storeWords(Expr group, ArrayRef<Words> rows) {
  Expr place = group ^ chunk * 2;
  for (unsigned half = 0; half < 2; ++half) {
    auto row = [&](unsigned r) { return b.expr(rows[r][half]); };
    Expr top01 = permute(row(0), row(1), 0x5140), top23 = permute(row(0), row(1), 0x7362);
    Expr bottom01 = permute(row(2), row(3), 0x5140), bottom23 = permute(row(2), row(3), 0x7362);
    Expr words[] = {permute(top01, bottom01, 0x5410), permute(top01, bottom01, 0x7632),
                    permute(top23, bottom23, 0x5410), permute(top23, bottom23, 0x7632)};
    for (auto [j, word] : llvm::enumerate(words))
      memref::StoreOp::create(b, word.getValue(), tile,
                              ValueRange{toIndex(chunk * kChunk + (4 * half + j)), toIndex(place)});
  }
}

/// Writes the tile's columns in parts of 16 rows.
void TileKernel::storeColumns() {
  b.barrier();
  constexpr int64_t kUnits = kTile / 16; // parts of a column
  b.loop(b.number(0), b.number(kTile * kUnits / kThreads), {}, [&](Expr i, ValueRange) -> SmallVector<Value> {
    Expr part = thread + i * kThreads, column = part / kUnits, unit = part % kUnits;
    std::optional<Expr> live;
    if (space.rows == 0 || space.rows % kTile != 0)
      live = tileRow + unit * 16 < space.rows;
    if (space.columns == 0 || space.columns % kTile != 0)
      live = both(live, tileColumn + column < space.columns);
    when(live, [&] { storeColumnPart(column, unit); });
    return {};
  });
}

void TileKernel::storeColumnPart(Expr column, Expr unit) {
  auto whole = [&]() -> SmallVector<Value> {
    Value part = loadColumnPart(column, unit);
    int64_t alignment = work.columns->getColumnAlignment();
    if (alignment % 4 != 0)
      part = vector::BitCastOp::create(b, VectorType::get(16, b.getI8Type()), part);
    LLVM::StoreOp::create(b, part, getAddress(*work.columns, tileRow + unit * 16, tileColumn + column),
                          alignment);
    return {};
  };
  auto some = [&]() -> SmallVector<Value> { return storeColumnBytes(column, unit), SmallVector<Value>(); };
  if (space.rows % 16 == 0)
    whole();
  else
    ifElse(tileRow + unit * 16 < space.rows - 15, whole, some);
}

/// Reads 16 rows of a column from shared memory. Its four words are adjacent, the two halves exchanged where
/// the column's chunk is odd.
Value TileKernel::loadColumnPart(Expr column, Expr unit) {
  Expr chunkOfColumn = column / kChunk;
  Expr place = (unit ^ chunkOfColumn / 2) * 4;
  auto type = VectorType::get(4, b.getI32Type());
  Value words = vector::LoadOp::create(b, type, tile, ValueRange{toIndex(column), toIndex(place)},
                                       /*nontemporal=*/false, llvm::MaybeAlign(16));
  Value exchanged = vector::ShuffleOp::create(b, words, words, ArrayRef<int64_t>{2, 3, 0, 1});
  Expr even = chunkOfColumn % 2 == 0;
  return arith::SelectOp::create(b, even.getValue(), words, exchanged);
}

/// Writes those of 16 rows of a column that are in the tensor.
void TileKernel::storeColumnBytes(Expr column, Expr unit) {
  for (int64_t w = 0; w < 4; ++w) {
    Expr group = unit * 4 + w, firstRow = tileRow + group * kGroup;
    b.when(firstRow < space.rows, [&] {
      Expr place = group ^ column / kChunk * 2;
      Expr word = b.expr(memref::LoadOp::create(b, tile, ValueRange{toIndex(column), toIndex(place)}));
      for (int64_t r = 0; r < kGroup; ++r)
        when(isRow(firstRow + r), [&] {
          Value byte = arith::TruncIOp::create(b, b.getI8Type(), (word >> 8 * r).getValue());
          b.store(b.expr(byte), getAddress(*work.columns, firstRow + r, tileColumn + column));
        });
    });
  }
}

void fp8::buildTileKernel(KernelBuilder &b, const TileWork &work) { TileKernel(b, work).build(); }
