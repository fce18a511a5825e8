// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gathers and scatters along another dimension than the first: communicators move contiguous elements, so
// the parts of the ranks are one after the other on that side, and a transposition puts them in place.

#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_EXPANDCOLLECTIVES
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// Groups of the dimensions of a tensor of `rank` dimensions, one of which, `dim`, becomes two.
SmallVector<ReassociationIndices> divideDim(int64_t rank, int64_t dim) {
  SmallVector<ReassociationIndices> groups(rank);
  int64_t next = 0;
  for (int64_t d = 0; d < rank; ++d)
    for (int64_t i = 0; i < (d == dim ? 2 : 1); ++i)
      groups[d].push_back(next++);
  return groups;
}

Value emptyOf(OpBuilder &builder, Location loc, ArrayRef<OpFoldResult> sizes, Value like) {
  return tensor::EmptyOp::create(builder, loc, sizes, getElementTypeOrSelf(like));
}

Value expand(OpBuilder &builder, Location loc, Value value, int64_t dim, ArrayRef<OpFoldResult> sizes) {
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(sizes, dynamic, shape);
  auto type = cast<RankedTensorType>(value.getType());
  return tensor::ExpandShapeOp::create(builder, loc, type.clone(shape), value, divideDim(type.getRank(), dim),
                                       sizes);
}

Value transpose(OpBuilder &builder, Location loc, Value value, ArrayRef<OpFoldResult> sizes,
                ArrayRef<int64_t> order) {
  SmallVector<OpFoldResult> moved = llvm::map_to_vector(order, [&](int64_t d) { return sizes[d]; });
  Value init = emptyOf(builder, loc, moved, value);
  return linalg::TransposeOp::create(builder, loc, value, init, order)->getResult(0);
}

Value collapse(OpBuilder &builder, Location loc, Value value, int64_t dim, Type type) {
  int64_t rank = cast<RankedTensorType>(value.getType()).getRank() - 1;
  Value collapsed = tensor::CollapseShapeOp::create(builder, loc, value, divideDim(rank, dim));
  return collapsed.getType() == type ? collapsed
                                     : tensor::CastOp::create(builder, loc, type, collapsed).getResult();
}

/// Multiplies size 0 of `sizes` by the number of ranks.
SmallVector<OpFoldResult> timesRanks(OpBuilder &builder, Location loc, ArrayRef<OpFoldResult> sizes,
                                     int64_t ranks) {
  SmallVector<OpFoldResult> product(sizes);
  if (std::optional<int64_t> size = getConstantIntValue(sizes[0])) {
    product[0] = builder.getIndexAttr(*size * ranks);
    return product;
  }
  Value count = arith::ConstantIndexOp::create(builder, loc, ranks);
  product[0] = arith::MulIOp::create(builder, loc, cast<Value>(sizes[0]), count).getResult();
  return product;
}

void expandGather(AllGatherOp op, int64_t ranks) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  int64_t dim = op.getDim();
  SmallVector<OpFoldResult> part = tensor::getMixedSizes(builder, loc, op.getInput());
  Value init = emptyOf(builder, loc, timesRanks(builder, loc, part, ranks), op.getInput());
  auto gathered = AllGatherOp::create(builder, loc, TypeRange(init.getType()), op.getInput(), init,
                                      builder.getI64IntegerAttr(0), op.getGridAttr(), op.getAxesAttr(),
                                      op.getLabelAttr());
  gathered->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  SmallVector<OpFoldResult> sizes = part;
  sizes.insert(sizes.begin(), builder.getIndexAttr(ranks));
  Value parts = expand(builder, loc, gathered->getResult(0), 0, sizes);
  SmallVector<int64_t> order;
  for (int64_t d = 0; d < static_cast<int64_t>(part.size()); ++d) {
    if (d == dim)
      order.push_back(0);
    order.push_back(d + 1);
  }
  Value placed = transpose(builder, loc, parts, sizes, order);
  op->getResult(0).replaceAllUsesWith(collapse(builder, loc, placed, dim, op->getResult(0).getType()));
  op.erase();
}

void expandScatter(ReduceScatterOp op, int64_t ranks) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  int64_t dim = op.getDim();
  SmallVector<OpFoldResult> part = tensor::getMixedSizes(builder, loc, op.getOuts());
  SmallVector<OpFoldResult> sizes = part;
  sizes.insert(sizes.begin() + dim, builder.getIndexAttr(ranks));
  Value parts = expand(builder, loc, op.getInput(), dim, sizes);
  SmallVector<int64_t> order{dim};
  for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d)
    if (d != dim)
      order.push_back(d);
  Value sent = transpose(builder, loc, parts, sizes, order);
  SmallVector<OpFoldResult> all = timesRanks(builder, loc, part, ranks);
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(all, dynamic, shape);
  auto type = cast<RankedTensorType>(op.getInput().getType()).clone(shape);
  auto scattered = ReduceScatterOp::create(
      builder, loc, op->getResultTypes(), collapse(builder, loc, sent, 0, type), op.getOuts(),
      op.getKindAttr(), builder.getI64IntegerAttr(0), op.getGridAttr(), op.getAxesAttr(), op.getLabelAttr());
  op.replaceAllUsesWith(scattered.getResults());
  op.erase();
}

class ExpandCollectives : public impl::ExpandCollectivesBase<ExpandCollectives> {
public:
  void runOnOperation() final {
    SmallVector<CollectiveOpInterface> ops;
    getOperation()->walk([&](CollectiveOpInterface op) { ops.push_back(op); });
    for (CollectiveOpInterface op : ops) {
      auto dim = op->getAttrOfType<IntegerAttr>("dim");
      if (!dim || dim.getInt() == 0 || !isa<TensorType>(op.getInput().getType()))
        continue;
      std::optional<int64_t> ranks = getGroupSize(op.getGridAttr(), op.getAxesAttr());
      if (!ranks) {
        op->emitError() << "divides dimension " << dim.getInt()
                        << " along an axis of the grid whose extent is unknown";
        return signalPassFailure();
      }
      if (auto gather = dyn_cast<AllGatherOp>(op.getOperation()))
        expandGather(gather, *ranks);
      else if (auto scatter = dyn_cast<ReduceScatterOp>(op.getOperation()))
        expandScatter(scatter, *ranks);
    }
  }
};

} // namespace
} // namespace fp8
