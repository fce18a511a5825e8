// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The three steps within a tile of a cast by blocks: elements with their amaxes, scales, bytes.

#include "TileCast.h"
#include "fp8/Conversion/FP8ToLinalg/FP8Casts.h"
#include "fp8/Dialect/FP8/IR/ScalarBuilder.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp8;

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

/// Amaxes in memory are one more than their bits. A NaN, whose bits count as 0, would else leave the old amax
/// as it is, and LLVM would store maxima under masks, which takes four times as long on AMD's processors.
static Value buildOne(OpBuilder &b, Location loc) {
  return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(1));
}

void TileCast::clearAmaxes(OpBuilder &b) {
  for (const Direction &direction : directions)
    forEachBlock(b, direction, [&](OpBuilder &nested, ValueRange block) {
      memref::StoreOp::create(nested, loc, buildOne(nested, loc), direction.amaxes, block);
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
  bool isOnly = chunk == tile.back();
  unsigned loopCount = isOnly ? last() : last() + 1;
  if (!isOnly)
    steps.back() = index(b, chunk);
  scf::buildLoopNest(b, loc, ArrayRef(lower).take_front(loopCount), ArrayRef(upper).take_front(loopCount),
                     ArrayRef(steps).take_front(loopCount), [&](OpBuilder &nested, Location, ValueRange own) {
                       SmallVector<Value> arguments(own);
                       if (isOnly)
                         arguments.push_back(lower.back());
                       Value end = upper.back();
                       if (!isOnly) {
                         end = arith::AddIOp::create(nested, loc, arguments.back(), steps.back());
                         if (!isWhole(last(), chunk)) // LLVM has fast code for a known number of elements
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

/// Computes the element at `indices`, with the amaxes of the directions that have a scale for each
/// neighbour; returns the bits of its magnitude.
Value TileCast::measureElement(OpBuilder &b, ValueRange indices) {
  Value value;
  if (source) {
    value = loadElement(b, indices);
  } else {
    value = loops.compute(b, indices).front();
    memref::StoreOp::create(b, loc, value, values, inTile(b, indices));
    value = buildWiden(b, loc, value);
  }
  Value bits = buildMagnitudeBits(b, loc, value);
  for (const Direction &direction : directions)
    if (!direction.spans())
      raiseAmax(b, direction, blockOf(b, direction, indices), bits);
  return bits;
}

void TileCast::raiseAmax(OpBuilder &b, const Direction &direction, ValueRange block, Value bits) {
  Value old = memref::LoadOp::create(b, loc, direction.amaxes, block);
  Value own = arith::AddIOp::create(b, loc, bits, buildOne(b, loc));
  memref::StoreOp::create(b, loc, arith::MaxUIOp::create(b, loc, old, own), direction.amaxes, block);
}

/// Computes the elements and the amaxes.
void TileCast::measure(OpBuilder &b) {
  int64_t chunk = chunkOf();
  if (chunk != tile.back())
    return measureShortChunks(b, chunk);
  forEachChunk(b, [&](OpBuilder &nested, ValueRange arguments) {
    SmallVector<Value> first(arguments.drop_back());
    bool spans = llvm::any_of(directions, [](const Direction &direction) { return direction.spans(); });
    Value zero = arith::ConstantOp::create(nested, loc, nested.getI32IntegerAttr(0));
    auto loop = scf::ForOp::create(nested, loc, first.back(), arguments.back(), index(nested, 1),
                                   spans ? ValueRange(zero) : ValueRange(),
                                   [&](OpBuilder &inner, Location, Value i, ValueRange carried) {
                                     SmallVector<Value> indices(first);
                                     indices.back() = i;
                                     Value bits = measureElement(inner, indices);
                                     SmallVector<Value> maxima;
                                     for (Value old : carried)
                                       maxima.push_back(arith::MaxUIOp::create(inner, loc, old, bits));
                                     scf::YieldOp::create(inner, loc, maxima);
                                   });
    for (const Direction &direction : directions)
      if (direction.spans())
        raiseAmax(nested, direction, blockOf(nested, direction, first), loop.getResult(0));
  });
}

/// The same where a tile has several chunks of neighbours. LLVM would unroll the short loop over a chunk
/// before it could vectorize it, so the maxima of chunks are explicit vector operations, on the bits of a
/// row of the tile.
void TileCast::measureShortChunks(OpBuilder &b, int64_t chunk) {
  Value row = memref::AllocaOp::create(b, loc, MemRefType::get({tile.back()}, b.getI32Type()));
  Value zero = index(b, 0), one = index(b, 1),
        zeroBits = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
  scf::buildLoopNest(
      b, loc, zero, index(b, tile.back()), one, [&](OpBuilder &nested, Location, ValueRange i) {
        memref::StoreOp::create(nested, loc, zeroBits, row, i); // what is beyond the tensor counts as 0
      });
  SmallVector<Value> steps(last(), one);
  auto rowBody = [&](OpBuilder &nested, Location, ValueRange outer) {
    scf::buildLoopNest(nested, loc, lower.back(), upper.back(), one,
                       [&](OpBuilder &inner, Location, ValueRange i) {
                         SmallVector<Value> indices(outer);
                         indices.push_back(i[0]);
                         Value place = inner.createOrFold<arith::SubIOp>(loc, i[0], lower.back());
                         memref::StoreOp::create(inner, loc, measureElement(inner, indices), row, place);
                       });
    Value count = nested.createOrFold<arith::SubIOp>(loc, upper.back(), lower.back());
    scf::buildLoopNest(
        nested, loc, zero, count, index(nested, chunk), [&](OpBuilder &inner, Location, ValueRange i) {
          Value bits =
              vector::LoadOp::create(inner, loc, VectorType::get({chunk}, inner.getI32Type()), row, i);
          Value maximum = vector::ReductionOp::create(inner, loc, vector::CombiningKind::MAXUI, bits);
          SmallVector<Value> indices(outer);
          indices.push_back(inner.createOrFold<arith::AddIOp>(loc, i[0], lower.back()));
          for (const Direction &direction : directions)
            if (direction.spans())
              raiseAmax(inner, direction, blockOf(inner, direction, indices), maximum);
        });
  };
  scf::buildLoopNest(b, loc, ArrayRef(lower).drop_back(), ArrayRef(upper).drop_back(), steps, rowBody);
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
    Value stored = memref::LoadOp::create(nested, loc, direction.amaxes, block);
    Value bits = arith::SubIOp::create(nested, loc, stored, buildOne(nested, loc));
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
                           Value scaled = arith::MulFOp::create(inner, loc, value, scale);
                           Value encoded = encoder.encode(inner, loc, scaled, indices);
                           memref::StoreOp::create(inner, loc, encoded, direction.data,
                                                   permute(indices, direction.transposition));
                         }
                         scf::YieldOp::create(inner, loc);
                       });
  });
}
