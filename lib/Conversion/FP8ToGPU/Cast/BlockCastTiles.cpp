// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel of tiles for casts with a scale per block. A thread keeps its elements in registers until the
// scales are known: it measures them, lanes combine their amaxes by shuffles into a table in shared memory, a
// thread per block computes the scale by the recipe's formula and writes it to the table, and all threads
// cast their elements once for each kind of blocks. Columns leave as in other kernels of tiles.

#include "BlockCastKernel.h"
#include "BlockCastTable.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace fp8;

namespace {

constexpr int64_t kLoops = kGroups / kGroupsAtOnce; ///< groups of a thread

/// Writes the code of one kernel.
class BlockTiles : private BlockKernel {
public:
  BlockTiles(KernelBuilder &b, const TileWork &work) : BlockKernel(b, work) {}
  void build();

private:
  bool isMeasured(const TileScaling &scaling) const { return scaling.isSpanning() == work.onlyMeasures; }
  unsigned countAmaxes() const;
  SmallVector<Value> computeGroup(Expr group, ValueRange sums);
  void measureRow(Expr row, unsigned r, ArrayRef<Value> wide, MutableArrayRef<Value> amaxes);
  void combine(const TileScaling &scaling, const BlockTable &table, Expr group, ArrayRef<Value> amaxes);
  void computeScales(const TileScaling &scaling, const BlockTable &table, Expr worker);
  void finishBlock(const TileScaling &scaling, const BlockTable &table, Expr block);
  SmallVector<Expr> loadScales(const BlockTable &table, Expr group, unsigned r);
  void castTile(const TileScaling &scaling, const BlockTable &table);

  Expr getGroup(Expr loop) { return thread / kChunks + loop * kGroupsAtOnce; }

  SmallVector<Value> held; ///< rows of all groups
};

} // namespace

//===----------------------------------------------------------------------===//
// Amaxes
//===----------------------------------------------------------------------===//

unsigned BlockTiles::countAmaxes() const {
  unsigned count = 0;
  for (const TileScaling &scaling : work.scalings)
    if (isMeasured(scaling))
      count += std::max<int64_t>(kGroup / scaling.rows, 1) * std::max<int64_t>(kChunk / scaling.columns, 1);
  return count;
}

/// Raises the amaxes of a thread's blocks, of all scalings, to those of its elements of row `r` of a group.
void BlockTiles::measureRow(Expr row, unsigned r, ArrayRef<Value> wide, MutableArrayRef<Value> amaxes) {
  SmallVector<Expr> magnitudes;
  for (auto [j, value] : llvm::enumerate(wide)) {
    Expr magnitude = abs(b.expr(value));
    std::optional<Expr> live = both(isRow(row), isColumn(firstColumn + j));
    magnitudes.push_back(live ? select(*live, magnitude, 0) : magnitude);
  }
  for (const TileScaling &scaling : work.scalings) {
    if (!isMeasured(scaling))
      continue;
    int64_t ofRow = std::max<int64_t>(kChunk / scaling.columns, 1),
            ofColumn = std::max<int64_t>(kGroup / scaling.rows, 1);
    for (int64_t j = 0; j < kChunk; ++j) {
      Value &amax =
          amaxes[r / std::min(scaling.rows, kGroup) * ofRow + j / std::min(scaling.columns, kChunk)];
      amax = larger(b.expr(amax), magnitudes[j]).getValue(); // never NaN, as `amax` is not
    }
    amaxes = amaxes.drop_front(ofRow * ofColumn);
  }
}

/// Computes 4 rows: returns their elements, the amaxes of the thread's blocks, and the sums over rows.
SmallVector<Value> BlockTiles::computeGroup(Expr group, ValueRange sums) {
  Expr firstRow = tileRow + group * kGroup;
  unsigned numAmaxes = countAmaxes();
  auto compute = [&]() -> SmallVector<Value> {
    std::array<SmallVector<Chunk>, kGroup> loaded; // all loads before the first store
    for (unsigned r = 0; r < kGroup; ++r)
      loaded[r] = loadRow(firstRow + r);
    SmallVector<Value> values, amaxes(numAmaxes, b.real(0.0f).getValue()), newSums(sums);
    for (unsigned r = 0; r < kGroup; ++r) {
      SmallVector<Chunk> yielded = runRegion(firstRow + r, loaded[r]);
      if (!work.extras.empty())
        storeExtras(firstRow + r, yielded, newSums);
      measureRow(firstRow + r, r, widenChunk(yielded[0]), amaxes);
      if (!work.onlyMeasures)
        llvm::append_range(values, hold(yielded[0]));
    }
    llvm::append_range(values, amaxes);
    llvm::append_range(values, newSums);
    return values;
  };
  auto skip = [&]() -> SmallVector<Value> {
    unsigned count = work.onlyMeasures ? 0 : countHeld() * kGroup;
    SmallVector<Value> values(count, zeroHeld());
    values.append(numAmaxes, b.real(0.0f).getValue());
    llvm::append_range(values, sums);
    return values;
  };
  std::optional<Expr> live = isGroup(firstRow);
  return live ? ifElse(*live, compute, skip) : compute();
}

