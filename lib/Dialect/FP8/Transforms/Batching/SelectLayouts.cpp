// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products on tensor cores read rows along the contracted dimensions. The cast that produces an operand in
// another order writes it in this order too, so that nothing is copied between the cast and the product.

#include "fp8/Dialect/FP8/IR/Chips.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_SELECTLAYOUTS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// Returns the positions of an operand's dimensions in the order that kernels read: batches, rows, and the
/// contracted dimensions, the first two in the order of the result.
SmallVector<int64_t> getWantedOrder(ScaledMatmulOp op, bool isLhs) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap map = maps[isLhs ? 0 : 1];
  ContractionDims dims = op.getContractionDims();
  SmallVector<int64_t> order;
  auto position = [&](AffineMap map, unsigned dim) {
    return *map.getResultPosition(getAffineDimExpr(dim, op.getContext()));
  };
  auto append = [&](SmallVector<unsigned> group, bool isContracted) {
    if (!isContracted)
      llvm::sort(group, [&](unsigned x, unsigned y) { return position(maps[2], x) < position(maps[2], y); });
    for (unsigned dim : group)
      order.push_back(position(map, dim));
  };
  append(dims.batch, false);
  append(isLhs ? dims.m : dims.n, false);
  append(dims.k, true);
  return order;
}

/// An operand of a product, and the order that the product wants.
using Reader = std::pair<OpOperand *, SmallVector<int64_t>>;

/// Creates a copy of `op` that also writes its data in `order`; returns it.
QuantizeOp addTransposition(RewriterBase &rewriter, QuantizeOp op, ArrayRef<int64_t> order) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  Value data = op.getOuts()[0];
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, loc, data);
  Value dataT = tensor::EmptyOp::create(rewriter, loc, applyPermutation(sizes, order), op.getFormat());
  SmallVector<Value> outs(op.getOuts());
  outs.insert(outs.begin() + 1, dataT);
  auto created = QuantizeOp::create(rewriter, loc, TypeRange(ValueRange(outs)), op.getInputs(), op.getScale(),
                                    outs, op.getRecordAmax(), rewriter.getDenseI64ArrayAttr(order),
                                    op.getColumnAttr(), op.getIndexingMapsAttr(), op.getRowsAttr());
  created->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  created.getProducer().takeBody(op.getProducer());
  SmallVector<Value> replacements(created.getResults());
  replacements.erase(replacements.begin() + 1);
  rewriter.replaceOp(op, replacements);
  return created;
}

/// Lets `operand` of a product read `dataT`, whose dimension d is dimension order[d] of what it reads now.
void readTransposed(RewriterBase &rewriter, OpOperand &operand, Value dataT, ArrayRef<int64_t> order) {
  auto op = cast<ScaledMatmulOp>(operand.getOwner());
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap &map = maps[operand.getOperandNumber()];
  map = AffineMap::get(map.getNumDims(), 0, applyPermutation(map.getResults(), order), op.getContext());
  rewriter.modifyOpInPlace(op, [&] {
    operand.set(dataT);
    op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
  });
}

class SelectLayouts : public impl::SelectLayoutsBase<SelectLayouts> {
public:
  void runOnOperation() final {
    auto target = dyn_cast_or_null<ChipAttr>(getTarget(getOperation()->getParentOfType<ModuleOp>()));
    if (!target || getChip(target).readsTransposedFP8)
      return;
    llvm::MapVector<Operation *, SmallVector<Reader>> wishes; // by cast
    getOperation().walk([&](ScaledMatmulOp op) {
      if (op.getLhsBlock() || op.getRhsBlock())
        return;
      for (OpOperand *operand : {&op.getLhsMutable(), &op.getRhsMutable()}) {
        auto cast = operand->get().getDefiningOp<QuantizeOp>();
        SmallVector<int64_t> order = getWantedOrder(op, operand == &op.getLhsMutable());
        if (cast && !cast.getTransposition() && operand->get() == cast->getResult(0) &&
            !isIdentityPermutation(order))
          wishes[cast].push_back({operand, order});
      }
    });
    IRRewriter rewriter(&getContext());
    for (auto &[cast, readers] : wishes) {
      // One more layout is what a cast can write: that of the first reader.
      SmallVector<int64_t> order = readers.front().second;
      QuantizeOp created = addTransposition(rewriter, mlir::cast<QuantizeOp>(cast), order);
      for (auto &[operand, wanted] : readers)
        if (wanted == order)
          readTransposed(rewriter, *operand, created->getResult(1), order);
    }
  }
};

} // namespace
} // namespace fp8
