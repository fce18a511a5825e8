// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs rows in parallel, with one maximum per row, then computes the maximum of the rows. With sums
// over the rows it runs groups of columns in parallel, so that each sum keeps its order.

#include "ElementLoops.h"
#include "fp8/Conversion/FP8ToLinalg/FP8Casts.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace fp8;

/// Tensors of fewer elements run on one thread: starting another takes longer.
static constexpr int64_t kParallelThreshold = 65536;

/// A thread that sums a group of columns prefetches so many rows ahead, one line of f32 elements after the
/// other: the pieces of rows that it reads are too short for the processor to find the next by itself.
static constexpr int64_t kRowsAhead = 2, kLineElements = 16;

/// The number of columns that one thread sums, of `count`: enough adjacent cache lines of a row for
/// prefetching, few enough to occupy several threads.
static int64_t chooseColumns(Value count) {
  constexpr int64_t least = 128, most = 512, parts = 8;
  std::optional<int64_t> known = getConstantIntValue(count);
  return known ? std::clamp<int64_t>(llvm::alignTo(llvm::divideCeil(*known, parts), least), least, most)
               : least;
}

/// Returns the sizes of the tensor's dimensions, each from an operand that has the dimension.
static SmallVector<Value> findSizes(OpBuilder &builder, Location loc, const ElementRegion &region) {
  SmallVector<Value> sizes(region.numDims);
  auto read = [&](Value operand, AffineMap map) {
    for (auto [position, expr] : llvm::enumerate(map.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr); dim && !sizes[dim.getPosition()])
        sizes[dim.getPosition()] = getValueOrCreateConstantIndexOp(
            builder, loc, memref::getMixedSize(builder, loc, operand, position));
  };
  AffineMap layout = builder.getMultiDimIdentityMap(region.numDims);
  if (auto cast = dyn_cast<QuantizeBlocksOp>(region.op); cast && cast.getTranspositions())
    layout = AffineMap::getPermutationMap(cast.getTransposition(0), builder.getContext());
  if (!isa<AmaxOp>(region.op))
    read(region.outs[0], layout);
  for (auto [operand, map] : llvm::zip(region.inputs, region.inputMaps()))
    read(operand, map);
  for (auto [operand, map] : llvm::zip(region.extras(), region.extraMaps()))
    read(operand, map);
  return sizes;
}

ElementLoops::ElementLoops(OpBuilder &builder, Operation *op)
    : builder(builder), loc(op->getLoc()), region(*ElementRegion::of(op)),
      sizes(findSizes(builder, loc, region)), sums(llvm::any_of(region.extraMaps(), isSummed)) {}

Value ElementLoops::index(OpBuilder &b, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

bool ElementLoops::isParallel() const {
  if (getTarget(region.op).hasManyThreads())
    return true;
  int64_t count = 1;
  for (Value size : sizes) {
    std::optional<int64_t> known = getConstantIntValue(size);
    if (!known)
      return true;
    count *= *known;
  }
  return count >= kParallelThreshold;
}

/// Returns the initial values of the maxima.
SmallVector<Value> ElementLoops::getInitialMaxima(OpBuilder &b) {
  if (region.amaxes.empty())
    return {};
  Value zero = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
  return SmallVector<Value>(region.amaxes.size(), zero);
}

void ElementLoops::storeMaxima(ValueRange bits) {
  for (auto [value, amax] : llvm::zip_equal(bits, region.amaxOuts())) {
    Value magnitude = arith::BitcastOp::create(builder, loc, builder.getF32Type(), value);
    memref::StoreOp::create(builder, loc, magnitude, amax);
  }
}

/// Returns the pairwise maxima.
static SmallVector<Value> buildMaxima(OpBuilder &b, Location loc, ValueRange a, ValueRange other) {
  SmallVector<Value> maxima;
  for (auto [x, y] : llvm::zip_equal(a, other))
    maxima.push_back(arith::MaxUIOp::create(b, loc, x, y));
  return maxima;
}

static SmallVector<Value> applyMap(OpBuilder &b, Location loc, AffineMap map, ValueRange indices) {
  return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) {
    return affine::expandAffineExpr(b, loc, expr, indices, ValueRange());
  });
}

