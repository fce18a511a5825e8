// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The micro-kernel: a register tile of sums, vectors of B times one element of A per fused
// multiply-add, K in increasing order. One private function per module, tile, and kind of sum.

#include "PackedGemmDetail.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp8;

/// Elements of a panel of B that stay in the L1 cache, 32 KiB or more, while the panels of A run past.
static constexpr int64_t kBlockElements = 8192;

/// The f32 elements of a cache line.
static constexpr int64_t kLineElements = 16;

namespace {
/// Emits the sums of one register tile for one block of K.
class TileBuilder {
public:
  TileBuilder(Location loc, ValueRange operands, const PackedGemmTile &tile, bool split)
      : loc(loc), a(operands[0]), b(operands[1]), c(operands[2]), before(operands[3]), tile(tile),
        split(split) {}

  /// The tile at panel `row` of A and panel `column` of B, for k in [begin, end).
  void build(OpBuilder &builder, Value column, Value row, Value begin, Value end);

private:
  Value index(OpBuilder &builder, int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  SmallVector<Value> zeros(OpBuilder &builder);
  /// The sums of the blocks before, zeros for the first block. Prefetches the sums that come next.
  SmallVector<Value> loadSums(OpBuilder &builder, Value isFirst);
  SmallVector<Value> accumulate(OpBuilder &builder, Value begin, Value end, ValueRange sums);
  void findAhead(OpBuilder &builder, Value begin, Value end);
  void storeSums(OpBuilder &builder, Value isFirst, ValueRange sums);
  /// Prefetches the sums of the tile that comes next, which the tile of the next row is, or of the next
  /// column.
  void prefetchNext(OpBuilder &builder);

  Location loc;
  Value a, b, c, before;
  PackedGemmTile tile;
  bool split;
  /// The elements of B that come after this panel: they are in memory or the L3 cache the first time.
  struct {
    Value panel, distance; ///< added to the indices of K
  } ahead;
  Value row, column, firstRow, firstColumn, rows;
};
} // namespace

SmallVector<Value> TileBuilder::zeros(OpBuilder &builder) {
  auto type = VectorType::get(tile.columns, builder.getF32Type());
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  return SmallVector<Value>(tile.rows, zero);
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
    sums.push_back(vector::LoadOp::create(later, loc, cast<VectorType>(start.front().getType()), c,
                                          ValueRange{valid, firstColumn}));
  }
  prefetchNext(later);
  scf::YieldOp::create(later, loc, sums);
  return branch.getResults();
}

SmallVector<Value> TileBuilder::accumulate(OpBuilder &builder, Value begin, Value end, ValueRange sums) {
  auto loop = scf::ForOp::create(builder, loc, begin, end, index(builder, 1), sums);
  OpBuilder body = OpBuilder::atBlockEnd(loop.getBody());
  Value k = loop.getInductionVar(), zero = index(body, 0);
  auto type = cast<VectorType>(sums.front().getType());
  Value right = vector::LoadOp::create(body, loc, type, b, ValueRange{column, k, zero});
  Value kAhead = arith::AddIOp::create(body, loc, k, ahead.distance);
  for (int64_t lane = 0; lane < tile.columns; lane += kLineElements)
    memref::PrefetchOp::create(body, loc, b, ValueRange{ahead.panel, kAhead, index(body, lane)},
                               /*isWrite=*/false,
                               /*localityHint=*/2, /*isDataCache=*/true);
  SmallVector<Value> next;
  for (auto [position, sum] : llvm::enumerate(loop.getRegionIterArgs())) {
    Value left = memref::LoadOp::create(body, loc, a, ValueRange{row, k, index(body, position)});
    Value spread = vector::BroadcastOp::create(body, loc, type, left);
    next.push_back(vector::FMAOp::create(body, loc, spread, right, sum));
  }
  scf::YieldOp::create(body, loc, next);
  return loop.getResults();
}

/// After the last panel comes the next block of K of the first one, in the end what lies behind the panels.
void TileBuilder::findAhead(OpBuilder &builder, Value begin, Value end) {
  Value zero = index(builder, 0);
  Value next = arith::AddIOp::create(builder, loc, column, index(builder, 1));
  Value panels = memref::DimOp::create(builder, loc, b, 0), depth = memref::DimOp::create(builder, loc, b, 1);
  Value isLast = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, next, panels);
  Value hasBlock = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, end, depth);
  Value wraps = arith::AndIOp::create(builder, loc, isLast, hasBlock);
  Value length = arith::SubIOp::create(builder, loc, end, begin);
  ahead.panel = arith::SelectOp::create(builder, loc, wraps, zero, next);
  Value onward = arith::SelectOp::create(builder, loc, wraps, length, zero);
  Value back = arith::SubIOp::create(builder, loc, zero, begin);
  Value leaves = arith::XOrIOp::create(builder, loc, wraps, isLast);
  ahead.distance = arith::SelectOp::create(builder, loc, leaves, back, onward);
}

