// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers fp8.quantize_blocks to loops over tiles. A tile holds whole blocks of every direction: its
// elements are computed once, with the amaxes of its blocks; scales and bytes follow while it is in the
// cache. A direction whose blocks span a whole dimension has tiles of its own, and reads the tensor again.

#include "Lowering.h"
#include "fp8/Conversion/FP8ToLinalg/FP8Casts.h"
#include "fp8/Dialect/FP8/IR/ScalarBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp8;

/// The least number of neighbours in memory that a tile has where blocks do not say more.
static constexpr int64_t kTileColumns = 128;

namespace {

/// One direction of the cast within a tile.
struct Direction {
  unsigned number;
  ArrayRef<int64_t> block;
  Value data, scaleInv;
  ArrayRef<int64_t> transposition; ///< empty: the layout of the tensor
  Value amaxes, scales;            ///< buffers of the tile: i32 bits of amaxes, and f32
};

/// Emits the loops over the tiles of some directions.
class TileCast {
public:
  /// `source` is the buffer of the tensor, or null: then the elements are computed.
  TileCast(OpBuilder &builder, QuantizeBlocksOp op, ElementLoops &loops, Value source,
           ArrayRef<unsigned> directions);

  /// Returns whether tiles in order have the elements of a column in the order of the tensor, which sums
  /// over the leading dimensions need.
  bool keepsOrder() const;
  void run();

private:
  using Body = llvm::function_ref<void(OpBuilder &, ValueRange)>;

