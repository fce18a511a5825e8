// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Follows tensors with an element for each score from the matmul of the scores to all that reads them.

#include "AttentionParts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

/// Returns the operations of `block` that nothing needs.
static DenseSet<Operation *> findUnused(Block *block) {
  DenseSet<Operation *> unused;
  for (Operation &op : llvm::reverse(*block))
    if (isMemoryEffectFree(&op) && !op.hasTrait<OpTrait::IsTerminator>() &&
        llvm::all_of(op.getUsers(), [&](Operation *user) { return unused.contains(user); }))
      unused.insert(&op);
  return unused;
}

static bool isZero(AffineExpr expr) {
  auto constant = dyn_cast<AffineConstantExpr>(expr);
  return constant && constant.getValue() == 0;
}

/// Returns whether places have a dimension of keys.
static bool isRow(const Places &places, ArrayRef<unsigned> keys) {
  return llvm::any_of(places, [&](AffineExpr place) {
    auto dim = dyn_cast<AffineDimExpr>(place);
    return dim && llvm::is_contained(keys, dim.getPosition());
  });
}

namespace {
/// Where the results of an operation lie, and whether it sums over other dimensions than keys.
class Step {
public:
  Step(Operation *op, const llvm::MapVector<Value, Places> &known, ArrayRef<unsigned> keys)
      : op(op), known(known), keys(keys) {}
  /// Returns the places of a result; nothing if the operation is no code on elements and rows.
  std::optional<Places> getPlaces(OpResult result);

private:
  std::optional<Places> ofLinalg(linalg::LinalgOp structured, OpResult result);
  std::optional<Places> ofReshape(ArrayRef<ReassociationIndices> groups, bool expands, OpResult result);

  Operation *op;
  const llvm::MapVector<Value, Places> &known;
  ArrayRef<unsigned> keys;
};
} // namespace

/// Returns the place of each loop of an operation whose inputs are `known`; null where none of them has the
/// loop. Nothing if two inputs contradict each other.
static std::optional<Places> findLoops(linalg::LinalgOp structured,
                                       const llvm::MapVector<Value, Places> &known) {
  Places loops(structured.getNumLoops());
  for (OpOperand *input : structured.getDpsInputOperands()) {
    const auto *places = known.find(input->get());
    if (places == known.end())
      continue;
    AffineMap map = structured.getMatchingIndexingMap(input);
    for (auto [loop, place] : llvm::zip_equal(map.getResults(), places->second)) {
      auto dim = dyn_cast<AffineDimExpr>(loop);
      if (!dim || isZero(place))
        continue;
      AffineExpr &at = loops[dim.getPosition()];
      if (at && at != place)
        return std::nullopt; // an element with one of another row
      at = place;
    }
  }
  return loops;
}

/// Returns the places of a result of an operation with these loops; nothing if it is broadcast along a
/// dimension that scores do not have.
static std::optional<Places> findResult(linalg::LinalgOp structured, ArrayRef<AffineExpr> loops,
                                        OpResult result) {
  AffineExpr zero = getAffineConstantExpr(0, structured.getContext());
  Places places;
  AffineMap map = structured.getIndexingMapMatchingResult(result);
  for (auto [loop, size] :
       llvm::zip_equal(map.getResults(), cast<RankedTensorType>(result.getType()).getShape())) {
    auto dim = dyn_cast<AffineDimExpr>(loop);
    AffineExpr place = dim ? loops[dim.getPosition()] : AffineExpr();
    if (!place && size != 1)
      return std::nullopt;
    places.push_back(place ? place : zero);
  }
  return places;
}

std::optional<Places> Step::ofLinalg(linalg::LinalgOp structured, OpResult result) {
  if (!structured.hasPureTensorSemantics())
    return std::nullopt;
  std::optional<Places> loops = findLoops(structured, known);
  if (!loops)
    return std::nullopt;
  bool readsRows = llvm::any_of(structured.getDpsInputs(), [&](Value input) {
    const auto *places = known.find(input);
    return places != known.end() && isRow(places->second, keys);
  });
  for (auto [loop, kind, size] :
       llvm::zip_equal(*loops, structured.getIteratorTypesArray(), structured.getStaticLoopRanges())) {
    if (kind != utils::IteratorType::reduction)
      continue;
    if (size == 1 && readsRows)
      continue;
    if (size == 1)
      return std::nullopt; // a number of a row without its batch of 1: the program's own sum
    auto dim = dyn_cast_or_null<AffineDimExpr>(loop);
    if (!dim || !llvm::is_contained(keys, dim.getPosition()))
      return std::nullopt; // a sum over rows
  }
  return findResult(structured, *loops, result);
}

std::optional<Places> Step::ofReshape(ArrayRef<ReassociationIndices> groups, bool expands, OpResult result) {
  const auto *source = known.find(op->getOperand(0));
  if (source == known.end())
    return std::nullopt;
  auto many = cast<RankedTensorType>(expands ? result.getType() : op->getOperand(0).getType());
  AffineExpr zero = getAffineConstantExpr(0, op->getContext());
  Places places(cast<RankedTensorType>(result.getType()).getRank(), zero);
  for (auto [one, group] : llvm::enumerate(groups)) {
    auto full =
        llvm::to_vector(llvm::make_filter_range(group, [&](int64_t d) { return many.getDimSize(d) != 1; }));
    if (full.size() > 1)
      return std::nullopt;
    if (!full.empty())
      places[expands ? full[0] : one] = source->second[expands ? one : full[0]];
  }
  return places;
}

