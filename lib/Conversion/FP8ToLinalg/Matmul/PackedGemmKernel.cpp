// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The micro-kernel: a register tile of sums, vectors of B times one element of A per fused
// multiply-add, K in increasing order; or dot products of pairs of bf16 elements. The sums of a block of K
// may have scales of their own. One private function per module, tile, and kind of sum.

#include "PackedGemmDetail.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

using namespace mlir;
using namespace fp8;

/// Elements of a panel of B that stay in the L1 cache, 32 KiB or more, while the panels of A run past.
static constexpr int64_t kBlockElements = 8192;

/// Indices of K in an iteration of the innermost loop, so that few of its instructions count. A core that
/// runs two threads starts three instructions of each in a clock, and the multiply-adds, their loads and
/// broadcasts alone are more than that.
static constexpr int64_t kUnrolled = 8;

/// The most elements of B after which a tile prefetches one line of what comes next, and those of a line.
static constexpr int64_t kPrefetchElements = 128, kLineElements = 16;

namespace {
/// Emits the sums of register tiles, those at one panel of B, for one block of K.
class TileBuilder {
public:
  TileBuilder(Location loc, ValueRange operands, const BlockPanels &blocks, const PackedGemmTile &tile,
              const PackedMatmulOptions &options)
      : loc(loc), a(operands[0]), b(operands[1]), c(operands[2]), before(operands[3]), blocks(blocks),
        tile(tile), part(partLength(blocks, options)), bf16Dots(options.bf16Dots),
        lanes(bf16Dots ? options.registers.lanes : tile.columns) {}

  /// Returns the number of elements of a panel, along K, that are summed from zero; 0 if all are one sum.
  static int64_t partLength(const BlockPanels &blocks, const PackedMatmulOptions &options) {
    int64_t products = blocks.length ? blocks.length : options.split ? kSplitLength : 0;
    return options.bf16Dots ? products / 2 : products;
  }

