// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code of a tile of sums on AMX.

#include "PackedGemmAMX.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp8;

/// The rows and columns of a tile register of sums, and the elements of a panel along K of one instruction.
static constexpr int64_t kSide = 16;
/// Instructions along K between two loads of the sums: more would not fit a block of K of the L1 cache.
static constexpr int64_t kUnrolled = 8;

static amx::TileType getSumsType(OpBuilder &b) {
  return amx::TileType::get(ArrayRef<int64_t>{kSide, kSide}, b.getF32Type());
}

static amx::TileType getOperandType(OpBuilder &b) {
  return amx::TileType::get(ArrayRef<int64_t>{kSide, 2 * kSide}, b.getBF16Type());
}

AMXTileBuilder::AMXTileBuilder(OpBuilder &builder, Location loc, ValueRange operands,
                               const BlockPanels &blocks, const PackedGemmTile &tile,
                               const PackedMatmulOptions &options)
    : loc(loc), a(operands[0]), b(operands[1]), c(operands[2]), before(operands[3]), blocks(blocks),
      tile(tile), part(partLength(blocks, options)) {
  auto type = MemRefType::get({tile.rows, tile.columns}, builder.getF32Type());
  Value memory = memref::AllocaOp::create(builder, loc, type, builder.getI64IntegerAttr(64));
  scratch = memref::CastOp::create(builder, loc, getStridedType(builder.getF32Type(), 2), memory);
}

Value AMXTileBuilder::index(OpBuilder &builder, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

Value AMXTileBuilder::sum(OpBuilder &builder, Value x, Value y) {
  return arith::AddIOp::create(builder, loc, x, y);
}

Value AMXTileBuilder::product(OpBuilder &builder, Value x, int64_t factor) {
  return arith::MulIOp::create(builder, loc, x, index(builder, factor));
}

Value AMXTileBuilder::buildIsFirst(OpBuilder &builder, Value from) {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, sum(builder, from, before),
                               index(builder, 0));
}

Value AMXTileBuilder::countRows(OpBuilder &builder) {
  Value left = arith::SubIOp::create(builder, loc, rows, firstRow);
  return arith::MinSIOp::create(builder, loc, left, index(builder, tile.rows));
}

void AMXTileBuilder::clear(OpBuilder &builder, Value sums) {
  Value zero = amx::TileZeroOp::create(builder, loc, getSumsType(builder));
  for (int64_t i = 0; i < tile.rows; i += kSide)
    for (int64_t j = 0; j < tile.columns; j += kSide)
      amx::TileStoreOp::create(builder, loc, sums, ValueRange{index(builder, i), index(builder, j)}, zero);
}

void AMXTileBuilder::addSteps(OpBuilder &builder, Value sums, Value k, int64_t count) {
  SmallVector<SmallVector<Value>> places;
  SmallVector<Value> tiles;
  for (int64_t i = 0; i < tile.rows; i += kSide)
    for (int64_t j = 0; j < tile.columns; j += kSide) {
      places.push_back({index(builder, i), index(builder, j)});
      tiles.push_back(amx::TileLoadOp::create(builder, loc, getSumsType(builder), sums, places.back()));
    }
  Value ofA = product(builder, k, tile.rows), ofB = product(builder, k, tile.columns);
  auto load = [&](Value panel, Value first, int64_t offset, int64_t stride) -> Value {
    return amx::TileLoadOp::create(builder, loc, getOperandType(builder), panel,
                                   ValueRange{sum(builder, first, index(builder, offset))},
                                   index(builder, stride));
  };
  for (int64_t step = 0; step < count; ++step) {
    SmallVector<Value> left, right;
    for (int64_t i = 0; i < tile.rows; i += kSide)
      left.push_back(load(panelA, ofA, step * kSide * tile.rows + i * kSide, kSide));
    for (int64_t j = 0; j < tile.columns; j += kSide)
      right.push_back(load(panelB, ofB, step * kSide * tile.columns + j, tile.columns));
    for (auto [t, tileOfSums] : llvm::enumerate(tiles))
      tileOfSums = amx::TileMulFOp::create(builder, loc, getSumsType(builder), left[t / right.size()],
                                           right[t % right.size()], tileOfSums);
  }
  for (auto [place, tileOfSums] : llvm::zip_equal(places, tiles))
    amx::TileStoreOp::create(builder, loc, sums, place, tileOfSums);
}

