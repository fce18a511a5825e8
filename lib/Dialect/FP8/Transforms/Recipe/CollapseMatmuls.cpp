// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collapses dimensions of matmuls whose operands get a scale per block, so that blocks are runs of
// one dimension.

#include "RecipeRewriter.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_COLLAPSEMATMULS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// A view of an operand, destination or result of a matmul in which some dimensions are one.
class CollapsedView {
public:
  /// `dims`, at least two, are adjacent dimensions of the matmul in order; `map` has all of them or none.
  CollapsedView(AffineMap map, ArrayRef<unsigned> dims) {
    SmallVector<int64_t> positions, others;
    for (unsigned dim : dims)
      if (auto position = map.getResultPosition(getAffineDimExpr(dim, map.getContext())))
        positions.push_back(*position);
    unsigned rank = map.getNumResults();
    isUnchanged = positions.empty();
    for (unsigned position = 0; position < rank; ++position)
      if (!llvm::is_contained(positions, position))
        others.push_back(position);
    bool isAdjacent = isUnchanged || (positions.back() - positions.front() + 1 == int64_t(positions.size()) &&
                                      llvm::is_sorted(positions));
    order = isAdjacent ? llvm::to_vector(llvm::seq<int64_t>(0, rank)) : others;
    if (!isAdjacent)
      llvm::append_range(order, positions);
    for (auto [i, position] : llvm::enumerate(order)) {
      if (!llvm::is_contained(positions, position) || position == positions.front()) {
        groups.emplace_back();
        kept.push_back(position);
      }
      groups.back().push_back(i);
    }
  }

  /// Returns the positions, in the tensor, of the dimension that each collapsed dimension starts with.
  ArrayRef<int64_t> keptPositions() const { return kept; }

  Value collapse(OpBuilder &b, Location loc, Value value) const {
    if (isUnchanged)
      return value;
    return tensor::CollapseShapeOp::create(b, loc, transpose(b, loc, value, order), groups);
  }

  /// Returns `value`, the collapsed form of `like`, in the shape of `like`.
  Value expand(OpBuilder &b, Location loc, Value value, Value like) const {
    if (isUnchanged)
      return value;
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, like);
    applyPermutationToVector(sizes, order);
    auto type = cast<RankedTensorType>(like.getType());
    auto ordered = type.clone(applyPermutation(type.getShape(), order));
    Value expanded = tensor::ExpandShapeOp::create(b, loc, ordered, value, groups, sizes);
    return transpose(b, loc, expanded, invertPermutationVector(order));
  }

private:
  static Value transpose(OpBuilder &b, Location loc, Value value, ArrayRef<int64_t> order) {
    if (isIdentityPermutation(order))
      return value;
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, value);
    applyPermutationToVector(sizes, order);
    Value init = tensor::EmptyOp::create(b, loc, sizes, getElementTypeOrSelf(value));
    return linalg::TransposeOp::create(b, loc, value, init, order)->getResult(0);
  }

  bool isUnchanged = false;
  SmallVector<int64_t> order; ///< the transposition before the collapse
  SmallVector<ReassociationIndices> groups;
  SmallVector<int64_t> kept;
};

/// Returns `map` for a view of its tensor, in the dimensions of the collapsed matmul.
AffineMap collapseMap(AffineMap map, const CollapsedView &view, ArrayRef<unsigned> dims) {
  SmallVector<AffineExpr> results;
  for (int64_t position : view.keptPositions()) {
    unsigned dim = cast<AffineDimExpr>(map.getResult(position)).getPosition();
    unsigned removed = llvm::count_if(dims.drop_front(), [&](unsigned other) { return other < dim; });
    results.push_back(
        getAffineDimExpr(llvm::is_contained(dims, dim) ? dims.front() : dim - removed, map.getContext()));
  }
  return AffineMap::get(map.getNumDims() - (dims.size() - 1), 0, results, map.getContext());
}

/// Replaces `op` by a matmul in which `dims` are one dimension, the first of them.
MatmulOp collapseDims(MatmulOp op, ArrayRef<unsigned> dims) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray(), newMaps;
  SmallVector<CollapsedView> views;
  for (AffineMap map : maps) {
    views.emplace_back(map, dims);
    newMaps.push_back(collapseMap(map, views.back(), dims));
  }
  SmallVector<Value> operands{op.getLhs(), op.getRhs(), op.getInit()};
  for (auto [value, view] : llvm::zip_equal(operands, views))
    value = view.collapse(builder, loc, value);
  MatmulOp::Properties properties = op.getProperties();
  properties.setIndexingMaps(builder.getAffineMapArrayAttr(newMaps));
  auto collapsed = MatmulOp::create(builder, loc, operands, properties);
  collapsed->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  op.getResult(0).replaceAllUsesWith(views.back().expand(builder, loc, collapsed.getResult(0), op.getInit()));
  op.erase();
  return collapsed;
}

class CollapseMatmuls : public impl::CollapseMatmulsBase<CollapseMatmuls> {
public:
  void runOnOperation() final {
    SmallVector<MatmulOp> matmuls;
    getOperation()->walk([&](MatmulOp op) {
      if (op.getRecipeAttr() && !op.getKept())
        matmuls.push_back(op);
    });
    for (MatmulOp op : matmuls) {
      // Each step removes dimensions, so that the others have to be looked up again.
      for (SmallVector<unsigned> dims = findDims(op); !dims.empty(); dims = findDims(op))
        op = collapseDims(op, dims);
    }
  }

private:
  /// Returns several dimensions of `op` that blocks must see as one, in order; empty if there are none.
  static SmallVector<unsigned> findDims(MatmulOp op) {
    ContractionDims dims = op.getContractionDims();
    for (unsigned index : {0u, 1u}) {
      QuantizedOperand operand{op, index, op.getRecipeAttr()};
      if (operand.grouped())
        return {}; // has one dimension of each kind
      SmallVector<int64_t> block = operand.block();
      if (block.empty())
        continue;
      if (dims.k.size() > 1)
        return sorted(dims.k);
      const SmallVector<unsigned> &own = index == 0 ? dims.m : dims.n;
      for (auto [group, extent] : llvm::zip_equal(operand.groups(), block)) {
        unsigned dim = cast<AffineDimExpr>(operand.map().getResult(group.front())).getPosition();
        if (extent > 1 && own.size() > 1 && llvm::is_contained(own, dim))
          return sorted(own);
      }
    }
    return {};
  }

  static SmallVector<unsigned> sorted(SmallVector<unsigned> dims) {
    llvm::sort(dims);
    return dims;
  }
};

} // namespace
} // namespace fp8
