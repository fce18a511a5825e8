// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matmuls on tensor cores read rows along the contracted dimensions. The cast that produces an operand in
// another order writes it in this order too, so that nothing is copied between the cast and the matmul.

#include "Recipe/ParameterCasts.h"
#include "ScaledMatmuls.h"
#include "fp8/Dialect/FP8/IR/CastParts.h"
#include "fp8/Dialect/FP8/IR/Chips.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_SELECTLAYOUTS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// Returns the positions of an operand's dimensions in the order that kernels read: batches, rows, and the
/// contracted dimensions, the first two in the order of the result.
template <typename Op>
SmallVector<int64_t> getWantedOrder(Op op, bool isLhs) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap map = maps[isLhs ? 0 : 1];
  ContractionDims dims = getOperandDims(op);
  SmallVector<int64_t> order;
  auto position = [&](AffineMap map, unsigned dim) {
    return map.getResultPosition(getAffineDimExpr(dim, op.getContext()));
  };
  auto append = [&](SmallVector<unsigned> group, bool isContracted) {
    if (!isContracted)
      llvm::sort(group,
                 [&](unsigned x, unsigned y) { return *position(maps[2], x) < *position(maps[2], y); });
    for (unsigned dim : group)
      if (std::optional<unsigned> place = position(map, dim))
        order.push_back(*place);
  };
  append(dims.batch, false);
  append(isLhs ? dims.m : dims.n, false);
  append(dims.k, true);
  return order;
}

/// An operand of a matmul, and the order that the matmul wants.
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
  QuantizeParts parts(op, op.getInputs(), outs);
  parts.transposition = rewriter.getDenseI64ArrayAttr(order);
  auto created = parts.create(rewriter, loc);
  created->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  created.getProducer().takeBody(op.getProducer());
  SmallVector<Value> replacements(created.getResults());
  replacements.erase(replacements.begin() + 1);
  rewriter.replaceOp(op, replacements);
  return created;
}

template <typename Op>
void readTransposed(RewriterBase &rewriter, Op op, OpOperand &operand, Value dataT, ArrayRef<int64_t> order) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap &map = maps[operand.getOperandNumber()];
  map = AffineMap::get(map.getNumDims(), 0, applyPermutation(map.getResults(), order), op.getContext());
  rewriter.modifyOpInPlace(op, [&] {
    operand.set(dataT);
    op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
  });
}

/// Returns what `body` returns for the matmul that `operand` belongs to.
template <typename Body>
decltype(auto) withMatmul(OpOperand &operand, Body body) {
  if (auto op = dyn_cast<ScaledMatmulOp>(operand.getOwner()))
    return body(op);
  return body(cast<ScaledGroupedMatmulOp>(operand.getOwner()));
}

/// Lets `operand` of a matmul read `dataT`, whose dimension d is dimension order[d] of what it reads now.
void readTransposed(RewriterBase &rewriter, OpOperand &operand, Value dataT, ArrayRef<int64_t> order) {
  withMatmul(operand, [&](auto op) { readTransposed(rewriter, op, operand, dataT, order); });
}

//===----------------------------------------------------------------------===//
// Casts with a scale per block
//===----------------------------------------------------------------------===//

/// Returns the order of the dimensions before a reshape that gives `order` after it, where `isCollapse` tells
/// on which side of the reshape `groups` has several dimensions. Fails if `order` divides such a group.
FailureOr<SmallVector<int64_t>> orderBefore(ArrayRef<ReassociationIndices> groups, bool isCollapse,
                                            ArrayRef<int64_t> order) {
  SmallVector<int64_t> before;
  if (isCollapse) {
    for (int64_t group : order)
      llvm::append_range(before, groups[group]);
    return before;
  }
  for (size_t i = 0; i < order.size();) {
    const auto *group = llvm::find_if(groups, [&](ArrayRef<int64_t> g) { return g.front() == order[i]; });
    if (group == groups.end() || order.slice(i).take_front(group->size()) != ArrayRef<int64_t>(*group))
      return failure();
    before.push_back(group - groups.begin());
    i += group->size();
  }
  return before;
}