void AMXTileBuilder::accumulate(OpBuilder &builder, Value sums, Value from, Value to) {
  Value rest = arith::RemUIOp::create(builder, loc, arith::SubIOp::create(builder, loc, to, from),
                                      index(builder, kUnrolled * kSide));
  Value middle = arith::SubIOp::create(builder, loc, to, rest);
  auto addRange = [&](Value first, Value last, int64_t count) {
    auto loop = scf::ForOp::create(builder, loc, first, last, index(builder, count * kSide));
    OpBuilder body = OpBuilder::atBlockTerminator(loop.getBody());
    addSteps(body, sums, loop.getInductionVar(), count);
  };
  addRange(from, middle, kUnrolled);
  addRange(middle, to, 1);
}

void AMXTileBuilder::forEachVector(OpBuilder &builder,
                                   function_ref<void(OpBuilder &, Value, int64_t, ArrayRef<Value>)> build) {
  auto loop = scf::ForOp::create(builder, loc, index(builder, 0), countRows(builder), index(builder, 1));
  OpBuilder body = OpBuilder::atBlockTerminator(loop.getBody());
  Value i = loop.getInductionVar(), position = sum(body, firstRow, i);
  for (int64_t lane = 0; lane < tile.columns; lane += kSide)
    build(body, i, lane, {position, sum(body, firstColumn, index(body, lane))});
}

void AMXTileBuilder::copyRows(OpBuilder &builder, bool toC) {
  auto type = VectorType::get(kSide, builder.getF32Type());
  forEachVector(builder, [&](OpBuilder &body, Value i, int64_t lane, ArrayRef<Value> ofC) {
    Value ofScratch[] = {i, index(body, lane)};
    Value moved = vector::LoadOp::create(body, loc, type, toC ? scratch : c, toC ? ofScratch : ofC);
    vector::StoreOp::create(body, loc, moved, toC ? c : scratch, toC ? ofC : ofScratch);
  });
}

Value AMXTileBuilder::findSums(OpBuilder &builder, Value isWhole, Value isFirst) {
  auto branch = scf::IfOp::create(builder, loc, scratch.getType(), isWhole, /*withElseRegion=*/true);
  OpBuilder whole = OpBuilder::atBlockBegin(branch.thenBlock());
  OpFoldResult offsets[] = {firstRow, firstColumn}, one = whole.getIndexAttr(1), strides[] = {one, one};
  OpFoldResult sizes[] = {whole.getIndexAttr(tile.rows), whole.getIndexAttr(tile.columns)};
  Value inC = memref::SubViewOp::create(whole, loc, c, offsets, sizes, strides);
  scf::YieldOp::create(whole, loc, memref::CastOp::create(whole, loc, scratch.getType(), inC).getResult());
  OpBuilder ragged = OpBuilder::atBlockBegin(branch.elseBlock());
  Value isLater =
      arith::XOrIOp::create(ragged, loc, isFirst, arith::ConstantIntOp::create(ragged, loc, 1, /*width=*/1));
  auto later = scf::IfOp::create(ragged, loc, isLater, /*withElseRegion=*/false);
  OpBuilder copy = OpBuilder::atBlockTerminator(later.thenBlock());
  copyRows(copy, /*toC=*/false);
  scf::YieldOp::create(ragged, loc, scratch);
  return branch.getResult(0);
}

