// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Folds reshapes around a matmul into additional dimensions of the matmul.

#include "FoldReshapes.h"
#include "EraseUnused.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

using namespace mlir;
using namespace fp8;

namespace {

/// A reshape of an operand or the result: the sizes that each dimension on the matmul's side is
/// split into (one size: not split). Without an op nothing is split.
struct Reshape {
  Operation *op = nullptr;
  SmallVector<SmallVector<int64_t>> sizes;
};

} // namespace

/// Returns the sizes of every group of dimensions; an empty Reshape if a split size is dynamic.
static Reshape makeReshape(Operation *op, ArrayRef<ReassociationIndices> groups, ArrayRef<int64_t> shape) {
  Reshape reshape{op, {}};
  for (const ReassociationIndices &group : groups) {
    SmallVector<int64_t> &sizes = reshape.sizes.emplace_back();
    for (int64_t d : group)
      sizes.push_back(shape[d]);
    if (sizes.size() > 1 && llvm::is_contained(sizes, ShapedType::kDynamic))
      return {};
  }
  return groups.empty() ? Reshape() : reshape;
}

static Reshape findOperandReshape(Value operand) {
  auto collapse = operand.getDefiningOp<tensor::CollapseShapeOp>();
  return collapse
             ? makeReshape(collapse, collapse.getReassociationIndices(), collapse.getSrcType().getShape())
             : Reshape();
}

static Reshape findResultReshape(MatmulOp op) {
  Value result = op->getResult(0);
  if (!result.hasOneUse() || op.readsInit())
    return {};
  auto expand = dyn_cast<tensor::ExpandShapeOp>(*result.user_begin());
  return expand ? makeReshape(expand, expand.getReassociationIndices(), expand.getResultType().getShape())
                : Reshape();
}

/// Returns the sizes that `reshape` splits the dimension at `position` into, or none.
static ArrayRef<int64_t> getSplit(const Reshape &reshape, unsigned position) {
  ArrayRef<int64_t> sizes = reshape.op ? ArrayRef<int64_t>(reshape.sizes[position]) : ArrayRef<int64_t>();
  return sizes.size() > 1 ? sizes : ArrayRef<int64_t>();
}

/// Drops reshapes until the remaining ones agree on the split of each dimension. Returns the sizes
/// of every iteration dimension.
static SmallVector<ArrayRef<int64_t>> agreeOnSplits(ArrayRef<AffineMap> maps,
                                                    MutableArrayRef<Reshape> reshapes) {
  while (true) {
    SmallVector<std::optional<ArrayRef<int64_t>>> splits(maps[0].getNumDims());
    Reshape *contradicting = nullptr;
    // Values without a reshape come first, because their dimensions cannot be split.
    for (bool withReshape : {false, true})
      for (auto [map, reshape] : llvm::zip(maps, reshapes))
        for (unsigned i = 0; i < map.getNumResults() && bool(reshape.op) == withReshape; ++i) {
          auto &split = splits[map.getDimPosition(i)];
          if (!split)
            split = getSplit(reshape, i);
          else if (*split != getSplit(reshape, i))
            contradicting = &reshape;
        }
    if (!contradicting)
      return llvm::map_to_vector(splits, [](auto split) { return *split; });
    *contradicting = Reshape();
  }
}

/// Returns `map` with each dimension replaced by the new dimensions that it is split into.
static AffineMap splitMap(AffineMap map, ArrayRef<SmallVector<unsigned>> newDims, unsigned count) {
  SmallVector<AffineExpr> results;
  for (unsigned i = 0; i < map.getNumResults(); ++i)
    for (unsigned d : newDims[map.getDimPosition(i)])
      results.push_back(getAffineDimExpr(d, map.getContext()));
  return AffineMap::get(count, 0, results, map.getContext());
}

/// Creates a destination of the shape that `reshape` expands `init` to.
static Value createExpandedDestination(RewriterBase &rewriter, Location loc, Value init,
                                       const Reshape &reshape) {
  auto empty = init.getDefiningOp<tensor::EmptyOp>();
  SmallVector<OpFoldResult> old = empty ? empty.getMixedSizes() : tensor::getMixedSizes(rewriter, loc, init);
  SmallVector<OpFoldResult> sizes;
  for (auto [size, split] : llvm::zip(old, reshape.sizes)) {
    if (split.size() == 1)
      sizes.push_back(size);
    else
      llvm::append_range(sizes, getAsIndexOpFoldResult(rewriter.getContext(), split));
  }
  return tensor::EmptyOp::create(rewriter, loc, sizes, getElementTypeOrSelf(init));
}

static void replaceResult(RewriterBase &rewriter, MatmulOp op, const Reshape &reshape) {
  Operation *oldInit = op.getInit().getDefiningOp();
  rewriter.setInsertionPoint(op);
  Value init = createExpandedDestination(rewriter, op.getLoc(), op.getInit(), reshape);
  Value result = op->getResult(0), replacement = result;
  rewriter.modifyOpInPlace(op, [&] {
    op.getOutsMutable().assign(init);
    result.setType(init.getType());
  });
  rewriter.setInsertionPointAfter(reshape.op);
  Type type = reshape.op->getResult(0).getType();
  if (type != init.getType())
    replacement = tensor::CastOp::create(rewriter, reshape.op->getLoc(), type, result);
  rewriter.replaceOp(reshape.op, replacement);
  if (oldInit)
    fp8::detail::eraseUnused(rewriter, oldInit);
}

bool fp8::detail::foldReshapes(RewriterBase &rewriter, MatmulOp op) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  Reshape reshapes[] = {findOperandReshape(op.getLhs()), findOperandReshape(op.getRhs()),
                        findResultReshape(op)};
  SmallVector<ArrayRef<int64_t>> splits = agreeOnSplits(maps, reshapes);
  if (llvm::none_of(reshapes, [](const Reshape &reshape) { return reshape.op; }))
    return false;

  SmallVector<SmallVector<unsigned>> newDims;
  unsigned count = 0;
  for (ArrayRef<int64_t> split : splits) {
    SmallVector<unsigned> &dims = newDims.emplace_back();
    for (size_t i = 0; i < std::max<size_t>(split.size(), 1); ++i)
      dims.push_back(count++);
  }
  for (AffineMap &map : maps)
    map = splitMap(map, newDims, count);
  rewriter.modifyOpInPlace(op, [&] { op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps)); });
  for (unsigned operand : {0, 1}) {
    Operation *collapse = reshapes[operand].op;
    if (!collapse)
      continue;
    rewriter.modifyOpInPlace(op, [&] { op->setOperand(operand, collapse->getOperand(0)); });
    eraseUnused(rewriter, collapse);
  }
  if (reshapes[2].op)
    replaceResult(rewriter, op, reshapes[2]);
  return true;
}
