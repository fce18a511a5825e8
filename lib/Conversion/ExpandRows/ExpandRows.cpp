// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expands casts and amaxes with rows into loops over the rows, still on tensors, so that
// bufferization allocates the temporaries of a row. Sums over the rows keep the order of the rows:
// the rows of a chunk write their summands into a buffer in parallel, which is then summed.

#include "RowExpander.h"
#include "fp8/Conversion/Passes.h"
#include "fp8/Dialect/FP8/IR/CastParts.h"
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

RowSlice RowExpander::sliceAt(OpBuilder &b, Value tensor, AffineMap map, ArrayRef<OpFoldResult> indices) {
  auto type = cast<RankedTensorType>(tensor.getType());
  RowSlice slice;
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
  RowSlice slice = sliceAt(b, tensor, map, indices);
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
                                       SmallVectorImpl<RowSlice> &slices, SmallVectorImpl<Value> &addends) {
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
    const RowSlice &slice = slices.emplace_back(sliceAt(b, tensor, target.map, indices));
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

namespace {

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