/// The reshapes between a result of a cast and what a matmul reads of it.
class Reshapes {
public:
  /// Finds the result of an fp8.quantize_blocks behind `value`; source() is null if there is none.
  explicit Reshapes(Value value) {
    while (Operation *op = value.getDefiningOp()) {
      if (isa<QuantizeBlocksOp>(op)) {
        found = cast<OpResult>(value);
        return;
      }
      if (!isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op))
        return;
      steps.push_back(op);
      value = op->getOperand(0);
    }
  }

  OpResult source() const { return found; }

  /// Returns the order of the source's dimensions that gives `order` of those of the value.
  FailureOr<SmallVector<int64_t>> orderOfSource(ArrayRef<int64_t> order) const {
    FailureOr<SmallVector<int64_t>> current = llvm::to_vector(order);
    for (Operation *op : steps) {
      auto [groups, isCollapse] = describe(op);
      current = orderBefore(groups, isCollapse, *current);
      if (failed(current))
        return failure();
    }
    return current;
  }

  /// Reshapes `source`, which has the dimensions of source() in the order that orderOfSource(order) returns.
  Value replay(OpBuilder &builder, Value source, ArrayRef<int64_t> order) const {
    SmallVector<SmallVector<int64_t>> orders{llvm::to_vector(order)}; // after each step, the last one first
    for (Operation *op : steps) {
      auto [groups, isCollapse] = describe(op);
      orders.push_back(*orderBefore(groups, isCollapse, orders.back()));
    }
    for (size_t i = steps.size(); i-- > 0;)
      source = repeat(builder, steps[i], source, orders[i], orders[i + 1]);
    return source;
  }

  /// Erases the reshapes that nothing reads any more.
  void eraseUnused(RewriterBase &rewriter) const {
    for (Operation *op : steps) {
      if (!op->use_empty())
        return;
      rewriter.eraseOp(op);
    }
  }

private:
  static std::pair<SmallVector<ReassociationIndices>, bool> describe(Operation *op) {
    if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
      return {collapse.getReassociationIndices(), true};
    return {cast<tensor::ExpandShapeOp>(op).getReassociationIndices(), false};
  }

  /// Repeats the reshape `op` on `source`, whose dimensions are in the order `before`; those of the result
  /// are in the order `after`.
  static Value repeat(OpBuilder &builder, Operation *op, Value source, ArrayRef<int64_t> after,
                      ArrayRef<int64_t> before) {
    auto [groups, isCollapse] = describe(op);
    SmallVector<ReassociationIndices> permuted;
    int64_t next = 0;
    for (int64_t group : isCollapse ? after : before) {
      permuted.emplace_back();
      for (size_t i = 0; i < groups[group].size(); ++i)
        permuted.back().push_back(next++);
    }
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    auto resultType = type.clone(applyPermutation(type.getShape(), after));
    if (isCollapse)
      return tensor::CollapseShapeOp::create(builder, op->getLoc(), resultType, source, permuted);
    SmallVector<OpFoldResult> sizes = cast<tensor::ExpandShapeOp>(op).getMixedOutputShape();
    return tensor::ExpandShapeOp::create(builder, op->getLoc(), resultType, source, permuted,
                                         applyPermutation(sizes, after));
  }

  OpResult found;
  SmallVector<Operation *> steps; ///< the last one first
};

/// An operand of a matmul that is cast by blocks, and the order that the matmul wants it in.
struct BlockReader {
  OpOperand *operand;
  SmallVector<int64_t> order;       ///< of the operand's dimensions
  SmallVector<int64_t> sourceOrder; ///< of the dimensions of the cast
  unsigned direction;               ///< of the cast, that the matmul reads
};

OpOperand &getScaleOperand(OpOperand &data) {
  return withMatmul(data, [&](auto op) -> OpOperand & {
    return &data == &op.getLhsMutable() ? op.getLhsScaleInvMutable() : op.getRhsScaleInvMutable();
  });
}

