// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expands casts and amaxes with rows into loops over the rows, still on tensors, so that
// bufferization allocates the temporaries of a row. Sums over the rows keep the order of the rows:
// the rows of a chunk write their summands into a buffer in parallel, which is then summed.

#include "fp8/Conversion/Passes.h"
#include "fp8/Dialect/FP8/IR/CastParts.h"
#include "fp8/Dialect/FP8/IR/ElementRegion.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_EXPANDROWS
#include "fp8/Conversion/Passes.h.inc"

namespace {

/// A slice of a tensor, of a rank reduced by the dimensions in which it has a single index.
struct Slice {
  SmallVector<OpFoldResult> offsets, sizes, strides;
  RankedTensorType type;
};

class RowExpander {
public:
  RowExpander(RewriterBase &rewriter, Operation *op)
      : rewriter(rewriter), loc(op->getLoc()), op(op), quantize(dyn_cast<QuantizeOp>(op)),
        region(*ElementRegion::of(op)), outer(region.outerDims()) {}

  void expand();

private:
  /// A tensor that the loops write, with the map to a row's part of it.
  struct Target {
    AffineMap map;
    int64_t result; ///< number of the operation's result; -1 for the amaxes of the rows
  };

  OpFoldResult sizeOf(unsigned dim);
  Slice sliceAt(OpBuilder &b, Value tensor, AffineMap map, ArrayRef<OpFoldResult> indices);
  Value readPart(OpBuilder &b, Value tensor, AffineMap map, ArrayRef<OpFoldResult> indices);

  void findTargets(SmallVectorImpl<Value> &tensors);
  SmallVector<Value> runRow(OpBuilder &b, ArrayRef<OpFoldResult> indices, ValueRange tensors,
                            SmallVectorImpl<Slice> &slices, SmallVectorImpl<Value> &addends);
  Value castRow(OpBuilder &b, Value row, ArrayRef<Value> outs);
  SmallVector<Value> runRows(OpBuilder &b, ArrayRef<OpFoldResult> counts, ValueRange tensors,
                             ValueRange buffers,
                             function_ref<SmallVector<OpFoldResult>(OpBuilder &, ValueRange)> findIndices);
  SmallVector<Value> runChunks(SmallVector<Value> tensors);
  SmallVector<int64_t> chooseChunk();
  Value sumChunk(OpBuilder &b, Value buffer, ArrayRef<OpFoldResult> counts, Value sum);
  Value invertScale();
  Value randomOfRow(OpBuilder &b, ArrayRef<OpFoldResult> indices);
  int64_t countRowElements();