/// Combines the amaxes of lanes with elements of the same blocks, and writes them to the table. While a lane
/// has several, it keeps half of them and gives the other half away.
void BlockTiles::combine(const TileScaling &scaling, const BlockTable &table, Expr group,
                         ArrayRef<Value> amaxes) {
  SmallVector<int64_t> lanes; // bits in which the numbers of these lanes differ
  for (int64_t bit = 1; bit * kChunk < scaling.columns; bit *= 2)
    lanes.push_back(bit);
  if (scaling.rows >= kPartRows)
    lanes.push_back(kChunks);
  auto values = llvm::map_to_vector(amaxes, [&](Value amax) { return b.expr(amax); });
  Expr first = b.number(0); // the number of the first amax that the lane keeps
  std::optional<Expr> writes;
  for (int64_t bit : lanes) {
    Expr isUpper = (b.lane() & bit) == bit;
    size_t half = values.size() / 2;
    if (half == 0) {
      values[0] = larger(values[0], b.fromLane(values[0], bit));
      writes = both(writes, !isUpper);
      continue;
    }
    for (size_t i = 0; i < half; ++i) {
      Expr given = select(isUpper, values[i], values[half + i]),
           kept = select(isUpper, values[half + i], values[i]);
      values[i] = larger(kept, b.fromLane(given, bit));
    }
    values.resize(half, first);
    first = first + select(isUpper, b.number(half), 0);
  }
  int64_t ofRow = table.countOfThread();
  auto place = [&](int64_t i) {
    Expr number = first + i;
    Expr part = scaling.rows >= kPartRows ? group / 2 : group * table.countOfGroup() + number / ofRow;
    return table.find(part, chunk, number % ofRow);
  };
  when(writes, [&] {
    if (scaling.columns == 1 && values.size() == 4)
      return table.storeFour(values, place(0));
    for (auto [i, value] : llvm::enumerate(values))
      table.store(value, place(i));
  });
}

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

/// Computes block number `block` of the tile: adds its amax to that of a block in several tiles, or computes
/// its scale.
void BlockTiles::finishBlock(const TileScaling &scaling, const BlockTable &table, Expr block) {
  const TileSpace &counts = scaling.counts;
  Expr row = block / table.countColumns(), column = block % table.countColumns();
  const TileStrides &strides = *scaling.scaleInv.front().strides;
  if (scaling.columns == 1 && (strides.column.isDynamic() || strides.row.known < strides.column.known)) {
    // Adjacent threads write adjacent scale_inv: those above each other of 8 columns.
    int64_t above = kTile / scaling.rows;
    row = block / 8 % above;
    column = block / (8 * above) * 8 + block % 8;
  }
  Expr chunkOfBlock = column / table.countOfThread(), j = column % table.countOfThread();
  if (scaling.columns > kChunk)
    chunkOfBlock = column * (scaling.columns / kChunk);
  auto place = [&](int64_t part) { return table.find(row * table.countParts() + part, chunkOfBlock, j); };
  Expr rowOfAll = scaling.spansRows ? b.number(0) : tileRow / scaling.rows + row;
  Expr columnOfAll = scaling.spansColumns ? b.number(0) : tileColumn / scaling.columns + column;
  Expr rowsOfBlocks = counts.rows;
  if (ShapedType::isDynamic(counts.rows))
    rowsOfBlocks = (rows + (scaling.rows - 1)) / scaling.rows;
  Expr isBlock = (rowOfAll < rowsOfBlocks) & (columnOfAll < counts.columns);
  if (std::optional<Expr> live = isBatch())
    isBlock = isBlock & *live;
  Value inMemory;
  if (scaling.isSpanning()) {
    Expr before = widen(batch) * (rowsOfBlocks.isNumber() ? rowsOfBlocks : widen(rowsOfBlocks));
    Expr number = (before + widen(rowOfAll)) * counts.columns + widen(columnOfAll);
    inMemory = b.at(pointers[scaling.amaxes.argument], number * 4);
  }
  Expr amax = b.real(0.0f);
  if (isMeasured(scaling))
    for (int64_t part = 0; part < table.countParts(); ++part)
      amax = larger(amax, table.load(place(part)));
  else
    amax = b.expr(b.whenElse(
        isBlock, [&] { return SmallVector<Value>{b.load(b.getF32Type(), inMemory).getValue()}; },
        amax.getValue())[0]);
  if (work.onlyMeasures) {
    b.when(isBlock, [&] {
      LLVM::AtomicRMWOp::create(b, LLVM::AtomicBinOp::umax, inMemory, toBits(amax).getValue(),
                                LLVM::AtomicOrdering::monotonic, "device");
    });
    return;
  }
  Expr scale = buildScale(amax);
  table.store(scale, place(0));
  // A block in several tiles is written by the first one.
  if (scaling.spansRows)
    isBlock = isBlock & (tileRow == 0);
  if (scaling.spansColumns)
    isBlock = isBlock & (tileColumn == 0);
  b.when(isBlock, [&] { storeScaleInv(scaling, scale, rowOfAll, columnOfAll); });
}

