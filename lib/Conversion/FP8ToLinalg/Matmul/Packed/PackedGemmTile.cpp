// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code of a register tile.

#include "PackedGemmTile.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

using namespace mlir;
using namespace fp8;

/// Indices of K in an iteration of the innermost loop, so that few of its instructions count. A core that
/// runs two threads starts three instructions of each in a clock, and the multiply-adds, their loads and
/// broadcasts alone are more than that.
static constexpr int64_t kUnrolled = 8;

/// The most elements of B after which a tile prefetches one line of what comes next, and those of a line.
static constexpr int64_t kPrefetchElements = 128, kLineElements = 16;

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

SmallVector<Value> TileBuilder::addProducts(OpBuilder &builder, Value ofA, Value ofB, ValueRange sums) {
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

int64_t TileBuilder::prefetchInterval() const {
  int64_t tiles = std::max<int64_t>(kLeastRows / tile.rows, 1);
  return std::min({kPrefetchElements, static_cast<int64_t>(llvm::bit_floor<uint64_t>(tiles)) * kLineElements,
                   kUnrolled * tile.columns});
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
    added = addProducts(builder, elements[0], elements[1], added);
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

/// The parts of a block one after the other, while the sums of the tile are in the L1 cache. Without products
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
  panelB = viewPanel(builder, loc, b, column);
  findAhead(builder);
}

void TileBuilder::build(OpBuilder &builder, Value rowPanel) {
  row = rowPanel;
  firstRow = product(builder, row, tile.rows);
  panelA = viewPanel(builder, loc, a, row);
  if (part)
    return buildParts(builder);
  Value isFirst = buildIsFirst(builder, begin);
  SmallVector<Value> before = loadSums(builder, isFirst);
  storeSums(builder, isFirst, accumulate(builder, begin, end, before));
}