void fp8::cloneElementCode(OpBuilder &b, const ElementRegion &region, IRMapping &mapping,
                           llvm::function_ref<Value(int64_t)> indexOf) {
  for (Operation &inner : region.body().without_terminator()) {
    if (auto index = dyn_cast<IndexOp>(inner))
      mapping.map(index.getResult(), indexOf(index.getDim()));
    else
      b.clone(inner, mapping);
  }
}

/// Returns the value that the region yields at `indices`; stores or sums the extra results.
SmallVector<Value> ElementLoops::compute(OpBuilder &b, ValueRange indices) {
  if (region.isEmpty())
    return {first ? first(b, loc, indices)
                  : memref::LoadOp::create(b, loc, region.inputs[0], indices).getResult()};
  IRMapping mapping;
  Block &body = region.body();
  if (first)
    mapping.map(body.getArgument(0), first(b, loc, indices));
  for (auto [i, input, map] : llvm::enumerate(region.inputs, region.inputMaps()))
    mapping.map(body.getArgument(region.firstArgument + i),
                memref::LoadOp::create(b, loc, input, applyMap(b, loc, map, indices)).getResult());
  cloneElementCode(b, region, mapping, [&](int64_t dim) { return indices[dim]; });
  SmallVector<Value> values =
      llvm::map_to_vector(region.yield()->getOperands(), [&](Value v) { return mapping.lookupOrDefault(v); });
  for (auto [value, out, map] :
       llvm::zip_equal(ArrayRef(values).drop_front(), region.extras(), region.extraMaps())) {
    SmallVector<Value> position = applyMap(b, loc, map, indices);
    Value stored = value;
    if (isSummed(map))
      stored = arith::AddFOp::create(b, loc, memref::LoadOp::create(b, loc, out, position), stored);
    memref::StoreOp::create(b, loc, stored, out, position);
  }
  return values;
}

/// Returns the column at the index `column` of the innermost loop.
Value ElementLoops::shift(OpBuilder &b, const Bounds &bounds, Value column) {
  return bounds.firstColumn ? arith::AddIOp::create(b, loc, bounds.firstColumn, column).getResult() : column;
}

/// Prefetches what `loop`, over columns of the row `row`, reads of a later row at `column`. Memory behind
/// the last row is prefetched, too: that has no effect.
void ElementLoops::prefetchRow(scf::ForOp loop, const Bounds &bounds, Value row, Value column) {
  OpBuilder b(loop);
  IRMapping mapping;
  mapping.map(row, arith::AddIOp::create(b, loc, row, arith::ConstantIndexOp::create(b, loc, kRowsAhead)));
  Value step = arith::ConstantIndexOp::create(b, loc, kLineElements);
  auto lines = scf::ForOp::create(b, loc, loop.getLowerBound(), loop.getUpperBound(), step);
  OpBuilder inside = OpBuilder::atBlockTerminator(lines.getBody());
  mapping.map(column, shift(inside, bounds, lines.getInductionVar()));
  llvm::SmallPtrSet<Value, 4> seen;
  for (auto load : loop.getOps<memref::LoadOp>()) {
    ValueRange indices = load.getIndices();
    if (indices.size() < 2 || indices.take_back(2)[0] != row || indices.back() != column ||
        !seen.insert(load.getMemRef()).second)
      continue;
    auto ahead = llvm::map_to_vector(indices, [&](Value i) { return mapping.lookupOrDefault(i); });
    memref::PrefetchOp::create(inside, loc, load.getMemRef(), ahead, /*isWrite=*/false, /*localityHint=*/3,
                               /*isDataCache=*/true);
  }
}

/// Builds sequential loops inside the loops `outer`; returns the maxima.
SmallVector<Value> ElementLoops::runInner(OpBuilder &b, const Bounds &bounds, ValueRange outer,
                                          ValueRange carried) {
  SmallVector<Value> indices(outer);
  unsigned d = outer.size();
  if (d == sizes.size()) {
    SmallVector<Value> values = compute(b, indices);
    element(b, loc, values[0], indices);
    SmallVector<Value> bits = llvm::map_to_vector(region.amaxes, [&](int64_t value) {
      return buildMagnitudeBits(b, loc, buildWiden(b, loc, values[value]));
    });
    return buildMaxima(b, loc, carried, bits);
  }
  bool isInnermost = d + 1 == sizes.size();
  auto loop = scf::ForOp::create(b, loc, bounds.lower[d], bounds.upper[d], index(b, 1), carried,
                                 [&](OpBuilder &inner, Location, Value i, ValueRange maxima) {
                                   indices.push_back(isInnermost ? shift(inner, bounds, i) : i);
                                   scf::YieldOp::create(inner, loc, runInner(inner, bounds, indices, maxima));
                                 });
  if (prefetches && isInnermost)
    prefetchRow(loop, bounds, outer.back(), indices.back());
  return SmallVector<Value>(loop.getResults());
}