  /// Goes to panel `column` of B and the block [begin, end) of K, which begins with a part where parts are
  /// summed from zero.
  void start(OpBuilder &builder, Value column, Value begin, Value end);
  /// The tile at panel `row` of A.
  void build(OpBuilder &builder, Value row);

private:
  Value index(OpBuilder &builder, int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value sum(OpBuilder &builder, Value x, Value y) { return arith::AddIOp::create(builder, loc, x, y); }
  Value product(OpBuilder &builder, Value x, int64_t factor) {
    return arith::MulIOp::create(builder, loc, x, index(builder, factor));
  }
  /// One of `panels` as a row of elements.
  Value viewPanel(OpBuilder &builder, Value panels, Value number);
  SmallVector<Value> zeros(OpBuilder &builder);
  /// The sums of the blocks before, zeros for the first block. Prefetches the sums that come next.
  SmallVector<Value> loadSums(OpBuilder &builder, Value isFirst);
  /// The vectors of one row of a tile that begins at column `first` of `matrix`.
  SmallVector<Value> loadVectors(OpBuilder &builder, Value matrix, Value position, Value first);
  Value multiplyAdd(OpBuilder &builder, Value left, Value right, Value sum);
  /// Adds the matmuls at one index of K, which begins at element `ofA` of the panel of A, `ofB` of that of
  /// B.
  SmallVector<Value> addMatmuls(OpBuilder &builder, Value ofA, Value ofB, ValueRange sums);
  /// Adds the matmuls at `count` indices of K; prefetches from element `next` of B on, unless that is null.
  SmallVector<Value> addTogether(OpBuilder &builder, int64_t count, Value ofA, Value ofB, Value next,
                                 ValueRange sums);
  SmallVector<Value> accumulate(OpBuilder &builder, Value begin, Value end, ValueRange sums);
  void findAhead(OpBuilder &builder);
  /// Divides the block of B that comes next, from element `first` of its panel on, among the panels of A.
  void divideAhead(OpBuilder &builder, Value first);
  /// Elements of B between two prefetches: the tiles of a block of the least rows prefetch all that comes
  /// next, and an iteration has one at least.
  int64_t prefetchInterval() const {
    int64_t tiles = std::max<int64_t>(kLeastRows / tile.rows, 1);
    return std::min({kPrefetchElements,
                     static_cast<int64_t>(llvm::bit_floor<uint64_t>(tiles)) * kLineElements,
                     kUnrolled * tile.columns});
  }
  /// Adds `sums`, row `i` of those of a part, to the sums `before` of the parts before it.
  SmallVector<Value> addBlock(OpBuilder &builder, int64_t i, ValueRange before, ValueRange sums);
  void storeSums(OpBuilder &builder, Value isFirst, ValueRange sums);
  /// Sums the parts of the block from zero, one after the other, and adds each to the sums.
  void buildParts(OpBuilder &builder);
  /// Prefetches the sums of the tile that comes next, which the tile of the next row is, or of the next
  /// column.
  void prefetchNext(OpBuilder &builder);
  /// Whether the matmuls from index `begin` of K on are the first of their sums.
  Value buildIsFirst(OpBuilder &builder, Value begin);

  Location loc;
  Value a, b, c, before;
  BlockPanels blocks; ///< their parameters in the function
  PackedGemmTile tile;
  int64_t part; ///< as of partLength
  bool bf16Dots;
  int64_t lanes; ///< of each vector of sums
  /// The elements of B that come after this panel: they are in memory or the L3 cache the first time. A tile
  /// prefetches from element first + row · perTile of `panel` on, `step` elements at a time.
  struct {
    Value panel, first, perTile, step;
  } ahead;
  Value begin, end; ///< of the block of K
  Value row, column, block, firstRow, firstColumn, rows;
  Value panelA, panelB; ///< as rows of elements
};
} // namespace

SmallVector<Value> TileBuilder::zeros(OpBuilder &builder) {
  auto type = VectorType::get(lanes, builder.getF32Type());
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  return SmallVector<Value>(tile.rows * tile.columns / lanes, zero);
}

SmallVector<Value> TileBuilder::loadSums(OpBuilder &builder, Value isFirst) {
  SmallVector<Value> start = zeros(builder);
  auto branch = scf::IfOp::create(builder, loc, ValueRange(start).getTypes(), isFirst, true);
  OpBuilder first = OpBuilder::atBlockBegin(branch.thenBlock());
  scf::YieldOp::create(first, loc, start);
  OpBuilder later = OpBuilder::atBlockBegin(branch.elseBlock());
  Value lastRow = arith::SubIOp::create(later, loc, rows, index(later, 1));
  SmallVector<Value> sums;
  for (int64_t i = 0; i < tile.rows; ++i) {
    Value position = arith::AddIOp::create(later, loc, firstRow, index(later, i));
    Value valid = arith::MinSIOp::create(later, loc, position, lastRow);
    llvm::append_range(sums, loadVectors(later, c, valid, firstColumn));
  }
  prefetchNext(later);
  scf::YieldOp::create(later, loc, sums);
  return branch.getResults();
}

SmallVector<Value> TileBuilder::loadVectors(OpBuilder &builder, Value matrix, Value position, Value first) {
  auto type = VectorType::get(lanes, builder.getF32Type());
  SmallVector<Value> vectors;
  for (int64_t lane = 0; lane < tile.columns; lane += lanes) {
    Value column = arith::AddIOp::create(builder, loc, first, index(builder, lane));
    vectors.push_back(vector::LoadOp::create(builder, loc, type, matrix, ValueRange{position, column}));
  }
  return vectors;
}

Value TileBuilder::multiplyAdd(OpBuilder &builder, Value left, Value right, Value sum) {
  if (!bf16Dots)
    return vector::FMAOp::create(builder, loc, left, right, sum);
  auto type = VectorType::get(2 * lanes, builder.getBF16Type());
  Value pairs[] = {vector::BitCastOp::create(builder, loc, type, left),
                   vector::BitCastOp::create(builder, loc, type, right)};
  return x86vector::DotBF16Op::create(builder, loc, sum.getType(), sum, pairs[0], pairs[1]);
}

Value TileBuilder::viewPanel(OpBuilder &builder, Value panels, Value number) {
  OpFoldResult zero = builder.getIndexAttr(0), one = builder.getIndexAttr(1);
  int64_t width = cast<MemRefType>(panels.getType()).getShape().back();
  OpFoldResult depth = memref::getMixedSize(builder, loc, panels, 1);
  OpFoldResult offsets[] = {number, zero, zero}, sizes[] = {one, depth, builder.getIndexAttr(width)};
  OpFoldResult strides[] = {one, one, one};
  int64_t shape[] = {ShapedType::kDynamic, width};
  auto type = memref::SubViewOp::inferRankReducedResultType(shape, cast<MemRefType>(panels.getType()),
                                                            offsets, sizes, strides);
  Value panel = memref::SubViewOp::create(builder, loc, type, panels, offsets, sizes, strides);
  return memref::CollapseShapeOp::create(builder, loc, panel, ArrayRef<ReassociationIndices>{{0, 1}});
}

SmallVector<Value> TileBuilder::addMatmuls(OpBuilder &builder, Value ofA, Value ofB, ValueRange sums) {
  auto type = cast<VectorType>(sums.front().getType());
  SmallVector<Value> right;
  for (int64_t lane = 0; lane < tile.columns; lane += lanes)
    right.push_back(
        vector::LoadOp::create(builder, loc, type, panelB, sum(builder, ofB, index(builder, lane))));
  SmallVector<Value> next;
  for (int64_t i = 0; i < tile.rows; ++i) {
    Value left = memref::LoadOp::create(builder, loc, panelA, sum(builder, ofA, index(builder, i)));
    Value spread = vector::BroadcastOp::create(builder, loc, type, left);
    for (Value vector : right)
      next.push_back(multiplyAdd(builder, spread, vector, sums[next.size()]));
  }
  return next;
}

SmallVector<Value> TileBuilder::addTogether(OpBuilder &builder, int64_t count, Value ofA, Value ofB,
                                            Value next, ValueRange sums) {
  SmallVector<Value> added(sums);
  for (int64_t i = 0; i < count; ++i) {
    Value elements[] = {sum(builder, ofA, index(builder, i * tile.rows)),
                        sum(builder, ofB, index(builder, i * tile.columns))};
    if (next && i * tile.columns % prefetchInterval() == 0) {
      Value at[] = {ahead.panel, index(builder, 0), next}; // a panel is contiguous
      memref::PrefetchOp::create(builder, loc, b, at, /*isWrite=*/false, /*localityHint=*/2,
                                 /*isDataCache=*/true);
      next = sum(builder, next, ahead.step);
    }
    added = addMatmuls(builder, elements[0], elements[1], added);
  }
  return added;
}

/// Several k in each iteration, so that their addresses differ by constants; then those that remain.
SmallVector<Value> TileBuilder::accumulate(OpBuilder &builder, Value first, Value last, ValueRange sums) {
  Value rest = arith::RemUIOp::create(builder, loc, arith::SubIOp::create(builder, loc, last, first),
                                      index(builder, kUnrolled));
  Value middle = arith::SubIOp::create(builder, loc, last, rest);
  auto addRange = [&](Value from, Value to, int64_t count, Value next, ValueRange start) {
    SmallVector<Value> carried{product(builder, from, tile.rows)};
    if (next)
      carried.push_back(next);
    llvm::append_range(carried, start);
    Value distance = next ? product(builder, ahead.step, count * tile.columns / prefetchInterval()) : Value();
    auto loop =
        scf::ForOp::create(builder, loc, product(builder, from, tile.columns),
                           product(builder, to, tile.columns), index(builder, count * tile.columns), carried);
    OpBuilder body = OpBuilder::atBlockEnd(loop.getBody());
    ValueRange old = loop.getRegionIterArgs();
    SmallVector<Value> results{sum(body, old[0], index(body, count * tile.rows))};
    if (next)
      results.push_back(sum(body, old[1], distance));
    ValueRange before = old.take_back(start.size());
    llvm::append_range(
        results, addTogether(body, count, old[0], loop.getInductionVar(), next ? old[1] : Value(), before));
    scf::YieldOp::create(body, loc, results);
    return SmallVector<Value>(loop.getResults().take_back(start.size()));
  };
  Value done = product(builder, arith::SubIOp::create(builder, loc, first, begin), tile.columns);
  Value interval = index(builder, prefetchInterval());
  Value own = sum(builder, ahead.first, arith::MulIOp::create(builder, loc, row, ahead.perTile));
  Value steps = arith::DivUIOp::create(builder, loc, done, interval);
  Value next = sum(builder, own, arith::MulIOp::create(builder, loc, steps, ahead.step));
  SmallVector<Value> added = addRange(first, middle, kUnrolled, next, sums);
  return addRange(middle, last, 1, /*next=*/Value(), added);
}

/// After the last panel comes the next block of K of the first one, in the end what lies behind the panels.
void TileBuilder::findAhead(OpBuilder &builder) {
  Value zero = index(builder, 0);
  Value next = arith::AddIOp::create(builder, loc, column, index(builder, 1));
  Value panels = memref::DimOp::create(builder, loc, b, 0), depth = memref::DimOp::create(builder, loc, b, 1);
  Value isLast = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, next, panels);
  Value hasBlock = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, end, depth);
  Value wraps = arith::AndIOp::create(builder, loc, isLast, hasBlock);
  ahead.panel = arith::SelectOp::create(builder, loc, wraps, zero, next);
  Value onward = arith::SelectOp::create(builder, loc, wraps, end, begin);
  Value leaves = arith::XOrIOp::create(builder, loc, wraps, isLast);
  Value firstK = arith::SelectOp::create(builder, loc, leaves, zero, onward);
  divideAhead(builder, product(builder, firstK, tile.columns));
}