std::optional<Places> Step::getPlaces(OpResult result) {
  if (!isa<RankedTensorType>(result.getType()))
    return std::nullopt;
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    return ofLinalg(structured, result);
  if (auto reshape = dyn_cast<tensor::ExpandShapeOp>(op))
    return ofReshape(reshape.getReassociationIndices(), /*expands=*/true, result);
  if (auto reshape = dyn_cast<tensor::CollapseShapeOp>(op))
    return ofReshape(reshape.getReassociationIndices(), /*expands=*/false, result);
  if (!isa<tensor::CastOp>(op) && !(OpTrait::hasElementwiseMappableTraits(op) &&
                                    isa<arith::ArithDialect, math::MathDialect>(op->getDialect())))
    return std::nullopt;
  for (Value operand : op->getOperands())
    if (const auto *places = known.find(operand); places != known.end())
      return places->second;
  return std::nullopt;
}

/// Returns whether `value` is +0 in all elements.
static bool isZeros(Value value) {
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    value = fill.getInputs().front();
  return matchPattern(value, m_PosZeroFloat());
}

/// Matches a sum of rows over other dimensions than keys, in the order of the dimensions, from zero on: the
/// gradient of a bias that lacks these dimensions.
static std::optional<FurtherRows> matchSum(Operation *op, const llvm::MapVector<Value, Places> &known,
                                           ArrayRef<unsigned> keys) {
  auto sum = dyn_cast<linalg::LinalgOp>(op);
  if (!sum || !sum.hasPureTensorSemantics() || sum.getNumDpsInputs() != 1 || sum.getNumDpsInits() != 1 ||
      sum.getNumReductionLoops() == 0 || !isZeros(sum.getDpsInits().front()))
    return std::nullopt;
  OpOperand *input = sum.getDpsInputOperand(0), *init = sum.getDpsInitOperand(0);
  auto add = sum.getBlock()->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  Value summands[] = {sum.getMatchingBlockArgument(input), sum.getMatchingBlockArgument(init)};
  if (!add || !std::is_permutation(add->operand_begin(), add->operand_end(), summands, std::end(summands)))
    return std::nullopt;
  const auto *rows = known.find(input->get());
  std::optional<Places> loops = findLoops(sum, known);
  if (rows == known.end() || !isRow(rows->second, keys) || !loops ||
      !sum.getMatchingIndexingMap(input).isPermutation())
    return std::nullopt;
  SmallVector<unsigned> order;
  for (auto [place, kind] : llvm::zip_equal(*loops, sum.getIteratorTypesArray()))
    if (auto dim = dyn_cast_or_null<AffineDimExpr>(place); dim && kind == utils::IteratorType::reduction)
      order.push_back(dim.getPosition());
  bool sumsKeys = llvm::any_of(order, [&](unsigned dim) { return llvm::is_contained(keys, dim); });
  std::optional<Places> places = findResult(sum, *loops, op->getResult(0));
  if (order.empty() || sumsKeys || !llvm::is_sorted(order) || !places)
    return std::nullopt;
  return FurtherRows{input->get(), rows->second, op->getResult(0), *places, op};
}

AttentionReaders::AttentionReaders(const AttentionSite &site) {
  llvm::MapVector<Value, Places> known;
  Block *block = site.output->getBlock();
  DenseSet<Operation *> unused = findUnused(block);
  Value scores = site.raw->value;
  known[scores] = Places(site.raw->at.begin(), site.raw->at.end());
  // Operations in program order, so that all that an operation reads is known.
  for (Operation *op = site.scores->getNextNode(); op; op = op->getNextNode()) {
    bool reads = false;
    llvm::SmallSetVector<Value, 2> read; // rows
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (auto *places = known.find(operand); places != known.end()) {
          reads = true;
          if (isRow(places->second, site.keys))
            read.insert(operand);
        }
    });
    if (!reads || op == site.output || unused.contains(op))
      continue;
    if (auto matmul = dyn_cast<MatmulOp>(op); matmul && !read.empty()) {
      for (unsigned operand : {0, 1})
        if (auto *places = known.find(matmul->getOperand(operand));
            places != known.end() && isRow(places->second, site.keys))
          matmuls.push_back({matmul, operand, places->second});
      continue;
    }
    Step step(op, known, site.keys);
    SmallVector<std::optional<Places>> places =
        llvm::map_to_vector(op->getResults(), [&](OpResult result) { return step.getPlaces(result); });
    bool isMember = !op->getResults().empty() && llvm::all_of(places, [](const std::optional<Places> &place) {
      return place.has_value();
    });
    if (isMember) {
      members.push_back(op);
      for (auto [result, place] : llvm::zip_equal(op->getResults(), places)) {
        known[result] = *place;
        if (!isRow(*place, site.keys))
          statistics[result] = *place;
      }
    } else if (std::optional<FurtherRows> sum = matchSum(op, known, site.keys)) {
      further.push_back(std::move(*sum));
    } else {
      for (Value rows : read)
        if (llvm::none_of(further, [&](const FurtherRows &other) { return other.result == rows; }))
          further.push_back({rows, known[rows], rows, known[rows], op});
    }
  }
}
