// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds fp8.attention and fp8.attention_grad from the parts of a place.

#include "AttentionFusion.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

std::string AttentionFusion::plan() {
  if (!readers.reason.empty())
    return readers.reason;
  parts = std::make_unique<AttentionParts>(site, readers);
  if (!parts->reason.empty())
    return parts->reason;
  findGone();
  if (parts->hasGradients)
    if (std::string reason = planBackward(); !reason.empty())
      return reason;
  return planForward();
}

void AttentionFusion::build() {
  if (parts->hasGradients)
    buildBackward();
  buildForward();
  for (Operation *op : gone)
    if (op->use_empty())
      rewriter.eraseOp(op);
}

std::optional<int64_t> AttentionFusion::countScoreBytes() const {
  auto type = cast<RankedTensorType>(site.probabilities.getType());
  if (!type.hasStaticShape())
    return std::nullopt;
  int64_t bits = site.raw->type.getIntOrFloatBitWidth() + type.getElementTypeBitWidth();
  if (parts->hasGradients)
    bits += parts->probabilityGradNode->type.getIntOrFloatBitWidth() +
            parts->scoreGradRow->type.getIntOrFloatBitWidth();
  return type.getNumElements() * bits / 8;
}

std::optional<double> AttentionFusion::getHiddenShare() const {
  if (!hidden)
    return 0;
  int64_t rows = site.code->getSizes()[hidden->row], keys = site.code->getSizes()[site.keys.front()];
  if (ShapedType::isDynamic(rows) || ShapedType::isDynamic(keys))
    return std::nullopt;
  // Row i sees i + count keys, until it sees all.
  int64_t partial = std::clamp<int64_t>(keys - hidden->count, 0, rows);
  double behind = static_cast<double>(partial) * static_cast<double>(keys - hidden->count) -
                  static_cast<double>(partial) * static_cast<double>(partial - 1) / 2;
  return behind / (static_cast<double>(rows) * static_cast<double>(keys));
}

void AttentionFusion::findGone() {
  llvm::SmallPtrSet<Operation *, 8> replaced{site.output};
  if (parts->hasGradients)
    replaced.insert({parts->valueGrad.matmul, parts->queryGrad.matmul, parts->keyGrad.matmul});
  for (Operation &op : llvm::reverse(*site.output->getBlock()))
    if (replaced.contains(&op) ||
        (isMemoryEffectFree(&op) && !op.hasTrait<OpTrait::IsTerminator>() &&
         llvm::all_of(op.getUsers(), [&](Operation *user) { return gone.contains(user); })))
      gone.insert(&op);
}

std::string AttentionFusion::planBackward() {
  const CodeNode *outputs[] = {parts->valueRow, parts->scoreGradRow};
  const CodeNode *matmuls[] = {site.raw, parts->probabilityGradNode};
  backward = std::make_unique<RowsPlan>(*site.code, site.keys, matmuls, outputs);
  // The forward operation stores the statistics that it computes, and backward reads them.
  if (std::string reason = backward->chooseInputs([&](const CodeNode *node) {
        auto *place = readers.statistics.find(node->tensor);
        return place != readers.statistics.end() &&
               node->tensor.getDefiningOp()->isBeforeInBlock(site.output);
      });
      !reason.empty())
    return reason;
  for (MatmulOp matmul : {parts->valueGrad.matmul, parts->queryGrad.matmul, parts->keyGrad.matmul})
    if (!firstGradient || matmul->isBeforeInBlock(firstGradient))
      firstGradient = matmul;
  DominanceInfo dominance;
  SmallVector<Value> needed{parts->query.tensor, parts->key.tensor, parts->value.tensor,
                            parts->outputGrad.tensor};
  for (const RowInput &input : backward->inputs)
    needed.push_back(input.tensor);
  for (Value value : needed)
    if (!dominance.properlyDominates(value, firstGradient))
      return "its backward pass reads a tensor that is computed after its first gradient";
  return "";
}