/// Each tile prefetches a part, a line or less at a time: if the first tile prefetched all, its loads would
/// wait while memory sends the lines.
void TileBuilder::divideAhead(OpBuilder &builder, Value first) {
  Value tiles = memref::DimOp::create(builder, loc, a, 0);
  Value elements = product(builder, arith::SubIOp::create(builder, loc, end, begin), tile.columns);
  ahead.first = first;
  ahead.perTile = arith::CeilDivUIOp::create(builder, loc, elements, tiles);
  ahead.step = arith::CeilDivUIOp::create(builder, loc, index(builder, prefetchInterval()), tiles);
}

SmallVector<Value> TileBuilder::addBlock(OpBuilder &builder, int64_t i, ValueRange before, ValueRange sums) {
  SmallVector<Value> added;
  if (!blocks.length) {
    for (auto [total, sum] : llvm::zip_equal(before, sums))
      added.push_back(arith::AddFOp::create(builder, loc, total, sum));
    return added;
  }
  auto type = cast<VectorType>(sums.front().getType());
  Value ofRow = memref::LoadOp::create(builder, loc, blocks.a, ValueRange{row, block, index(builder, i)});
  Value first = vector::BroadcastOp::create(builder, loc, type, ofRow);
  for (auto [v, total, sum] : llvm::enumerate(before, sums)) {
    Value at[] = {column, block, index(builder, v * lanes)};
    Value second = vector::LoadOp::create(builder, loc, type, blocks.b, ValueRange(at));
    Value factors[] = {blocks.rowsFirst ? first : second, blocks.rowsFirst ? second : first};
    Value scaled = arith::MulFOp::create(builder, loc, sum, factors[0]);
    added.push_back(vector::FMAOp::create(builder, loc, scaled, factors[1], total));
  }
  return added;
}