  Value index(OpBuilder &b, int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  unsigned last() const { return sizes.size() - 1; }
  int64_t chunkOf() const;
  Value countTiles(OpBuilder &b, unsigned dim);
  void runTiles(ValueRange numbers, OpBuilder &b);
  void runTile(OpBuilder &b, ArrayRef<Value> numbers);
  void clearAmaxes(OpBuilder &b);
  void forEachBlock(OpBuilder &b, const Direction &direction, Body body);
  void forEachChunk(OpBuilder &b, Body body);
  SmallVector<Value> blockOf(OpBuilder &b, const Direction &direction, ValueRange indices);
  void measure(OpBuilder &b);
  void computeScales(OpBuilder &b, const Direction &direction);
  void castElements(OpBuilder &b);
  Value loadElement(OpBuilder &b, ValueRange indices);
  SmallVector<Value> inTile(OpBuilder &b, ValueRange indices);

  OpBuilder &builder;
  Location loc;
  QuantizeBlocksOp op;
  ElementLoops &loops;
  ElementRegion region;
  ArrayRef<Value> sizes;
  Value source;
  SmallVector<Direction> directions;
  SmallVector<int64_t> tile;       ///< extents; 0: the whole dimension
  SmallVector<Value> lower, upper; ///< the bounds of the tile that is being built
  Value values;                    ///< the elements of the tile, if they are computed
};

} // namespace

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

TileCast::TileCast(OpBuilder &builder, QuantizeBlocksOp op, ElementLoops &loops, Value source,
                   ArrayRef<unsigned> numbers)
    : builder(builder), loc(op.getLoc()), op(op), loops(loops), region(*ElementRegion::of(op)),
      sizes(loops.getSizes()), source(source), tile(sizes.size(), 1) {
  for (unsigned number : numbers) {
    directions.push_back({number, op.getBlock(number), op.getDataOut(number), op.getScaleInvOut(number),
                          op.getTransposition(number), Value(), Value()});
    for (auto [extent, own] : llvm::zip_equal(tile, directions.back().block))
      extent = extent == 0 || own == 0 ? 0 : std::lcm(extent, own);
  }
  // Single columns would be read a cache line at a time.
  if (!getTarget(op).hasManyThreads() && tile.back() != 0)
    tile.back() *= llvm::divideCeil(kTileColumns, tile.back());
}

bool TileCast::keepsOrder() const {
  // Once a dimension has several elements in a tile, every further one but the last must be whole.
  bool several = false;
  for (unsigned dim = 0; dim < last(); ++dim) {
    std::optional<int64_t> size = getConstantIntValue(sizes[dim]);
    bool isWhole = tile[dim] == 0 || (size && *size <= tile[dim]);
    if (several && !isWhole)
      return false;
    several |= tile[dim] != 1;
  }
  return true;
}

Value TileCast::countTiles(OpBuilder &b, unsigned dim) {
  return tile[dim] == 0 ? index(b, 1)
                        : b.createOrFold<arith::CeilDivUIOp>(loc, sizes[dim], index(b, tile[dim]));
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
  bool sumsAll = llvm::any_of(region.extraMaps(), [](AffineMap map) { return map.getNumResults() == 0; });
  if (loops.isParallel() && !isInParallel && !(sums && sumsAll))
    scf::ParallelOp::create(builder, loc, ValueRange(zero), ValueRange(count), ValueRange(one), body);
  else
    scf::buildLoopNest(builder, loc, zero, count, one, body);
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
    upper.push_back(b.createOrFold<arith::MinUIOp>(loc, end, sizes[dim]));
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

//===----------------------------------------------------------------------===//
// Within a tile
//===----------------------------------------------------------------------===//

/// Returns `indices` relative to the tile.
SmallVector<Value> TileCast::inTile(OpBuilder &b, ValueRange indices) {
  SmallVector<Value> own;
  for (auto [i, from] : llvm::zip_equal(indices, lower))
    own.push_back(b.createOrFold<arith::SubIOp>(loc, i, from));
  return own;
}

/// Returns the block, in the tile, of the element at `indices`.
SmallVector<Value> TileCast::blockOf(OpBuilder &b, const Direction &direction, ValueRange indices) {
  SmallVector<Value> block;
  for (auto [i, extent, whole] : llvm::zip_equal(inTile(b, indices), direction.block, tile)) {
    bool isOnly = extent == 0 || extent == whole;
    block.push_back(isOnly        ? index(b, 0)
                    : extent == 1 ? i
                                  : b.createOrFold<arith::DivUIOp>(loc, i, index(b, extent)));
  }
  return block;
}

/// Runs `body` for each block of the tile, with its position in the tile.
void TileCast::forEachBlock(OpBuilder &b, const Direction &direction, Body body) {
  SmallVector<Value> froms(sizes.size(), index(b, 0)), steps(sizes.size(), index(b, 1)), counts;
  for (auto [from, to, extent] : llvm::zip_equal(lower, upper, direction.block)) {
    Value length = b.createOrFold<arith::SubIOp>(loc, to, from);
    counts.push_back(extent == 0 ? index(b, 1)
                                 : b.createOrFold<arith::CeilDivUIOp>(loc, length, index(b, extent)));
  }
  scf::buildLoopNest(b, loc, froms, counts, steps,
                     [&](OpBuilder &nested, Location, ValueRange block) { body(nested, block); });
}

void TileCast::clearAmaxes(OpBuilder &b) {
  for (const Direction &direction : directions)
    forEachBlock(b, direction, [&](OpBuilder &nested, ValueRange block) {
      Value zero = arith::ConstantOp::create(nested, loc, nested.getI32IntegerAttr(0));
      memref::StoreOp::create(nested, loc, zero, direction.amaxes, block);
    });
}

/// Returns the largest number of neighbours that are in one block of every direction whose blocks span
/// several; 0 for the whole dimension.
int64_t TileCast::chunkOf() const {
  int64_t chunk = tile.back();
  for (const Direction &direction : directions)
    if (int64_t extent = direction.block.back(); extent > 1)
      chunk = chunk == 0 ? extent : std::gcd(chunk, extent);
  return chunk;
}

/// Runs `body` for each chunk of neighbours in the tile: it gets the position of the first, and the
/// upper bound of the last dimension.
void TileCast::forEachChunk(OpBuilder &b, Body body) {
  SmallVector<Value> steps(sizes.size(), index(b, 1));
  int64_t chunk = chunkOf();
  bool isWhole = chunk == tile.back();
  unsigned loopCount = isWhole ? last() : last() + 1;
  if (!isWhole)
    steps.back() = index(b, chunk);
  scf::buildLoopNest(b, loc, ArrayRef(lower).take_front(loopCount), ArrayRef(upper).take_front(loopCount),
                     ArrayRef(steps).take_front(loopCount), [&](OpBuilder &nested, Location, ValueRange own) {
                       SmallVector<Value> arguments(own);
                       if (isWhole)
                         arguments.push_back(lower.back());
                       Value end = upper.back();
                       if (!isWhole) {
                         end = arith::AddIOp::create(nested, loc, arguments.back(), steps.back());
                         end = arith::MinUIOp::create(nested, loc, end, upper.back());
                       }
                       arguments.push_back(end);
                       body(nested, arguments);
                     });
}

Value TileCast::loadElement(OpBuilder &b, ValueRange indices) {
  Value element = source ? memref::LoadOp::create(b, loc, source, indices)
                         : memref::LoadOp::create(b, loc, values, inTile(b, indices));
  return buildWiden(b, loc, element);
}

/// Computes the elements and the amaxes. A block that spans neighbours gets the maximum of a chunk at once.
void TileCast::measure(OpBuilder &b) {
  forEachChunk(b, [&](OpBuilder &nested, ValueRange arguments) {
    SmallVector<Value> first(arguments.drop_back());
    SmallVector<const Direction *> spanning, single;
    for (const Direction &direction : directions)
      (direction.block.back() == 1 ? single : spanning).push_back(&direction);
    Value zero = arith::ConstantOp::create(nested, loc, nested.getI32IntegerAttr(0));
    auto loop = scf::ForOp::create(
        nested, loc, first.back(), arguments.back(), index(nested, 1),
        spanning.empty() ? ValueRange() : ValueRange(zero),
        [&](OpBuilder &inner, Location, Value i, ValueRange carried) {
          SmallVector<Value> indices(first);
          indices.back() = i;
          Value value;
          if (source) {
            value = loadElement(inner, indices);
          } else {
            value = loops.compute(inner, indices).front();
            memref::StoreOp::create(inner, loc, value, values, inTile(inner, indices));
            value = buildWiden(inner, loc, value);
          }
          Value bits = buildMagnitudeBits(inner, loc, value);
          for (const Direction *direction : single) {
            SmallVector<Value> block = blockOf(inner, *direction, indices);
            Value old = memref::LoadOp::create(inner, loc, direction->amaxes, block);
            memref::StoreOp::create(inner, loc, arith::MaxUIOp::create(inner, loc, old, bits),
                                    direction->amaxes, block);
          }
          SmallVector<Value> maxima;
          for (Value old : carried)
            maxima.push_back(arith::MaxUIOp::create(inner, loc, old, bits));
          scf::YieldOp::create(inner, loc, maxima);
        });
    for (const Direction *direction : spanning) {
      SmallVector<Value> block = blockOf(nested, *direction, first);
      Value old = memref::LoadOp::create(nested, loc, direction->amaxes, block);
      Value maximum = arith::MaxUIOp::create(nested, loc, old, loop.getResult(0));
      memref::StoreOp::create(nested, loc, maximum, direction->amaxes, block);
    }
  });
}

/// Returns `indices` of the tensor in the layout of a direction.
static SmallVector<Value> permute(ValueRange indices, ArrayRef<int64_t> transposition) {
  if (transposition.empty())
    return SmallVector<Value>(indices);
  return llvm::map_to_vector(transposition, [&](int64_t dim) -> Value { return indices[dim]; });
}

void TileCast::computeScales(OpBuilder &b, const Direction &direction) {
  auto inputType = dyn_cast<FloatType>(region.isEmpty() ? getElementTypeOrSelf(region.inputs[0])
                                                        : region.yield().getValue().getType());
  forEachBlock(b, direction, [&](OpBuilder &nested, ValueRange block) {
    ScalarBuilder s(nested, loc);
    Value bits = memref::LoadOp::create(nested, loc, direction.amaxes, block);
    Value amax = arith::BitcastOp::create(nested, loc, nested.getF32Type(), bits);
    ScaleInputs inputs{amax, s.real(getFP8Max(op.getFormat())), s.real(1.0f), inputType};
    Value scale = op.getRecipe().buildScale(nested, loc, op, inputs);
    memref::StoreOp::create(nested, loc, scale, direction.scales, block);
    Value scaleInv = getElementTypeOrSelf(direction.scaleInv).isF32()
                         ? arith::DivFOp::create(nested, loc, s.real(1.0f), scale)
                         : buildInverseE8M0(nested, loc, scale);
    SmallVector<Value> position;
    for (auto [i, from, extent] : llvm::zip_equal(block, lower, direction.block)) {
      Value start = extent == 0   ? index(nested, 0)
                    : extent == 1 ? from
                                  : nested.createOrFold<arith::DivUIOp>(loc, from, index(nested, extent));
      position.push_back(nested.createOrFold<arith::AddIOp>(loc, start, i));
    }
    memref::StoreOp::create(nested, loc, scaleInv, direction.scaleInv,
                            permute(position, direction.transposition));
  });
}

void TileCast::castElements(OpBuilder &b) {
  forEachChunk(b, [&](OpBuilder &nested, ValueRange arguments) {
    SmallVector<Value> first(arguments.drop_back());
    SmallVector<Value> scales; // of the chunk; null for a scale of each element
    for (const Direction &direction : directions)
      scales.push_back(
          direction.block.back() == 1
              ? Value()
              : memref::LoadOp::create(nested, loc, direction.scales, blockOf(nested, direction, first)));
    scf::ForOp::create(nested, loc, first.back(), arguments.back(), index(nested, 1), ValueRange(),
                       [&](OpBuilder &inner, Location, Value i, ValueRange) {
                         SmallVector<Value> indices(first);
                         indices.back() = i;
                         Value value = loadElement(inner, indices);
                         for (auto [direction, ofChunk] : llvm::zip_equal(directions, scales)) {
                           Value scale = ofChunk ? ofChunk
                                                 : memref::LoadOp::create(inner, loc, direction.scales,
                                                                          blockOf(inner, direction, indices));
                           Value encoded = buildEncodeFP8(
                               inner, loc, arith::MulFOp::create(inner, loc, value, scale), op.getFormat());
                           memref::StoreOp::create(inner, loc, encoded, direction.data,
                                                   permute(indices, direction.transposition));
                         }
                         scf::YieldOp::create(inner, loc);
                       });
  });
}

//===----------------------------------------------------------------------===//
// The operation
//===----------------------------------------------------------------------===//

/// Returns whether a dimension is spanned by one block.
static bool isUnbounded(ArrayRef<int64_t> block) { return llvm::is_contained(block, 0); }

/// Computes the tensor into a buffer of its own.
static Value storeTensor(OpBuilder &builder, QuantizeBlocksOp op, ElementLoops &loops) {
  Type element = ElementRegion::of(op)->yield().getValue().getType();
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  for (Value size : loops.getSizes()) {
    std::optional<int64_t> known = getConstantIntValue(size);
    shape.push_back(known.value_or(ShapedType::kDynamic));
    if (!known)
      dynamic.push_back(size);
  }
  Value buffer = memref::AllocOp::create(builder, op.getLoc(), MemRefType::get(shape, element), dynamic);
  loops.run([&](OpBuilder &b, Location loc, Value value, ValueRange indices) {
    memref::StoreOp::create(b, loc, value, buffer, indices);
  });
  return buffer;
}

LogicalResult fp8::lowerQuantizeBlocks(OpBuilder &builder, QuantizeBlocksOp op) {
  ElementRegion region = *ElementRegion::of(op);
  Type element =
      region.isEmpty() ? getElementTypeOrSelf(region.inputs[0]) : region.yield().getValue().getType();
  if (element.isF64())
    return op.emitOpError("of f64 has no lowering yet");
  ElementLoops loops(builder, op);
  if (loops.getSizes().empty())
    return op.emitOpError("of a tensor of rank 0 has no blocks");
  bool manyThreads = getTarget(op).hasManyThreads();
  SmallVector<SmallVector<unsigned>> groups(1); // the bounded directions, then each of the others
  for (unsigned i = 0; i < op.getNumDirections(); ++i) {
    if (isUnbounded(op.getBlock(i)) || manyThreads)
      groups.push_back({i});
    else
      groups.front().push_back(i);
  }
  Value source = region.isEmpty() ? region.inputs[0] : Value();
  bool sums = llvm::any_of(region.extraMaps(), isSummed);
  if (!source &&
      (groups.size() > 1 || (sums && !TileCast(builder, op, loops, source, groups.front()).keepsOrder())))
    source = storeTensor(builder, op, loops);
  else if (!source)
    loops.clearSums();
  for (ArrayRef<unsigned> group : groups)
    if (!group.empty())
      TileCast(builder, op, loops, source, group).run();
  return success();
}