/// Runs `count` parts of the tensor, in parallel if it is large enough, then combines their maxima.
void ElementLoops::runParts(Value count, PartBuilder buildPart) {
  Value zero = index(builder, 0), one = index(builder, 1);
  SmallVector<Value> ofParts; // an array of maxima per amax
  for (size_t i = 0; i < region.amaxes.size(); ++i) {
    int64_t known = getConstantIntValue(count).value_or(ShapedType::kDynamic);
    ofParts.push_back(
        memref::AllocOp::create(builder, loc, MemRefType::get({known}, builder.getI32Type()),
                                ShapedType::isDynamic(known) ? ValueRange(count) : ValueRange()));
  }
  auto part = [&](OpBuilder &b, Location, ValueRange number) {
    SmallVector<Value> maxima = buildPart(b, number[0], getInitialMaxima(b));
    for (auto [maximum, all] : llvm::zip_equal(maxima, ofParts))
      memref::StoreOp::create(b, loc, maximum, all, number);
  };
  if (isParallel())
    scf::ParallelOp::create(builder, loc, ValueRange(zero), ValueRange(count), ValueRange(one), part);
  else
    scf::buildLoopNest(builder, loc, zero, count, one, part);
  if (ofParts.empty())
    return;
  auto maxima = scf::ForOp::create(builder, loc, zero, count, one, getInitialMaxima(builder),
                                   [&](OpBuilder &b, Location, Value i, ValueRange carried) {
                                     SmallVector<Value> values =
                                         llvm::map_to_vector(ofParts, [&](Value all) -> Value {
                                           return memref::LoadOp::create(b, loc, all, i);
                                         });
                                     scf::YieldOp::create(b, loc, buildMaxima(b, loc, carried, values));
                                   });
  storeMaxima(maxima.getResults());
}

void ElementLoops::clearSums() {
  Value zero = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0.0f));
  for (auto [out, map] : llvm::zip_equal(region.extras(), region.extraMaps()))
    if (isSummed(map))
      linalg::FillOp::create(builder, loc, zero, out);
}

void ElementLoops::run(ElementBuilder elementBuilder, FirstBuilder firstBuilder) {
  element = elementBuilder;
  first = firstBuilder;
  clearSums();
  Bounds whole{SmallVector<Value>(sizes.size(), index(builder, 0)), sizes};
  bool sumsAll = llvm::any_of(region.extraMaps(), [](AffineMap map) { return map.getNumResults() == 0; });
  bool inRow = region.op->getParentOfType<scf::ParallelOp>() != nullptr;
  if (sizes.size() < 2 || inRow || (sums && sumsAll)) {
    storeMaxima(runInner(builder, whole, {}, getInitialMaxima(builder)));
    return;
  }
  if (!sums) {
    runParts(sizes[0],
             [&](OpBuilder &b, Value row, ValueRange carried) { return runInner(b, whole, row, carried); });
    return;
  }
  bool manyThreads = getTarget(region.op).hasManyThreads();
  int64_t columns = manyThreads ? 1 : chooseColumns(sizes.back());
  Value count = builder.createOrFold<arith::CeilDivUIOp>(loc, sizes.back(), index(builder, columns));
  prefetches = !manyThreads && !isOneInteger(count);
  std::optional<int64_t> known = getConstantIntValue(sizes.back());
  bool isEven = known && *known % columns == 0;
  runParts(count, [&](OpBuilder &b, Value group, ValueRange carried) {
    Bounds bounds = whole;
    Value first = arith::MulIOp::create(b, loc, group, index(b, columns));
    if (isEven) { // a loop of constant length, of which LLVM computes several vectors at a time
      bounds.firstColumn = first;
      bounds.upper.back() = index(b, columns);
    } else {
      Value end = arith::AddIOp::create(b, loc, first, index(b, columns));
      bounds.lower.back() = first;
      bounds.upper.back() = arith::MinUIOp::create(b, loc, end, sizes.back());
    }
    return runInner(b, bounds, {}, carried);
  });
}
