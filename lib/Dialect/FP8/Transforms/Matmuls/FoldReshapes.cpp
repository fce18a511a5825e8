// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Folds reshapes around a matmul into additional dimensions of the matmul.

#include "FoldReshapes.h"
#include "EraseUnused.h"
#include "MatmulReshapes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

using namespace mlir;
using namespace fp8;
using fp8::detail::Reshape;

/// Returns, for each size of `coarse`, the positions of `fine` whose product it is; nothing if there are
/// none.
static std::optional<SmallVector<ReassociationIndices>> groupSizes(ArrayRef<int64_t> fine,
                                                                   ArrayRef<int64_t> coarse) {
  SmallVector<ReassociationIndices> groups;
  size_t position = 0;
  for (int64_t size : coarse) {
    ReassociationIndices &group = groups.emplace_back();
    int64_t product = 1;
    for (; position < fine.size() && (group.empty() || product < size); ++position) {
      product *= fine[position];
      group.push_back(position);
    }
    if (product != size)
      return std::nullopt;
  }
  for (; position < fine.size() && fine[position] == 1; ++position)
    groups.back().push_back(position);
  if (position != fine.size())
    return std::nullopt;
  return groups;
}

/// Returns for every dimension of the matmul its shortest split; empty where no reshape splits it.
static SmallVector<ArrayRef<int64_t>> findCoarsestSplits(ArrayRef<AffineMap> maps,
                                                         ArrayRef<Reshape> reshapes) {
  SmallVector<ArrayRef<int64_t>> splits(maps[0].getNumDims());
  for (auto [map, reshape] : llvm::zip(maps, reshapes))
    for (unsigned i = 0; i < map.getNumResults(); ++i) {
      ArrayRef<int64_t> split = getSplit(reshape, i);
      ArrayRef<int64_t> &coarsest = splits[map.getDimPosition(i)];
      if (!split.empty() && (coarsest.empty() || split.size() < coarsest.size()))
        coarsest = split;
    }
  return splits;
}

/// Reshapes in two steps, of which the one beside the matmul splits its dimensions as `splits` says: grouped
/// heads have [batch, heads, group] before they are collapsed, where the other operand has
/// [batch, heads · group]. Returns whether `reshape` was such a reshape.
static bool reshapeInTwoSteps(RewriterBase &rewriter, AffineMap map, const Reshape &reshape,
                              ArrayRef<ArrayRef<int64_t>> splits) {
  // The groups of dimensions that become one in the middle, and the groups of the middle's dimensions.
  SmallVector<ReassociationIndices> outer, inner;
  SmallVector<int64_t> shape;
  int64_t position = 0;
  for (unsigned i = 0; i < map.getNumResults(); ++i) {
    ArrayRef<int64_t> sizes = reshape.sizes[i], coarse = splits[map.getDimPosition(i)];
    std::optional<SmallVector<ReassociationIndices>> groups;
    if (sizes.size() > coarse.size() && !coarse.empty())
      groups = groupSizes(sizes, coarse);
    llvm::append_range(shape, groups ? coarse : sizes);
    if (!groups) {
      groups.emplace();
      for (size_t d = 0; d < sizes.size(); ++d)
        groups->push_back({static_cast<int64_t>(d)});
    }
    ReassociationIndices &joined = inner.emplace_back();
    for (ReassociationIndices &group : *groups) {
      for (int64_t &d : group)
        d += position;
      joined.push_back(outer.size());
      outer.push_back(std::move(group));
    }
    position += sizes.size();
  }
  if (outer.size() == static_cast<size_t>(position))
    return false;
  Location loc = reshape.op->getLoc();
  rewriter.setInsertionPoint(reshape.op);
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(reshape.op)) {
    Value middle = tensor::CollapseShapeOp::create(rewriter, loc, collapse.getSrc(), outer);
    rewriter.replaceOpWithNewOp<tensor::CollapseShapeOp>(collapse, middle, inner);
    return true;
  }
  auto expand = cast<tensor::ExpandShapeOp>(reshape.op);
  auto type = expand.getResultType().clone(shape);
  Value middle = tensor::ExpandShapeOp::create(rewriter, loc, type, expand.getSrc(), inner);
  rewriter.replaceOpWithNewOp<tensor::ExpandShapeOp>(expand, expand.getResultType(), middle, outer,
                                                     expand.getMixedOutputShape());
  return true;
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

/// Keeps the depth of heads in one dimension: rotary positions turn its two halves, but the matmuls of
/// attention and of its gradient have it whole. In a matmul with a batch, that is a dimension which is the
/// innermost one of all tensors that split it. Drops reshapes that split nothing else, and returns the sizes
/// of such dimensions, 0 for all others.
static SmallVector<int64_t> joinDepth(MatmulOp op, MutableArrayRef<Reshape> reshapes) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  ContractionDims dims = op.getContractionDims();
  SmallVector<int64_t> joined(maps[0].getNumDims(), 0);
  if (dims.batch.empty())
    return joined;
  llvm::SmallBitVector others(joined.size());
  for (unsigned dim : dims.batch)
    others.set(dim);
  for (auto [map, reshape] : llvm::zip(maps, reshapes))
    for (unsigned i = 0; i < map.getNumResults(); ++i)
      if (ArrayRef<int64_t> split = getSplit(reshape, i); !split.empty()) {
        joined[map.getDimPosition(i)] = llvm::product_of(split);
        if (i + 1 != map.getNumResults())
          others.set(map.getDimPosition(i));
      }
  for (unsigned dim : others.set_bits())
    joined[dim] = 0;
  for (auto [map, reshape] : llvm::zip(maps, reshapes)) {
    bool splitsOthers = false;
    for (unsigned i = 0; i < map.getNumResults(); ++i)
      splitsOthers |= !getSplit(reshape, i).empty() && joined[map.getDimPosition(i)] == 0;
    if (!splitsOthers)
      reshape = Reshape();
  }
  return joined;
}

bool fp8::detail::foldReshapes(RewriterBase &rewriter, MatmulOp op) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  splitThirdTensor(rewriter, op);
  SmallVector<Reshape, 3> reshapes = findReshapes(op);
  bool isFiner = false;
  SmallVector<ArrayRef<int64_t>> coarsest = findCoarsestSplits(maps, reshapes);
  SmallVector<int64_t> joined = joinDepth(op, reshapes);
  for (auto [dim, size] : llvm::enumerate(joined))
    if (size != 0)
      coarsest[dim] = ArrayRef(size);
  for (auto [map, reshape] : llvm::zip(maps, reshapes))
    isFiner |= reshape.op && reshapeInTwoSteps(rewriter, map, reshape, coarsest);
  if (isFiner) {
    reshapes = findReshapes(op);
    (void)joinDepth(op, reshapes);
  }
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