std::string AttentionFusion::planForward() {
  SmallVector<const CodeNode *> outputs{site.probability};
  for (auto &statistic : readers.statistics) {
    Value value = statistic.first;
    bool isRead = backward && llvm::any_of(backward->inputs,
                                           [&](const RowInput &input) { return input.tensor == value; });
    for (Operation *user : value.getUsers())
      isRead |= !gone.contains(user);
    if (!isRead)
      continue;
    if (!value.getDefiningOp()->isBeforeInBlock(site.output))
      return "a statistic of its backward pass is needed elsewhere";
    if (!toStatisticMap(statistic.second))
      return "a statistic of its rows has another shape than its probabilities";
    statistics.push_back(value);
    outputs.push_back(site.code->get(value, statistic.second));
  }
  forward = std::make_unique<RowsPlan>(*site.code, site.keys, site.raw, outputs);
  if (std::string reason = forward->chooseInputs(); !reason.empty())
    return reason;
  for (Value value : statistics)
    for (Operation *user : value.getUsers())
      if (!gone.contains(user) &&
          site.output->getBlock()->findAncestorOpInBlock(*user)->isBeforeInBlock(site.output))
        return "a statistic of its rows is read before its second matmul";
  return "";
}

AffineMap AttentionFusion::toMap(ArrayRef<AffineExpr> places) const {
  return AffineMap::get(parts->query.map.getNumDims(), 0, places, rewriter.getContext());
}

/// Returns the map of a statistic, which has each outer dimension once, also those of size 1; null if it
/// lacks one.
AffineMap AttentionFusion::toStatisticMap(ArrayRef<AffineExpr> places) const {
  auto shape = cast<RankedTensorType>(site.probabilities.getType()).getShape();
  SmallVector<unsigned> units = llvm::to_vector(
      llvm::make_filter_range(parts->dims.outer, [&](unsigned dim) { return shape[dim] == 1; }));
  SmallVector<AffineExpr> named(places);
  auto *unit = units.begin();
  for (AffineExpr &place : named)
    if (isa<AffineConstantExpr>(place) && unit != units.end())
      place = getAffineDimExpr(*unit++, rewriter.getContext());
  AffineMap map = toMap(named);
  bool hasAll = llvm::all_of(parts->dims.outer, [&](unsigned dim) { return map.isFunctionOfDim(dim); });
  return hasAll ? map : AffineMap();
}

/// Describes a matmul for the report; `isSwapped` where the operation has its operands the other way round.
Attribute AttentionFusion::describe(MatmulOp matmul, bool isSwapped) const {
  auto lhs = matmul.getLhsKind().value_or(TensorKind::input),
       rhs = matmul.getRhsKind().value_or(TensorKind::input);
  if (isSwapped)
    std::swap(lhs, rhs);
  return MatmulSiteAttr::get(rewriter.getContext(), matmul.getSiteAttr(),
                             matmul.getRole().value_or(Role::other), lhs, rhs, matmul.getKeptAttr());
}

/// Returns `visible_keys` of the operation for `plan`, by the index of queries; null if each row may see all
/// keys.
AffineMapAttr AttentionFusion::limitKeys(const RowsPlan &plan) {
  if (site.keys.size() != 1)
    return {};
  SmallVector<unsigned> queries =
      llvm::to_vector(llvm::make_filter_range(parts->dims.outer, [&](unsigned dim) {
        return !parts->key.map.isFunctionOfDim(dim) && !parts->value.map.isFunctionOfDim(dim);
      }));
  std::optional<VisibleKeys> visible =
      findVisibleKeys(*site.code, plan.getMatmuls(), plan.getOutputs(), queries, site.keys.front());
  bool hasRow = llvm::any_of(plan.getOutputs().drop_front(plan.getMatmuls().size()),
                             [&](const CodeNode *output) { return output->isFunctionOf(site.keys.front()); });
  if (!visible || hasRow)
    return {};
  hidden = visible;
  return AffineMapAttr::get(toMap(getAffineDimExpr(visible->row, rewriter.getContext()) + visible->count));
}

