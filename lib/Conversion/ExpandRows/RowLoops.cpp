// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loops over rows: all rows in parallel, or chunks of them in order, whose summands a buffer holds.

#include "RowExpander.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fp8;

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
  SmallVector<RowSlice> slices;
  SmallVector<Value> addends;
  ValueRange arguments(loop.getRegionIterArgs());
  SmallVector<Value> parts = runRow(b, indices, arguments.take_front(tensors.size()), slices, addends);
  // A buffer has one row of its own per row of the tensor.
  for (Value addend : addends) {
    auto type = cast<RankedTensorType>(addend.getType());
    SmallVector<OpFoldResult> ones(counts.size(), b.getIndexAttr(1));
    RowSlice slice{getAsOpFoldResult(loop.getInductionVars()), ones, ones, type};
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