/// The last panel of A may have more rows than c.
void TileBuilder::storeSums(OpBuilder &builder, Value isFirst, ValueRange sums) {
  int64_t vectors = tile.columns / lanes;
  for (int64_t i = 0; i < tile.rows; ++i) {
    Value position = arith::AddIOp::create(builder, loc, firstRow, index(builder, i));
    Value isValid = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, position, rows);
    auto valid = scf::IfOp::create(builder, loc, isValid, /*withElseRegion=*/false);
    OpBuilder body = OpBuilder::atBlockTerminator(valid.thenBlock());
    ValueRange stored = sums.slice(i * vectors, vectors);
    if (part) {
      auto branch = scf::IfOp::create(body, loc, stored.getTypes(), isFirst, true);
      OpBuilder first = OpBuilder::atBlockBegin(branch.thenBlock());
      SmallVector<Value> zero(ArrayRef(zeros(first)).take_front(vectors));
      // Without scales the first block is the sum, bit for bit: 0 + -0 would be 0.
      SmallVector<Value> begun =
          blocks.length ? addBlock(first, i, zero, stored) : SmallVector<Value>(stored);
      scf::YieldOp::create(first, loc, begun);
      OpBuilder later = OpBuilder::atBlockBegin(branch.elseBlock());
      scf::YieldOp::create(later, loc,
                           addBlock(later, i, loadVectors(later, c, position, firstColumn), stored));
      stored = branch.getResults();
    }
    for (auto [v, sum] : llvm::enumerate(stored)) {
      Value at[] = {position, arith::AddIOp::create(body, loc, firstColumn, index(body, v * lanes))};
      vector::StoreOp::create(body, loc, sum, c, ValueRange(at));
    }
  }
}