/// Creates a copy of `op` with a further direction for each order that `readers` want; returns it, and the
/// direction of each reader. The first directions are those of `op`.
QuantizeBlocksOp addDirections(RewriterBase &rewriter, QuantizeBlocksOp op, ArrayRef<BlockReader> readers,
                               SmallVectorImpl<unsigned> &directions) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  unsigned before = op.getNumDirections();
  int64_t rank = cast<ShapedType>(op.getDataOut(0).getType()).getRank();
  SmallVector<Attribute> blocks(op.getBlocks().getValue());
  auto identity = rewriter.getDenseI64ArrayAttr(llvm::to_vector(llvm::seq<int64_t>(0, rank)));
  SmallVector<Attribute> orders(before, identity);
  SmallVector<Value> outs(op.getOuts().take_front(2 * before));
  for (const BlockReader &reader : readers) {
    Attribute block = op.getBlocks()[reader.direction],
              order = rewriter.getDenseI64ArrayAttr(reader.sourceOrder);
    unsigned direction = before;
    while (direction < blocks.size() && (blocks[direction] != block || orders[direction] != order))
      ++direction;
    directions.push_back(direction);
    if (direction < blocks.size())
      continue;
    blocks.push_back(block);
    orders.push_back(order);
    for (Value out : {op.getDataOut(reader.direction), op.getScaleInvOut(reader.direction)}) {
      SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, loc, out);
      applyPermutationToVector(sizes, reader.sourceOrder);
      outs.push_back(tensor::EmptyOp::create(rewriter, loc, sizes, getElementTypeOrSelf(out)));
    }
  }
  llvm::append_range(outs, op.getOuts().drop_front(2 * before));
  QuantizeBlocksParts parts(op, op.getInputs(), outs);
  parts.blocks = rewriter.getArrayAttr(blocks);
  parts.transpositions = rewriter.getArrayAttr(orders);
  auto created = parts.create(rewriter, loc);
  created->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  created.getProducer().takeBody(op.getProducer());
  return created;
}

/// Lets the matmul of `reader` read `direction` of `cast`, data and scale_inv.
template <typename Op>
void readDirection(RewriterBase &rewriter, Op op, const BlockReader &reader, QuantizeBlocksOp cast,
                   unsigned direction) {
  rewriter.setInsertionPoint(op);
  for (auto [operand, part] : {std::pair(reader.operand, 0u), {&getScaleOperand(*reader.operand), 1u}}) {
    Reshapes reshapes(operand->get());
    Value transposed = reshapes.replay(rewriter, cast.getResult(2 * direction + part), reader.order);
    rewriter.modifyOpInPlace(op, [&, operand = operand] { operand->set(transposed); });
    reshapes.eraseUnused(rewriter);
  }
  bool isLhs = reader.operand == &op.getLhsMutable();
  SmallVector<int64_t> block(isLhs ? *op.getLhsBlock() : *op.getRhsBlock());
  applyPermutationToVector(block, reader.order);
  auto attr = rewriter.getDenseI64ArrayAttr(block);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap &map = maps[reader.operand->getOperandNumber()];
  map =
      AffineMap::get(map.getNumDims(), 0, applyPermutation(map.getResults(), reader.order), op.getContext());
  rewriter.modifyOpInPlace(op, [&] {
    isLhs ? op.setLhsBlockAttr(attr) : op.setRhsBlockAttr(attr);
    op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
  });
}

/// Gives `op` the directions that `readers` want, in place of those that nothing else reads.
LogicalResult addLayouts(RewriterBase &rewriter, QuantizeBlocksOp op, ArrayRef<BlockReader> readers) {
  SmallVector<unsigned> directions;
  QuantizeBlocksOp created = addDirections(rewriter, op, readers, directions);
  unsigned before = 2 * op.getNumDirections(), added = created.getNumResults() - op.getNumResults();
  SmallVector<Value> replacements(created.getResults().take_front(before));
  llvm::append_range(replacements, created.getResults().drop_front(before + added));
  rewriter.replaceOp(op, replacements);
  for (auto [reader, direction] : llvm::zip_equal(readers, directions))
    withMatmul(*reader.operand, [&, &reader = reader, direction = direction](auto op) {
      readDirection(rewriter, op, reader, created, direction);
    });
  RewritePatternSet patterns(created.getContext());
  QuantizeBlocksOp::getCanonicalizationPatterns(patterns, created.getContext());
  GreedyRewriteConfig config; // other casts are still to come
  config.setStrictness(GreedyRewriteStrictness::ExistingOps);
  return applyOpPatternsGreedily(created.getOperation(), std::move(patterns), config);
}