Value AMXTileBuilder::addScaled(OpBuilder &builder, Value i, int64_t lane, Value added, Value before) {
  if (!blocks.length)
    return arith::AddFOp::create(builder, loc, before, added);
  auto type = cast<VectorType>(added.getType());
  Value ofRow = memref::LoadOp::create(builder, loc, blocks.a, ValueRange{row, block, i});
  Value left = vector::BroadcastOp::create(builder, loc, type, ofRow);
  Value right =
      vector::LoadOp::create(builder, loc, type, blocks.b, ValueRange{column, block, index(builder, lane)});
  if (!blocks.rowsFirst)
    std::swap(left, right);
  return vector::FMAOp::create(builder, loc, arith::MulFOp::create(builder, loc, added, left), right, before);
}

void AMXTileBuilder::addPart(OpBuilder &builder, Value isFirst) {
  auto type = VectorType::get(kSide, builder.getF32Type());
  forEachVector(builder, [&](OpBuilder &body, Value i, int64_t lane, ArrayRef<Value> ofC) {
    Value added = vector::LoadOp::create(body, loc, type, scratch, ValueRange{i, index(body, lane)});
    auto branch = scf::IfOp::create(body, loc, type, isFirst, /*withElseRegion=*/true);
    OpBuilder first = OpBuilder::atBlockBegin(branch.thenBlock());
    Value zero = arith::ConstantOp::create(first, loc, first.getZeroAttr(type));
    // Without scales the first part is the sum, bit for bit: 0 + -0 would be 0.
    Value begun = blocks.length ? addScaled(first, i, lane, added, zero) : added;
    scf::YieldOp::create(first, loc, begun);
    OpBuilder later = OpBuilder::atBlockBegin(branch.elseBlock());
    Value old = vector::LoadOp::create(later, loc, type, c, ofC);
    scf::YieldOp::create(later, loc, addScaled(later, i, lane, added, old));
    vector::StoreOp::create(body, loc, branch.getResult(0), c, ofC);
  });
}

void AMXTileBuilder::buildParts(OpBuilder &builder) {
  auto loop = scf::ForOp::create(builder, loc, begin, end, index(builder, part));
  OpBuilder body = OpBuilder::atBlockTerminator(loop.getBody());
  Value first = loop.getInductionVar();
  Value last = arith::MinSIOp::create(body, loc, sum(body, first, index(body, part)), end);
  block = arith::DivUIOp::create(body, loc, first, index(body, part));
  clear(body, scratch);
  accumulate(body, scratch, first, last);
  addPart(body, buildIsFirst(body, first));
}

void AMXTileBuilder::start(OpBuilder &builder, Value columnPanel, Value from, Value to) {
  begin = from;
  end = to;
  column = columnPanel;
  firstColumn = product(builder, column, tile.columns);
  rows = memref::DimOp::create(builder, loc, c, 0);
  panelB = viewPanel(builder, loc, b, column);
}

void AMXTileBuilder::build(OpBuilder &builder, Value rowPanel) {
  row = rowPanel;
  firstRow = product(builder, row, tile.rows);
  panelA = viewPanel(builder, loc, a, row);
  if (part)
    return buildParts(builder);
  Value isFirst = buildIsFirst(builder, begin);
  Value behind = sum(builder, firstRow, index(builder, tile.rows));
  Value isWhole = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle, behind, rows);
  Value sums = findSums(builder, isWhole, isFirst);
  auto cleared = scf::IfOp::create(builder, loc, isFirst, /*withElseRegion=*/false);
  OpBuilder then = OpBuilder::atBlockTerminator(cleared.thenBlock());
  clear(then, sums);
  accumulate(builder, sums, begin, end);
  Value isRagged = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, behind, rows);
  auto copied = scf::IfOp::create(builder, loc, isRagged, /*withElseRegion=*/false);
  OpBuilder copy = OpBuilder::atBlockTerminator(copied.thenBlock());
  copyRows(copy, /*toC=*/true);
}