void TileBuilder::prefetchNext(OpBuilder &builder) {
  Value next = arith::AddIOp::create(builder, loc, firstRow, index(builder, tile.rows));
  Value nextColumn = arith::AddIOp::create(builder, loc, firstColumn, index(builder, tile.columns));
  Value isInside = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, next, rows);
  next = arith::SelectOp::create(builder, loc, isInside, next, index(builder, 0));
  nextColumn = arith::SelectOp::create(builder, loc, isInside, firstColumn, nextColumn);
  for (int64_t i = 0; i < tile.rows; ++i)
    for (int64_t lane = 0; lane < tile.columns; lane += kLineElements) {
      Value at[] = {arith::AddIOp::create(builder, loc, next, index(builder, i)),
                    arith::AddIOp::create(builder, loc, nextColumn, index(builder, lane))};
      memref::PrefetchOp::create(builder, loc, c, at, /*isWrite=*/true, /*localityHint=*/3,
                                 /*isDataCache=*/true);
    }
}

Value TileBuilder::buildIsFirst(OpBuilder &builder, Value begin) {
  Value summands = arith::AddIOp::create(builder, loc, begin, before);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, summands, index(builder, 0));
}

/// The parts of a block one after the other, while the sums of the tile are in the L1 cache. Without matmuls
/// there is one part, which stores zeros.
void TileBuilder::buildParts(OpBuilder &builder) {
  Value isFirstBlock = buildIsFirst(builder, begin);
  auto branch = scf::IfOp::create(builder, loc, isFirstBlock, /*withElseRegion=*/true);
  OpBuilder later = OpBuilder::atBlockBegin(branch.elseBlock());
  prefetchNext(later);
  Value least = arith::AddIOp::create(builder, loc, begin, index(builder, 1));
  Value last = arith::MaxSIOp::create(builder, loc, end, least);
  auto loop = scf::ForOp::create(builder, loc, begin, last, index(builder, part));
  OpBuilder body = OpBuilder::atBlockTerminator(loop.getBody());
  Value first = loop.getInductionVar();
  Value whole = arith::AddIOp::create(body, loc, first, index(body, part));
  block = arith::DivUIOp::create(body, loc, first, index(body, part));
  Value sumEnd = arith::MinSIOp::create(body, loc, whole, end);
  storeSums(body, buildIsFirst(body, first), accumulate(body, first, sumEnd, zeros(body)));
}

void TileBuilder::start(OpBuilder &builder, Value columnPanel, Value from, Value to) {
  begin = from;
  end = to;
  column = columnPanel;
  firstColumn = product(builder, column, tile.columns);
  rows = memref::DimOp::create(builder, loc, c, 0);
  panelB = viewPanel(builder, b, column);
  findAhead(builder);
}

void TileBuilder::build(OpBuilder &builder, Value rowPanel) {
  row = rowPanel;
  firstRow = product(builder, row, tile.rows);
  panelA = viewPanel(builder, a, row);
  if (part)
    return buildParts(builder);
  Value isFirst = buildIsFirst(builder, begin);
  SmallVector<Value> before = loadSums(builder, isFirst);
  storeSums(builder, isFirst, accumulate(builder, begin, end, before));
}

/// Returns the length of a block of K, in elements of a panel: blocks of about equal length, which are whole
/// parts of `part` elements.
static Value buildBlockLength(OpBuilder &builder, Location loc, Value end, int64_t part,
                              const PackedGemmTile &tile) {
  Value unit = arith::ConstantIndexOp::create(builder, loc, part);
  int64_t mostParts = std::max<int64_t>(kBlockElements / tile.columns / part, 1);
  Value most = arith::ConstantIndexOp::create(builder, loc, mostParts);
  Value parts = arith::CeilDivUIOp::create(builder, loc, end, unit);
  Value count = arith::CeilDivUIOp::create(builder, loc, parts, most);
  return arith::MulIOp::create(builder, loc, arith::CeilDivUIOp::create(builder, loc, parts, count), unit);
}

