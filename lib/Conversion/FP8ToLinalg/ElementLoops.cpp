// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows in parallel, a maximum per row, then the maximum of the rows. Where there are sums
// over the rows, groups of columns in parallel, so that each sum keeps its order.

#include "ElementLoops.h"
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
static constexpr int64_t kParallelThreshold = 32768;

/// Columns that one thread sums: enough neighbouring cache lines of a row to be fetched ahead, few
/// enough for several threads.
static constexpr int64_t kColumns = 128;

/// The sizes of the tensor's dimensions, each read off an operand that has it.
static SmallVector<Value> findSizes(OpBuilder &builder, Location loc, const ElementRegion &region) {
  SmallVector<Value> sizes(region.numDims);
  auto read = [&](Value operand, AffineMap map) {
    for (auto [position, expr] : llvm::enumerate(map.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr); dim && !sizes[dim.getPosition()])
        sizes[dim.getPosition()] = getValueOrCreateConstantIndexOp(
            builder, loc, memref::getMixedSize(builder, loc, operand, position));
  };
  if (!isa<AmaxOp>(region.op))
    read(region.outs[0], builder.getMultiDimIdentityMap(region.numDims));
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
  int64_t count = 1;
  for (Value size : sizes) {
    std::optional<int64_t> known = getConstantIntValue(size);
    if (!known)
      return true;
    count *= *known;
  }
  return count >= kParallelThreshold;
}

/// The starting value of the maximum; empty where none is wanted.
SmallVector<Value> ElementLoops::noMaximum(OpBuilder &b, bool wanted) {
  if (!wanted)
    return {};
  return {arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0))};
}

void ElementLoops::storeMaximum(Value amax, Value bits) {
  if (!amax)
    return;
  Value value = arith::BitcastOp::create(builder, loc, builder.getF32Type(), bits);
  memref::StoreOp::create(builder, loc, value, amax);
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

/// The element at `indices`; extra results are stored or added on the way.
Value ElementLoops::compute(OpBuilder &b, ValueRange indices) {
  if (region.isEmpty())
    return first ? first(b, loc, indices)
                 : memref::LoadOp::create(b, loc, region.inputs[0], indices).getResult();
  IRMapping mapping;
  Block &body = region.body();
  if (first)
    mapping.map(body.getArgument(0), first(b, loc, indices));
  for (auto [i, input, map] : llvm::enumerate(region.inputs, region.inputMaps()))
    mapping.map(body.getArgument(region.firstArgument + i),
                memref::LoadOp::create(b, loc, input, applyMap(b, loc, map, indices)).getResult());
  cloneElementCode(b, region, mapping, [&](int64_t dim) { return indices[dim]; });
  for (auto [yielded, out, map] :
       llvm::zip_equal(region.yield().getExtras(), region.extras(), region.extraMaps())) {
    SmallVector<Value> position = applyMap(b, loc, map, indices);
    Value value = mapping.lookupOrDefault(yielded);
    if (isSummed(map))
      value = arith::AddFOp::create(b, loc, memref::LoadOp::create(b, loc, out, position), value);
    memref::StoreOp::create(b, loc, value, out, position);
  }
  return mapping.lookupOrDefault(region.yield().getValue());
}

/// Sequential loops inside `outer`; returns the maximum.
Value ElementLoops::runInner(OpBuilder &b, const Bounds &bounds, ValueRange outer, ValueRange carried) {
  SmallVector<Value> indices(outer);
  unsigned d = outer.size();
  if (d == sizes.size()) {
    Value bits = element(b, loc, compute(b, indices), indices);
    return carried.empty() ? Value() : Value(arith::MaxUIOp::create(b, loc, carried[0], bits));
  }
  auto loop = scf::ForOp::create(b, loc, bounds.lower[d], bounds.upper[d], index(b, 1), carried,
                                 [&](OpBuilder &inner, Location, Value i, ValueRange maxima) {
                                   indices.push_back(i);
                                   Value result = runInner(inner, bounds, indices, maxima);
                                   scf::YieldOp::create(inner, loc,
                                                        maxima.empty() ? ValueRange() : ValueRange(result));
                                 });
  return carried.empty() ? Value() : loop.getResult(0);
}

/// `count` parts of the tensor, in parallel where it is large enough; then their maximum.
void ElementLoops::runParts(Value amax, Value count, PartBuilder buildPart) {
  Value zero = index(builder, 0), one = index(builder, 1), maxima;
  if (amax) {
    int64_t known = getConstantIntValue(count).value_or(ShapedType::kDynamic);
    maxima = memref::AllocOp::create(builder, loc, MemRefType::get({known}, builder.getI32Type()),
                                     ShapedType::isDynamic(known) ? ValueRange(count) : ValueRange());
  }
  auto part = [&](OpBuilder &b, Location, ValueRange number) {
    Value maximum = buildPart(b, number[0], noMaximum(b, bool(amax)));
    if (amax)
      memref::StoreOp::create(b, loc, maximum, maxima, number);
  };
  if (isParallel())
    scf::ParallelOp::create(builder, loc, ValueRange(zero), ValueRange(count), ValueRange(one), part);
  else
    scf::buildLoopNest(builder, loc, zero, count, one, part);
  if (!amax)
    return;
  auto maximum = scf::ForOp::create(builder, loc, zero, count, one, noMaximum(builder, true),
                                    [&](OpBuilder &b, Location, Value i, ValueRange carried) {
                                      Value value = memref::LoadOp::create(b, loc, maxima, i);
                                      Value larger = arith::MaxUIOp::create(b, loc, carried[0], value);
                                      scf::YieldOp::create(b, loc, larger);
                                    });
  storeMaximum(amax, maximum.getResult(0));
}

void ElementLoops::clearSums() {
  Value zero = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0.0f));
  for (auto [out, map] : llvm::zip_equal(region.extras(), region.extraMaps()))
    if (isSummed(map))
      linalg::FillOp::create(builder, loc, zero, out);
}

void ElementLoops::run(Value amax, ElementBuilder elementBuilder, FirstBuilder firstBuilder) {
  element = elementBuilder;
  first = firstBuilder;
  clearSums();
  Bounds whole{SmallVector<Value>(sizes.size(), index(builder, 0)), sizes};
  bool sumsAll = llvm::any_of(region.extraMaps(), [](AffineMap map) { return map.getNumResults() == 0; });
  bool inRow = region.op->getParentOfType<scf::ParallelOp>() != nullptr;
  if (sizes.size() < 2 || inRow || (sums && sumsAll)) {
    storeMaximum(amax, runInner(builder, whole, {}, noMaximum(builder, bool(amax))));
    return;
  }
  if (!sums) {
    runParts(amax, sizes[0],
             [&](OpBuilder &b, Value row, ValueRange carried) { return runInner(b, whole, row, carried); });
    return;
  }
  Value count = builder.createOrFold<arith::CeilDivUIOp>(loc, sizes.back(), index(builder, kColumns));
  runParts(amax, count, [&](OpBuilder &b, Value group, ValueRange carried) {
    Bounds bounds = whole;
    bounds.lower.back() = arith::MulIOp::create(b, loc, group, index(b, kColumns));
    Value end = arith::AddIOp::create(b, loc, bounds.lower.back(), index(b, kColumns));
    bounds.upper.back() = arith::MinUIOp::create(b, loc, end, sizes.back());
    return runInner(b, bounds, {}, carried);
  });
}