/// Computes all blocks of the tile, a thread for each. `worker` is the number of the thread.
void BlockTiles::computeScales(const TileScaling &scaling, const BlockTable &table, Expr worker) {
  int64_t count = table.countBlocks();
  for (int64_t first = 0; first < count; first += kTileThreads) {
    Expr block = worker + first;
    std::optional<Expr> live;
    if (count - first < kTileThreads)
      live = block < count;
    when(live, [&] { finishBlock(scaling, table, block); });
  }
}

/// Returns the scales of the thread's columns in row `r` of a group.
SmallVector<Expr> BlockTiles::loadScales(const BlockTable &table, Expr group, unsigned r) {
  int64_t parts = table.countParts(), ofGroup = table.countOfGroup(), ofRow = table.countOfThread();
  Expr part =
      table.getPartRows() == kPartRows ? group / 2 / parts * parts : group * ofGroup + r / (kGroup / ofGroup);
  SmallVector<Expr> scales;
  if (ofRow == kChunk) {
    scales = table.loadFour(table.find(part, chunk, b.number(0)));
    llvm::append_range(scales, table.loadFour(table.find(part, chunk, b.number(4))));
    return scales;
  }
  for (int64_t j = 0; j < ofRow; ++j)
    scales.append(kChunk / ofRow, table.load(table.find(part, chunk, b.number(j))));
  return scales;
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

/// Casts all elements of the thread with the scales of the table.
void BlockTiles::castTile(const TileScaling &scaling, const BlockTable &table) {
  unsigned perRow = countHeld();
  QuantizeBlocksOp op = work.blocks;
  for (int64_t loop = 0; loop < kLoops; ++loop) {
    Expr group = getGroup(b.number(loop)), firstRow = tileRow + group * kGroup;
    SmallVector<Words> rows;
    for (unsigned r = 0; r < kGroup; ++r) {
      Chunk wide = widenHeld(ArrayRef(held).slice((loop * kGroup + r) * perRow, perRow));
      rows.push_back(encode(firstRow + r, wide, loadScales(table, group, r), op.getFormat()));
    }
    if (scaling.data)
      when(isGroup(firstRow), [&] {
        for (auto [r, words] : llvm::enumerate(rows))
          storeWordsOfRow(*scaling.data, firstRow + r, words);
      });
    if (scaling.transposed)
      storeWords(group, rows);
  }
  if (scaling.transposed)
    storeColumns(*scaling.transposed);
}

void BlockTiles::build() {
  SmallVector<BlockTable> tables;
  for (const TileScaling &scaling : work.scalings)
    tables.emplace_back(b, scaling, tables.size());
  if (!work.onlyMeasures &&
      llvm::any_of(work.scalings, [](const TileScaling &scaling) { return scaling.transposed.has_value(); }))
    tile = b.staticShared(MemRefType::get({kTile, kGroups}, b.getI32Type()));
  // Each iteration appends the elements of its group and drops those of the group before the last one.
  unsigned perGroup = work.onlyMeasures ? 0 : countHeld() * kGroup, numAmaxes = countAmaxes();
  SmallVector<Value> start(perGroup * kLoops, zeroHeld());
  start.append(countSums() * kChunk, b.real(0.0f).getValue());
  SmallVector<Value> carried = b.loop(b.number(0), b.number(kLoops), start, [&](Expr i, ValueRange before) {
    Expr group = getGroup(i);
    SmallVector<Value> values = computeGroup(group, before.drop_front(perGroup * kLoops));
    ArrayRef<Value> amaxes = ArrayRef(values).slice(perGroup, numAmaxes);
    for (auto [scaling, table] : llvm::zip_equal(work.scalings, tables)) {
      if (!isMeasured(scaling))
        continue;
      size_t count = table.countOfThread() * table.countOfGroup();
      combine(scaling, table, group, amaxes.take_front(count));
      amaxes = amaxes.drop_front(count);
    }
    SmallVector<Value> next(before.slice(perGroup, perGroup * (kLoops - 1)));
    llvm::append_range(next, ArrayRef(values).take_front(perGroup));
    llvm::append_range(next, ArrayRef(values).drop_front(perGroup + numAmaxes));
    return next;
  });
  held.assign(carried.begin(), carried.begin() + perGroup * kLoops);
  storeSums(ArrayRef(carried).drop_front(perGroup * kLoops));

  b.barrier();
  int64_t busy = 0; // threads that have a block already
  for (auto [scaling, table] : llvm::zip_equal(work.scalings, tables)) {
    computeScales(scaling, table, busy == 0 ? thread : (thread + (kTileThreads - busy)) % kTileThreads);
    busy = (busy + table.countBlocks()) % kTileThreads;
  }
  if (work.onlyMeasures)
    return;
  b.barrier();
  bool isTileUsed = false;
  for (auto [scaling, table] : llvm::zip_equal(work.scalings, tables)) {
    if (scaling.transposed && isTileUsed)
      b.barrier();
    castTile(scaling, table);
    isTileUsed |= scaling.transposed.has_value();
  }
}

void fp8::buildBlockTiles(KernelBuilder &b, const TileWork &work) { BlockTiles(b, work).build(); }