/// Writes zeros to the sums `c` of matmuls without summands, of which no block has a scale.
static void clearEmptySums(OpBuilder &builder, Location loc, Value c, Value depth) {
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value isEmpty = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, depth, zero);
  auto branch = scf::IfOp::create(builder, loc, isEmpty, /*withElseRegion=*/false);
  OpBuilder then = OpBuilder::atBlockTerminator(branch.thenBlock());
  linalg::FillOp::create(then, loc,
                         arith::ConstantOp::create(then, loc, then.getF32FloatAttr(0.0f)).getResult(), c);
}

/// Blocks of K outside, so that a block of a panel of B stays in the L1 cache while all panels of A run
/// past it, and their block of K in the L2 cache.
static void buildBody(OpBuilder &builder, ValueRange operands, const BlockPanels &blocks,
                      const PackedMatmulOptions &options, const PackedGemmTile &tile) {
  Location loc = builder.getUnknownLoc();
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value rows = memref::DimOp::create(builder, loc, operands[0], zero);
  Value depth = memref::DimOp::create(builder, loc, operands[0], one);
  Value columns = memref::DimOp::create(builder, loc, operands[1], zero);
  Value end = depth;
  if (blocks.length)
    clearEmptySums(builder, loc, operands[2], depth);
  else
    end = arith::MaxSIOp::create(builder, loc, depth, one); // without matmuls the sums are zero
  int64_t part = TileBuilder::partLength(blocks, options);
  Value length = buildBlockLength(builder, loc, end, std::max<int64_t>(part, 1), tile);
  auto panels = [&](OpBuilder &body, Location, ValueRange position) {
    Value whole = arith::AddIOp::create(body, loc, position[0], length);
    Value last = arith::MinSIOp::create(body, loc, whole, depth);
    TileBuilder tiles(loc, operands, blocks, tile, options);
    tiles.start(body, position[1], position[0], last);
    auto loop = scf::ForOp::create(body, loc, zero, rows, one);
    OpBuilder inside = OpBuilder::atBlockTerminator(loop.getBody());
    tiles.build(inside, loop.getInductionVar());
  };
  scf::buildLoopNest(builder, loc, {zero, zero}, {end, columns}, {length, one}, panels);
}

/// Returns the name of the function for these parameters.
static std::string nameOf(const BlockPanels &blocks, const PackedMatmulOptions &options,
                          const PackedGemmTile &tile) {
  std::string name = "fp8_cpu_gemm_";
  llvm::raw_string_ostream out(name);
  out << (options.bf16Dots ? "bf16_" : "f32_") << tile.rows << "x" << tile.columns;
  if (blocks.length)
    out << "_blocks_" << blocks.length << (blocks.rowsFirst ? "" : "_columns_first");
  else if (options.split)
    out << "_split";
  return name;
}

func::CallOp fp8::buildGemm(OpBuilder &builder, Location loc, Value a, Value b, Value c, Value before,
                            const BlockPanels &blocks, const PackedMatmulOptions &options,
                            const PackedGemmTile &tile) {
  Type f32 = builder.getF32Type();
  Type rows = getStridedType(f32, 3, tile.rows), columns = getStridedType(f32, 3, tile.columns);
  SmallVector<Type> inputs{rows, columns, getStridedType(f32, 2), builder.getIndexType()};
  SmallVector<Value> operands{a, b, c, before};
  if (blocks.length) {
    inputs.append({rows, columns});
    operands.append({blocks.a, blocks.b});
  }
  auto build = [&](OpBuilder &body, ValueRange arguments) {
    BlockPanels parameters = blocks;
    if (blocks.length) {
      parameters.a = arguments[4];
      parameters.b = arguments[5];
    }
    buildBody(body, arguments, parameters, options, tile);
  };
  func::FuncOp gemm = getOrCreateFunction(builder, nameOf(blocks, options, tile), inputs, build);
  return callFunction(builder, loc, gemm, operands);
}
