// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles of casts by blocks: which there are, and the blocks and elements of one.

#include "TileCast.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp8;

/// The least number of neighbours in memory that a tile has, so that whole cache lines are read and written,
/// fewer in tiles that span other dimensions, which are large and else too few for the cores; and the least
/// number of elements, so that starting a tile costs little.
static constexpr int64_t kTileColumns = 128, kLongTileColumns = 64, kTileElements = 4096;

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

TileCast::TileCast(OpBuilder &builder, QuantizeBlocksOp op, ElementLoops &loops, Value source,
                   ArrayRef<unsigned> numbers)
    : builder(builder), loc(op.getLoc()), op(op), loops(loops), region(*ElementRegion::of(op)),
      sizes(loops.getSizes()), source(source),
      encoder(builder, loc, op.getRandom(), op.getStream(), op.getFormat(), sizes), tile(sizes.size(), 1) {
  for (unsigned number : numbers) {
    directions.push_back({number, op.getBlock(number), op.getDataOut(number), op.getScaleInvOut(number),
                          op.getTransposition(number), Value(), Value()});
    for (auto [extent, own] : llvm::zip_equal(tile, directions.back().block))
      extent = extent == 0 || own == 0 ? 0 : std::lcm(extent, own);
  }
  if (getTarget(op).hasManyThreads() || tile.back() == 0)
    return;
  int64_t columns = llvm::is_contained(tile, 0) ? kLongTileColumns : kTileColumns;
  tile.back() *= llvm::divideCeil(columns, tile.back());
  int64_t elements = 1;
  for (int64_t extent : tile)
    elements *= extent;
  if (tile.size() > 1 && elements != 0)
    tile[last() - 1] *= llvm::divideCeil(kTileElements, elements);
}

bool TileCast::sumsAll() const {
  return llvm::any_of(region.extraMaps(), [](AffineMap map) { return map.getNumResults() == 0; });
}

bool TileCast::keepsOrder() const {
  auto isInOneTile = [&](unsigned dim) {
    std::optional<int64_t> size = getConstantIntValue(sizes[dim]);
    return tile[dim] == 0 || (size && *size <= tile[dim]);
  };
  // run() takes all rows of the first columns before the next columns.
  if (sumsAll() && last() > 0 && !isInOneTile(last()))
    return false;
  // Once a dimension has several elements in a tile, every further one but the last must be whole.
  bool several = false;
  for (unsigned dim = 0; dim < last(); ++dim) {
    if (several && !isInOneTile(dim))
      return false;
    several |= tile[dim] != 1;
  }
  return true;
}

Value TileCast::countTiles(OpBuilder &b, unsigned dim) {
  return tile[dim] == 0 ? index(b, 1)
                        : b.createOrFold<arith::CeilDivUIOp>(loc, sizes[dim], index(b, tile[dim]));
}

/// Moves the memory of a tile before `place`: memory on the stack is freed when its function returns, so each
/// iteration of a loop would take more.
static void hoistAllocas(Operation *loop, Operation *place) {
  loop->walk([&](memref::AllocaOp alloca) { alloca->moveBefore(place); });
}

/// Runs over the tiles: all of them in parallel; where something is summed over the leading dimensions,
/// those of different columns.
void TileCast::run() {
  bool sums = llvm::any_of(region.extraMaps(), isSummed) && !source;
  bool isInParallel = op->getParentOfType<scf::ParallelOp>() != nullptr;
  SmallVector<Value> counts;
  for (unsigned dim = 0; dim <= last(); ++dim)
    counts.push_back(countTiles(builder, dim));
  Value zero = index(builder, 0), one = index(builder, 1);
  SmallVector<unsigned> parallel, inner;
  for (unsigned dim = 0; dim <= last(); ++dim)
    (sums && dim != last() ? inner : parallel).push_back(dim);
  Value count = one;
  for (unsigned dim : parallel)
    count = builder.createOrFold<arith::MulIOp>(loc, count, counts[dim]);
  auto body = [&](OpBuilder &b, Location, ValueRange number) {
    SmallVector<Value> numbers(sizes.size());
    Value rest = number[0];
    for (unsigned dim : llvm::reverse(parallel)) {
      bool isOutermost = dim == parallel.front();
      numbers[dim] = isOutermost ? rest : b.createOrFold<arith::RemUIOp>(loc, rest, counts[dim]);
      if (!isOutermost)
        rest = b.createOrFold<arith::DivUIOp>(loc, rest, counts[dim]);
    }
    SmallVector<Value> froms(inner.size(), zero), steps(inner.size(), one), tos;
    for (unsigned dim : inner)
      tos.push_back(counts[dim]);
    scf::buildLoopNest(b, loc, froms, tos, steps, [&](OpBuilder &nested, Location, ValueRange own) {
      for (auto [dim, value] : llvm::zip_equal(inner, own))
        numbers[dim] = value;
      runTile(nested, numbers);
    });
  };
  if (loops.isParallel() && !isInParallel && !(sums && sumsAll())) {
    auto tiles =
        scf::ParallelOp::create(builder, loc, ValueRange(zero), ValueRange(count), ValueRange(one), body);
    hoistAllocas(tiles, &tiles.getBody()->front());
  } else {
    scf::ForOp tiles = scf::buildLoopNest(builder, loc, zero, count, one, body).loops.front();
    hoistAllocas(tiles, tiles);
  }
}

void TileCast::runTile(OpBuilder &b, ArrayRef<Value> numbers) {
  lower.clear();
  upper.clear();
  for (unsigned dim = 0; dim <= last(); ++dim) {
    if (tile[dim] == 0) {
      lower.push_back(index(b, 0));
      upper.push_back(sizes[dim]);
      continue;
    }
    Value extent = index(b, tile[dim]);
    lower.push_back(b.createOrFold<arith::MulIOp>(loc, numbers[dim], extent));
    Value end = b.createOrFold<arith::AddIOp>(loc, lower.back(), extent);
    upper.push_back(isWhole(dim, tile[dim]) ? end : b.createOrFold<arith::MinUIOp>(loc, end, sizes[dim]));
  }
  Type element = region.isEmpty() ? Type() : region.yield().getValue().getType();
  values = source ? Value() : memref::AllocaOp::create(b, loc, MemRefType::get(tile, element)).getResult();
  for (Direction &direction : directions) {
    SmallVector<int64_t> blocks;
    for (auto [extent, own] : llvm::zip_equal(tile, direction.block))
      blocks.push_back(own == 0 ? 1 : extent / own);
    direction.amaxes = memref::AllocaOp::create(b, loc, MemRefType::get(blocks, b.getI32Type()));
    direction.scales = memref::AllocaOp::create(b, loc, MemRefType::get(blocks, b.getF32Type()));
  }
  clearAmaxes(b);
  measure(b);
  for (const Direction &direction : directions)
    computeScales(b, direction);
  castElements(b);
}