  RewriterBase &rewriter;
  Location loc;
  Operation *op;
  QuantizeOp quantize;
  ElementRegion region;
  SmallVector<unsigned> outer;
  SmallVector<Target> targets;
  SmallVector<unsigned> sums; ///< the extra results that are sums
};

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

OpFoldResult RowExpander::sizeOf(unsigned dim) {
  SmallVector<Value> operands(region.inputs);
  llvm::append_range(operands, region.extras());
  SmallVector<AffineMap> maps(region.maps);
  if (quantize) {
    operands.push_back(region.outs[0]);
    maps.push_back(rewriter.getMultiDimIdentityMap(region.numDims));
  }
  for (auto [operand, map] : llvm::zip_equal(operands, maps))
    for (auto [position, expr] : llvm::enumerate(map.getResults()))
      if (expr == rewriter.getAffineDimExpr(dim))
        return tensor::getMixedSize(rewriter, loc, operand, position);
  llvm_unreachable("verified: every dimension is one of an operand");
}

Slice RowExpander::sliceAt(OpBuilder &b, Value tensor, AffineMap map, ArrayRef<OpFoldResult> indices) {
  auto type = cast<RankedTensorType>(tensor.getType());
  Slice slice;
  SmallVector<int64_t> kept;
  for (auto [position, expr] : llvm::enumerate(map.getResults())) {
    bool whole = isRowDim(expr, region.rows);
    int64_t size = whole ? type.getDimSize(position) : 1;
    OpFoldResult offset = b.getIndexAttr(0);
    if (!whole)
      offset =
          affine::makeComposedFoldedAffineApply(b, loc, AffineMap::get(map.getNumDims(), 0, expr), indices);
    else
      kept.push_back(size);
    slice.offsets.push_back(offset);
    slice.sizes.push_back(b.getIndexAttr(size));
    slice.strides.push_back(b.getIndexAttr(1));
  }
  slice.type = RankedTensorType::get(kept, type.getElementType());
  return slice;
}

Value RowExpander::readPart(OpBuilder &b, Value tensor, AffineMap map, ArrayRef<OpFoldResult> indices) {
  Slice slice = sliceAt(b, tensor, map, indices);
  if (slice.type.getRank() == 0)
    return tensor::ExtractOp::create(b, loc, tensor, getValueOrCreateConstantIndexOp(b, loc, slice.offsets));
  return tensor::ExtractSliceOp::create(b, loc, slice.type, tensor, slice.offsets, slice.sizes,
                                        slice.strides);
}

//===----------------------------------------------------------------------===//
// One row
//===----------------------------------------------------------------------===//

/// Finds the tensors that the loops write and the sums, and creates the initial `tensors`.
void RowExpander::findTargets(SmallVectorImpl<Value> &tensors) {
  auto add = [&](AffineMap map, int64_t result) {
    targets.push_back({map, result});
    tensors.push_back(region.outs[result]);
  };
  if (quantize)
    add(rewriter.getMultiDimIdentityMap(region.numDims), 0);
  if (quantize && quantize.getTransposition())
    add(AffineMap::getPermutationMap(*quantize.getTransposition(), op->getContext()),
        quantize.getDataTIndex());
  for (auto [i, map] : llvm::enumerate(region.extraMaps())) {
    if (region.sums(map))
      sums.push_back(i);
    else
      add(map, region.firstExtra() + i);
  }
  if (quantize && !quantize.getRecordAmax())
    return;
  SmallVector<OpFoldResult> sizes = llvm::map_to_vector(outer, [&](unsigned dim) { return sizeOf(dim); });
  SmallVector<AffineExpr> exprs =
      llvm::map_to_vector(outer, [&](unsigned dim) { return rewriter.getAffineDimExpr(dim); });
  targets.push_back({AffineMap::get(region.numDims, 0, exprs, op->getContext()), -1});
  tensors.push_back(tensor::EmptyOp::create(rewriter, loc, sizes, rewriter.getF32Type()));
}

/// Creates the cast or the amax of one row. Returns its results, in the order of `outs`.
static SmallVector<Value> castOrMeasure(OpBuilder &b, Location loc, QuantizeOp quantize, Value row,
                                        Value random, ArrayRef<int64_t> rows, SmallVector<Value> outs) {
  if (!quantize)
    return SmallVector<Value>(AmaxOp::create(b, loc, TypeRange(ValueRange(outs)), row, outs).getResults());
  // scale_inv is the same for all rows and computed outside of the loops.
  Value unused = tensor::EmptyOp::create(b, loc, ArrayRef<int64_t>{}, b.getF32Type());
  outs.insert(outs.begin() + quantize.getScaleInvIndex(), unused);
  QuantizeParts parts(quantize, row, outs);
  parts.random = random;
  parts.indexingMaps = {};
  parts.rows = {};
  if (quantize.getTransposition()) {
    SmallVector<int64_t> order;
    ArrayRef<int64_t> whole = *quantize.getTransposition();
    for (int64_t dim : whole)
      if (const auto *found = llvm::find(rows, dim); found != rows.end())
        order.push_back(found - rows.begin());
    parts.transposition = b.getDenseI64ArrayAttr(order);
  }
  SmallVector<Value> results(parts.create(b, loc).getResults());
  results.erase(results.begin() + quantize.getScaleInvIndex());
  return results;
}

/// Returns seed, step and the number of the row's first element; null for a cast without random bits. The
/// rows are the last dimensions (fp8-fuse-rows).
Value RowExpander::randomOfRow(OpBuilder &b, ArrayRef<OpFoldResult> indices) {
  if (!quantize || !quantize.getRandom())
    return {};
  Value random = quantize.getRandom(), number = arith::ConstantIndexOp::create(b, loc, 0);
  for (unsigned dim = 0; dim < region.numDims; ++dim) {
    Value size = getValueOrCreateConstantIndexOp(b, loc, sizeOf(dim)),
          index = getValueOrCreateConstantIndexOp(b, loc, indices[dim]);
    number = b.createOrFold<arith::AddIOp>(loc, b.createOrFold<arith::MulIOp>(loc, number, size), index);
  }
  number = arith::IndexCastOp::create(b, loc, b.getI64Type(), number);
  auto element = [&](int64_t i) -> Value {
    Value index = arith::ConstantIndexOp::create(b, loc, i);
    return tensor::ExtractOp::create(b, loc, random, index);
  };
  if (cast<ShapedType>(random.getType()).getDimSize(0) == 3)
    number = arith::AddIOp::create(b, loc, number, element(2));
  return tensor::FromElementsOp::create(b, loc, ValueRange{element(0), element(1), number});
}

/// Computes the row at `indices` of the tensor's dimensions (0 in those of the row). Returns the
/// values that it writes to `tensors` at `slices`; `addends` receives its summands of the sums.
SmallVector<Value> RowExpander::runRow(OpBuilder &b, ArrayRef<OpFoldResult> indices, ValueRange tensors,
                                       SmallVectorImpl<Slice> &slices, SmallVectorImpl<Value> &addends) {
  IRMapping mapping;
  Block &body = region.body();
  for (auto [argument, dim] : llvm::zip(body.getArguments(), outer))
    mapping.map(argument, getValueOrCreateConstantIndexOp(b, loc, indices[dim]));
  for (auto [i, input, map] : llvm::enumerate(region.inputs, region.inputMaps()))
    mapping.map(body.getArgument(region.firstArgument + i), readPart(b, input, map, indices));
  for (Operation &inner : body.without_terminator())
    b.clone(inner, mapping);
  auto yielded = [&](unsigned i) { return mapping.lookupOrDefault(region.yield()->getOperand(i)); };
  for (unsigned sum : sums)
    addends.push_back(yielded(1 + sum));

  SmallVector<Value> parts, outs;
  for (auto [target, tensor] : llvm::zip_equal(targets, tensors)) {
    const Slice &slice = slices.emplace_back(sliceAt(b, tensor, target.map, indices));
    int64_t extra = target.result - region.firstExtra();
    Value value = target.result >= 0 && extra >= 0 ? yielded(1 + extra) : Value();
    if (value && slice.type.getRank() != 0) {
      parts.push_back(value);
      continue;
    }
    Value part =
        tensor::ExtractSliceOp::create(b, loc, slice.type, tensor, slice.offsets, slice.sizes, slice.strides);
    parts.push_back(value ? tensor::InsertOp::create(b, loc, value, part, ValueRange()).getResult()
                          : Value());
    if (!value)
      outs.push_back(part);
  }
  SmallVector<Value> written =
      castOrMeasure(b, loc, quantize, yielded(0), randomOfRow(b, indices), region.rows, outs);
  auto *next = written.begin();
  for (Value &part : parts)
    if (!part)
      part = *next++;
  return parts;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

int64_t RowExpander::countRowElements() {
  int64_t count = 1;
  for (int64_t dim : region.rows)
    count *= *getConstantIntValue(sizeOf(dim));
  return count;
}

/// Runs rows in parallel. Each row writes its summands to `buffers`. Returns the written tensors and
/// buffers.
SmallVector<Value>
RowExpander::runRows(OpBuilder &b, ArrayRef<OpFoldResult> counts, ValueRange tensors, ValueRange buffers,
                     function_ref<SmallVector<OpFoldResult>(OpBuilder &, ValueRange)> findIndices) {
  SmallVector<Value> shared(tensors);
  llvm::append_range(shared, buffers);
  auto loop = scf::ForallOp::create(b, loc, counts, shared, /*mapping=*/std::nullopt);
  loop->setAttr(kRowElementsAttrName, b.getI64IntegerAttr(countRowElements()));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<OpFoldResult> indices = findIndices(b, loop.getInductionVars());
  SmallVector<Slice> slices;
  SmallVector<Value> addends;
  ValueRange arguments(loop.getRegionIterArgs());
  SmallVector<Value> parts = runRow(b, indices, arguments.take_front(tensors.size()), slices, addends);
  // A buffer has one row of its own per row of the tensor.
  for (Value addend : addends) {
    auto type = cast<RankedTensorType>(addend.getType());
    SmallVector<OpFoldResult> ones(counts.size(), b.getIndexAttr(1));
    Slice slice{getAsOpFoldResult(loop.getInductionVars()), ones, ones, type};
    for (int64_t size : type.getShape()) {
      slice.offsets.push_back(b.getIndexAttr(0));
      slice.sizes.push_back(b.getIndexAttr(size));
      slice.strides.push_back(b.getIndexAttr(1));
    }
    slices.push_back(slice);
    parts.push_back(addend);
  }
  b.setInsertionPointToEnd(loop.getTerminator().getBody());
  for (auto [part, argument, slice] : llvm::zip_equal(parts, arguments, slices))
    tensor::ParallelInsertSliceOp::create(b, loc, part, argument, slice.offsets, slice.sizes, slice.strides);
  return SmallVector<Value>(loop.getResults());
}

/// Adds the first `counts` rows of `buffer` to `sum`, in order.
Value RowExpander::sumChunk(OpBuilder &b, Value buffer, ArrayRef<OpFoldResult> counts, Value sum) {
  auto type = cast<RankedTensorType>(buffer.getType());
  unsigned rank = type.getRank();
  SmallVector<OpFoldResult> offsets(rank, b.getIndexAttr(0)), strides(rank, b.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, buffer);
  llvm::copy(counts, sizes.begin());
  Value rows = tensor::ExtractSliceOp::create(b, loc, buffer, offsets, sizes, strides);
  AffineMap all = b.getMultiDimIdentityMap(rank);
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  std::fill_n(iterators.begin(), counts.size(), utils::IteratorType::reduction);
  AffineMap row = all.getMinorSubMap(rank - counts.size());
  return linalg::GenericOp::create(b, loc, sum.getType(), rows, sum, {all, row}, iterators,
                                   [](OpBuilder &inner, Location loc, ValueRange values) {
                                     Value total = arith::AddFOp::create(inner, loc, values[1], values[0]);
                                     linalg::YieldOp::create(inner, loc, total);
                                   })
      .getResult(0);
}

/// Returns the sizes of a chunk of rows: whole dimensions from the last one on, and a part of the next.
SmallVector<int64_t> RowExpander::chooseChunk() {
  SmallVector<int64_t> chunk(outer.size(), 1);
  int64_t most = std::max<int64_t>(1, getTarget(op).getRowChunkElements() / countRowElements());
  for (auto [size, dim] : llvm::reverse(llvm::zip_equal(chunk, outer))) {
    std::optional<int64_t> known = getConstantIntValue(sizeOf(dim));
    size = known ? std::clamp<int64_t>(*known, 1, most) : most;
    if (!known || size < *known)
      break;
    most /= size;
  }
  return chunk;
}

/// Runs chunks of rows one after the other, the rows of a chunk in parallel. Returns the written
/// `tensors`, then the sums.
SmallVector<Value> RowExpander::runChunks(SmallVector<Value> tensors) {
  size_t numTensors = tensors.size();
  Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
  Value noSum = arith::ConstantOp::create(rewriter, loc, rewriter.getF32FloatAttr(0.0f));
  for (unsigned sum : sums)
    tensors.push_back(linalg::FillOp::create(rewriter, loc, noSum, region.extras()[sum]).getResult(0));
  SmallVector<int64_t> chunk = chooseChunk();
  SmallVector<OpFoldResult> sizes = llvm::map_to_vector(outer, [&](unsigned dim) { return sizeOf(dim); });
  SmallVector<Value> lower(outer.size(), zero), upper, steps;
  for (auto [size, step] : llvm::zip_equal(sizes, chunk)) {
    upper.push_back(getValueOrCreateConstantIndexOp(rewriter, loc, size));
    steps.push_back(arith::ConstantIndexOp::create(rewriter, loc, step));
  }
  // The dimensions of a chunk; those before it have one index.
  size_t first =
      llvm::find_if(ArrayRef(chunk).drop_back(), [](int64_t size) { return size > 1; }) - chunk.begin();
  scf::LoopNest nest = scf::buildLoopNest(
      rewriter, loc, lower, upper, steps, tensors,
      [&](OpBuilder &b, Location, ValueRange starts, ValueRange carried) -> scf::ValueVector {
        SmallVector<OpFoldResult> counts;
        for (size_t i = first; i < chunk.size(); ++i) {
          counts.push_back(b.getIndexAttr(chunk[i]));
          std::optional<int64_t> known = getConstantIntValue(sizes[i]);
          if (known && *known % chunk[i] == 0)
            continue;
          AffineExpr left = b.getAffineSymbolExpr(0) - b.getAffineDimExpr(0);
          AffineMap map = AffineMap::get(1, 1, {b.getAffineConstantExpr(chunk[i]), left}, b.getContext());
          counts.back() = affine::makeComposedFoldedAffineMin(b, loc, map, {starts[i], sizes[i]});
        }
        SmallVector<Value> buffers;
        for (Value sum : carried.drop_front(numTensors)) {
          SmallVector<int64_t> shape(chunk.begin() + first, chunk.end());
          llvm::append_range(shape, cast<RankedTensorType>(sum.getType()).getShape());
          buffers.push_back(tensor::EmptyOp::create(b, loc, shape, b.getF32Type()));
        }
        auto findIndices = [&](OpBuilder &inner, ValueRange row) {
          SmallVector<OpFoldResult> indices(region.numDims, inner.getIndexAttr(0));
          for (auto [dim, start] : llvm::zip_equal(outer, starts))
            indices[dim] = start;
          AffineExpr position = inner.getAffineDimExpr(0) + inner.getAffineDimExpr(1);
          for (auto [dim, index] : llvm::zip_equal(ArrayRef(outer).drop_front(first), row))
            indices[dim] = affine::makeComposedFoldedAffineApply(inner, loc, position, {indices[dim], index});
          return indices;
        };
        SmallVector<Value> written = runRows(b, counts, carried.take_front(numTensors), buffers, findIndices);
        for (auto [buffer, sum] :
             llvm::zip_equal(MutableArrayRef(written).drop_front(numTensors), carried.drop_front(numTensors)))
          buffer = sumChunk(b, buffer, counts, sum);
        return scf::ValueVector(written.begin(), written.end());
      });
  return SmallVector<Value>(nest.results);
}

/// Computes scale_inv, correctly rounded, as for any other cast.
Value RowExpander::invertScale() {
  Value scale = tensor::ExtractOp::create(rewriter, loc, quantize.getScale(), ValueRange());
  Value unit = arith::ConstantOp::create(rewriter, loc, rewriter.getF32FloatAttr(1.0f));
  Value inverse = arith::DivFOp::create(rewriter, loc, unit, scale);
  return tensor::InsertOp::create(rewriter, loc, inverse, region.outs[quantize.getScaleInvIndex()],
                                  ValueRange());
}

void RowExpander::expand() {
  rewriter.setInsertionPoint(op);
  SmallVector<Value> tensors;
  findTargets(tensors);
  SmallVector<Value> written;
  if (sums.empty()) {
    SmallVector<OpFoldResult> counts = llvm::map_to_vector(outer, [&](unsigned dim) { return sizeOf(dim); });
    written = runRows(rewriter, counts, tensors, {}, [&](OpBuilder &b, ValueRange row) {
      SmallVector<OpFoldResult> indices(region.numDims, b.getIndexAttr(0));
      for (auto [dim, index] : llvm::zip_equal(outer, row))
        indices[dim] = index;
      return indices;
    });
  } else {
    written = runChunks(tensors);
  }
  SmallVector<Value> results(op->getNumResults());
  for (auto [target, value] : llvm::zip(targets, written)) {
    if (target.result >= 0) {
      results[target.result] = value;
      continue;
    }
    unsigned result = quantize ? quantize.getAmaxIndex() : 0;
    Value out = region.outs[result];
    results[result] = AmaxOp::create(rewriter, loc, out.getType(), value, out).getResult(0);
  }
  for (auto [sum, value] : llvm::zip_equal(sums, ArrayRef(written).drop_front(targets.size())))
    results[region.firstExtra() + sum] = value;
  if (quantize)
    results[quantize.getScaleInvIndex()] = invertScale();
  rewriter.replaceOp(op, results);
}

class ExpandRows : public impl::ExpandRowsBase<ExpandRows> {
public:
  void runOnOperation() final {
    auto isOnVectors = [](const ElementRegion &region) {
      return llvm::any_of(region.yield()->getOperandTypes(), llvm::IsaPred<VectorType>);
    };
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (!isa<AmaxOp, QuantizeOp>(op))
        return;
      ElementRegion region = *ElementRegion::of(op);
      if (!region.rows.empty() && !isOnVectors(region))
        ops.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (Operation *op : ops)
      RowExpander(rewriter, op).expand();
  }
};

} // namespace
} // namespace fp8