/// The last panel of A may have more rows than c.
void TileBuilder::storeSums(OpBuilder &builder, Value isFirst, ValueRange sums) {
  for (auto [i, sum] : llvm::enumerate(sums)) {
    Value position = arith::AddIOp::create(builder, loc, firstRow, index(builder, i));
    Value isValid = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, position, rows);
    auto valid = scf::IfOp::create(builder, loc, isValid, /*withElseRegion=*/false);
    OpBuilder body = OpBuilder::atBlockTerminator(valid.thenBlock());
    Value at[] = {position, firstColumn};
    Value stored = sum;
    if (split) {
      auto branch = scf::IfOp::create(body, loc, sum.getType(), isFirst, true);
      OpBuilder first = OpBuilder::atBlockBegin(branch.thenBlock());
      scf::YieldOp::create(first, loc, sum);
      OpBuilder later = OpBuilder::atBlockBegin(branch.elseBlock());
      Value before = vector::LoadOp::create(later, loc, cast<VectorType>(sum.getType()), c, ValueRange(at));
      scf::YieldOp::create(later, loc, arith::AddFOp::create(later, loc, before, sum).getResult());
      stored = branch.getResult(0);
    }
    vector::StoreOp::create(body, loc, stored, c, ValueRange(at));
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

void TileBuilder::build(OpBuilder &builder, Value columnPanel, Value rowPanel, Value begin, Value end) {
  row = rowPanel;
  column = columnPanel;
  firstRow = arith::MulIOp::create(builder, loc, row, index(builder, tile.rows));
  firstColumn = arith::MulIOp::create(builder, loc, column, index(builder, tile.columns));
  rows = memref::DimOp::create(builder, loc, c, 0);
  Value summands = arith::AddIOp::create(builder, loc, begin, before);
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, summands, index(builder, 0));
  SmallVector<Value> start = split ? zeros(builder) : loadSums(builder, isFirst);
  findAhead(builder, begin, end);
  storeSums(builder, isFirst, accumulate(builder, begin, end, start));
}

/// Blocks of K outside, so that a block of a panel of B stays in the L1 cache while all panels of A run
/// past it, and their block of K in the L2 cache.
static void buildBody(OpBuilder &builder, ValueRange operands, bool split, const PackedGemmTile &tile) {
  Location loc = builder.getUnknownLoc();
  auto index = [&](OpBuilder &b, int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value zero = index(builder, 0), one = index(builder, 1);
  Value rows = memref::DimOp::create(builder, loc, operands[0], zero);
  Value depth = memref::DimOp::create(builder, loc, operands[0], one);
  Value columns = memref::DimOp::create(builder, loc, operands[1], zero);
  Value end = arith::MaxSIOp::create(builder, loc, depth, one); // without products the sums are zero
  Value block = index(builder, kSplitLength);
  if (!split) { // blocks of equal length
    Value most = index(builder, kBlockElements / tile.columns);
    Value count = arith::CeilDivUIOp::create(builder, loc, end, most);
    block = arith::CeilDivUIOp::create(builder, loc, end, count);
  }
  scf::buildLoopNest(
      builder, loc, ValueRange{zero, zero, zero}, ValueRange{end, columns, rows}, ValueRange{block, one, one},
      [&](OpBuilder &body, Location, ValueRange position) {
        Value whole = arith::AddIOp::create(body, loc, position[0], block);
        Value last = arith::MinSIOp::create(body, loc, whole, depth);
        TileBuilder(loc, operands, tile, split).build(body, position[1], position[2], position[0], last);
      });
}

func::CallOp fp8::buildGemm(OpBuilder &builder, Location loc, Value a, Value b, Value c, Value before,
                            bool split, const PackedGemmTile &tile) {
  std::string name = "fp8_cpu_gemm_f32_" + std::to_string(tile.rows) + "x" + std::to_string(tile.columns) +
                     (split ? "_split" : "");
  Type f32 = builder.getF32Type();
  Type inputs[] = {getStridedType(f32, 3, tile.rows), getStridedType(f32, 3, tile.columns),
                   getStridedType(f32, 2), builder.getIndexType()};
  func::FuncOp gemm = getOrCreateFunction(builder, name, inputs, [&](OpBuilder &body, ValueRange arguments) {
    buildBody(body, arguments, split, tile);
  });
  return callFunction(builder, loc, gemm, ValueRange{a, b, c, before});
}