/// Builds the operation with results of the types of `results`, and replaces them.
template <typename Op>
Op AttentionFusion::build(Operation *before, ArrayRef<Operand> operands, RowsPlan &plan,
                          ArrayRef<Value> results, ArrayRef<AffineMap> resultMaps,
                          ArrayRef<Attribute> sites) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(before);
  Location loc = before->getLoc();
  SmallVector<Value> tensors, inputs, outs;
  SmallVector<AffineMap> maps;
  for (const Operand &operand : operands) {
    tensors.push_back(operand.tensor);
    maps.push_back(operand.map);
  }
  for (const RowInput &input : plan.inputs) {
    inputs.push_back(input.tensor);
    maps.push_back(toMap(input.at));
  }
  for (auto [result, map] : llvm::zip_equal(results, resultMaps)) {
    auto type = cast<RankedTensorType>(result.getType());
    auto structured = result.getDefiningOp<DestinationStyleOpInterface>();
    SmallVector<OpFoldResult> sizes =
        structured ? tensor::getMixedSizes(rewriter, loc, structured.getDpsInits().back())
                   : getAsIndexOpFoldResult(rewriter.getContext(), type.getShape());
    outs.push_back(tensor::EmptyOp::create(rewriter, loc, sizes, type.getElementType()));
    maps.push_back(map);
  }
  auto op =
      Op::create(rewriter, loc, tensors, inputs, outs, maps, rewriter.getArrayAttr(sites), limitKeys(plan));
  auto shape = cast<RankedTensorType>(site.probabilities.getType()).getShape();
  SmallVector<int64_t> rowShape = llvm::map_to_vector(site.keys, [&](unsigned key) { return shape[key]; });
  SmallVector<Type> types(parts->dims.outer.size(), rewriter.getIndexType());
  for (const CodeNode *matmul : plan.getMatmuls())
    types.push_back(RankedTensorType::get(rowShape, matmul->type));
  for (const RowInput &input : plan.inputs) {
    SmallVector<int64_t> part;
    for (AffineExpr expr : input.at)
      if (auto dim = dyn_cast<AffineDimExpr>(expr); dim && llvm::is_contained(site.keys, dim.getPosition()))
        part.push_back(shape[dim.getPosition()]);
    Type element = getElementTypeOrSelf(input.tensor);
    types.push_back(part.empty() ? element : Type(RankedTensorType::get(part, element)));
  }
  Block *block = rewriter.createBlock(&op.getRows(), {}, types, SmallVector<Location>(types.size(), loc));
  RowsWriter writer(rewriter, plan, parts->dims.outer, block);
  SmallVector<Value> yielded = writer.write();
  YieldOp::create(rewriter, loc, yielded.front(), ValueRange(yielded).drop_front());
  for (auto [old, now] : llvm::zip_equal(results, op->getResults()))
    rewriter.replaceAllUsesWith(old, now);
  return op;
}

void AttentionFusion::buildBackward() {
  auto isSwapped = [](MatmulOp matmul, Value first) { return matmul.getLhs() != first; };
  MatmulOp scores = cast<MatmulOp>(site.scores);
  build<AttentionGradOp>(
      firstGradient, {parts->query, parts->key, parts->value, parts->outputGrad}, *backward,
      {parts->queryGrad.matmul.getResult(0), parts->keyGrad.matmul.getResult(0),
       parts->valueGrad.matmul.getResult(0)},
      {parts->queryGrad.map, parts->keyGrad.map, parts->valueGrad.map},
      {describe(scores, isSwapped(scores, parts->query.tensor)),
       describe(parts->probabilityGrad, isSwapped(parts->probabilityGrad, parts->outputGrad.tensor)),
       describe(parts->valueGrad.matmul, !isSwapped(parts->valueGrad.matmul, parts->outputGrad.tensor)),
       describe(parts->queryGrad.matmul, !isSwapped(parts->queryGrad.matmul, parts->key.tensor)),
       describe(parts->keyGrad.matmul, !isSwapped(parts->keyGrad.matmul, parts->query.tensor))});
}

void AttentionFusion::buildForward() {
  SmallVector<Value> results{parts->output.tensor};
  SmallVector<AffineMap> maps{parts->output.map};
  for (Value statistic : statistics) {
    results.push_back(statistic);
    maps.push_back(toStatisticMap(readers.statistics.find(statistic)->second));
  }
  MatmulOp scores = cast<MatmulOp>(site.scores), output = cast<MatmulOp>(site.output);
  build<AttentionOp>(output, {parts->query, parts->key, parts->value}, *forward, results, maps,
                     {describe(scores, scores.getLhs() != parts->query.tensor),
                      describe(output, output.getLhs() != site.probabilities)});
}