/// Returns whether the matmul's kernel reads FP8 operands in no order but rows along K.
bool readsRows(ScaledMatmulOp op, const Chip &chip) {
  if (!chip.readsTransposedFP8)
    return true;
  int64_t extent = 0;
  for (auto [block, map] : {std::pair(op.getLhsBlock(), op.getIndexingMapsArray()[0]),
                            std::pair(op.getRhsBlock(), op.getIndexingMapsArray()[1])})
    if (block && cast<ShapedType>(op.getLhsScaleInv().getType()).getElementType().isF32())
      for (auto [size, dim] : llvm::zip_equal(*block, map.getResults()))
        if (llvm::is_contained(op.getContractionDims().k, cast<AffineDimExpr>(dim).getPosition()))
          extent = std::max(extent, size);
  return extent != 0 && getBlockFamily(chip, extent) == MatmulFamily::mma;
}

class SelectLayouts : public impl::SelectLayoutsBase<SelectLayouts> {
public:
  using impl::SelectLayoutsBase<SelectLayouts>::SelectLayoutsBase;

  void runOnOperation() final {
    auto target = dyn_cast_or_null<ChipAttr>(getTarget(getOperation()->getParentOfType<ModuleOp>()));
    if (!target)
      return;
    wishes.clear();
    blockWishes.clear();
    getOperation().walk([&](Operation *op) {
      auto matmul = dyn_cast<ScaledMatmulOp>(op);
      if (matmul && readsRows(matmul, getChip(target)))
        addWishes(matmul);
      if (auto grouped = dyn_cast<ScaledGroupedMatmulOp>(op)) // its kernels read no other order
        addWishes(grouped);
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
    for (auto &[cast, readers] : blockWishes)
      if (failed(addLayouts(rewriter, mlir::cast<QuantizeBlocksOp>(cast), readers)))
        return signalPassFailure();
  }

private:
  bool isMeant(Operation *cast) { return !weightsOnly || cast->hasAttr(kWeightAttrName); }

  template <typename Op>
  void addWishes(Op op) {
    for (OpOperand *operand : {&op.getLhsMutable(), &op.getRhsMutable()}) {
      SmallVector<int64_t> order = getWantedOrder(op, operand == &op.getLhsMutable());
      if (!isIdentityPermutation(order))
        addWish(*operand, order);
    }
  }

  /// Notes that the matmul wants `operand` in `order`, if its cast can write that.
  void addWish(OpOperand &operand, ArrayRef<int64_t> order) {
    if (auto cast = operand.get().getDefiningOp<QuantizeOp>()) {
      if (!cast.getTransposition() && operand.get() == cast->getResult(0) && isMeant(cast))
        wishes[cast].push_back({&operand, llvm::to_vector(order)});
      return;
    }
    Reshapes data(operand.get()), scaleInv(getScaleOperand(operand).get());
    if (!data.source() || !scaleInv.source() || data.source().getOwner() != scaleInv.source().getOwner() ||
        data.source().getResultNumber() + 1 != scaleInv.source().getResultNumber())
      return;
    auto cast = mlir::cast<QuantizeBlocksOp>(data.source().getOwner());
    FailureOr<SmallVector<int64_t>> dataOrder = data.orderOfSource(order),
                                    scaleOrder = scaleInv.orderOfSource(order);
    if (!isMeant(cast) || cast.getTranspositions() || failed(dataOrder) || failed(scaleOrder) ||
        *dataOrder != *scaleOrder)
      return;
    blockWishes[cast].push_back(
        {&operand, llvm::to_vector(order), *dataOrder, data.source().getResultNumber() / 2});
  }

  llvm::MapVector<Operation *, SmallVector<Reader>> wishes; // by cast
  llvm::MapVector<Operation *, SmallVector<BlockReader>> blockWishes;
};

} // namespace
} // namespace fp8
