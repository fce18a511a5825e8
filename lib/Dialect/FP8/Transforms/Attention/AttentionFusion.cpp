// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds fp8.attention and fp8.attention_grad from the parts of a place.

#include "AttentionFusion.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Dominance.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

std::string AttentionFusion::plan() {
  parts = std::make_unique<AttentionParts>(site, readers, /*isOrdered=*/!isOnline);
  if (!parts->reason.empty())
    return parts->reason;
  findGone();
  if (isOnline)
    return planOnline();
  if (parts->hasGradients)
    if (std::string reason = planBackward(); !reason.empty())
      return reason;
  return planForward();
}

void AttentionFusion::build() {
  if (isOnline) {
    buildOnline();
  } else {
    if (parts->hasGradients)
      buildBackward();
    buildForward();
  }
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

/// Returns whether an operation computes statistics only, which results of the forward operation replace.
bool AttentionFusion::isStatistic(Operation &op) const {
  return op.getNumResults() != 0 && op.isBeforeInBlock(site.output) &&
         llvm::all_of(op.getResults(), [&](Value result) { return readers.statistics.contains(result); });
}

/// Returns whether an operation computes numbers of rows from the gradients of the probabilities.
bool AttentionFusion::isGradientStatistic(Operation &op) const {
  if (!parts->hasGradients || op.getNumResults() == 0 || op.isBeforeInBlock(site.output))
    return false;
  RowsPlan ofGradients(*site.code, site.keys, parts->probabilityGradNode, {});
  return llvm::all_of(op.getResults(), [&](Value result) {
    const auto *known = readers.statistics.find(result);
    return known != readers.statistics.end() &&
           ofGradients.dependsOnMatmuls(site.code->get(result, known->second));
  });
}

/// Returns whether an operation reads what differs by key.
bool AttentionFusion::readsRows(Operation *op) const {
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    Operation *source = operand.getDefiningOp();
    return operand == site.raw->value || (parts->hasGradients && source == parts->probabilityGrad) ||
           (llvm::is_contained(readers.members, source) && !readers.statistics.contains(operand));
  });
}

void AttentionFusion::findGone() {
  llvm::SmallPtrSet<Operation *, 8> replaced{site.output};
  if (parts->hasGradients)
    replaced.insert({parts->valueGrad.matmul, parts->queryGrad.matmul, parts->keyGrad.matmul});
  for (const FurtherRows &further : readers.further)
    replaced.insert(further.result.getDefiningOp());
  auto isGone = [&](Operation *user) { return gone.contains(user); };
  for (Operation &op : llvm::reverse(*site.output->getBlock())) {
    if (replaced.contains(&op) || (isOnline && isStatistic(op)) ||
        (isMemoryEffectFree(&op) && !op.hasTrait<OpTrait::IsTerminator>() &&
         llvm::all_of(op.getUsers(), isGone))) {
      gone.insert(&op);
    } else if (isGradientStatistic(op)) {
      for (Value result : op.getResults())
        if (!llvm::all_of(result.getUsers(), isGone))
          gradientStatistics.push_back(result);
      gone.insert(&op);
    }
  }
  for (Value statistic : gradientStatistics)
    gradientStatisticNodes.push_back(site.code->get(statistic, readers.statistics.find(statistic)->second));
}

std::string AttentionFusion::planBackward() {
  SmallVector<const CodeNode *> outputs{parts->valueRow, parts->scoreGradRow};
  llvm::append_range(outputs, parts->furtherRows);
  llvm::append_range(outputs, gradientStatisticNodes);
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
  findFirstGradient();
  if (!isKnownBeforeGradients(backward->inputs))
    return "its backward pass reads a tensor that is computed after its first gradient";
  return "";
}

void AttentionFusion::findFirstGradient() {
  for (MatmulOp matmul : {parts->valueGrad.matmul, parts->queryGrad.matmul, parts->keyGrad.matmul})
    if (!firstGradient || matmul->isBeforeInBlock(firstGradient))
      firstGradient = matmul;
  SmallVector<Value> results(gradientStatistics);
  for (const FurtherRows &further : readers.further)
    results.push_back(further.result);
  for (Value result : results)
    if (Operation *first = result.getDefiningOp(); first->isBeforeInBlock(firstGradient))
      firstGradient = first;
}

bool AttentionFusion::isKnownBeforeGradients(ArrayRef<RowInput> inputs) const {
  DominanceInfo dominance;
  SmallVector<Value> needed{parts->query.tensor, parts->key.tensor, parts->value.tensor,
                            parts->outputGrad.tensor};
  for (const RowInput &input : inputs)
    needed.push_back(input.tensor);
  return llvm::all_of(needed, [&](Value value) { return dominance.properlyDominates(value, firstGradient); });
}

/// Chooses the statistics that something reads after the operations.
std::string AttentionFusion::planStatistics() {
  for (auto &statistic : readers.statistics) {
    Value value = statistic.first;
    bool isRead = backward && llvm::any_of(backward->inputs,
                                           [&](const RowInput &input) { return input.tensor == value; });
    for (Operation *user : value.getUsers())
      isRead |= !gone.contains(user);
    bool isGradient = llvm::is_contained(gradientStatistics, value);
    if (!isRead)
      continue;
    if (!isGradient && !value.getDefiningOp()->isBeforeInBlock(site.output)) {
      if (readsRows(value.getDefiningOp()))
        return "a statistic of its rows is computed after its second matmul";
      continue; // from other statistics
    }
    if (!toStatisticMap(statistic.second))
      return "a statistic of its rows has another shape than its probabilities";
    if (isGradient)
      continue;
    statistics.push_back(value);
    statisticNodes.push_back(site.code->get(value, statistic.second));
  }
  return "";
}

std::string AttentionFusion::explainStatisticReaders() const {
  for (Value value : statistics)
    for (Operation *user : value.getUsers())
      if (!gone.contains(user) &&
          site.output->getBlock()->findAncestorOpInBlock(*user)->isBeforeInBlock(site.output))
        return "a statistic of its rows is read before its second matmul";
  return "";
}

std::string AttentionFusion::planForward() {
  if (std::string reason = planStatistics(); !reason.empty())
    return reason;
  SmallVector<const CodeNode *> outputs{site.probability};
  outputs.append(statisticNodes);
  forward = std::make_unique<RowsPlan>(*site.code, site.keys, site.raw, outputs);
  if (std::string reason = forward->chooseInputs(); !reason.empty())
    return reason;
  return explainStatisticReaders();
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

ArrayAttr AttentionFusion::describeForward() const {
  MatmulOp scores = cast<MatmulOp>(site.scores), output = cast<MatmulOp>(site.output);
  return rewriter.getArrayAttr({describe(scores, scores.getLhs() != parts->query.tensor),
                                describe(output, output.getLhs() != site.probabilities)});
}

ArrayAttr AttentionFusion::describeBackward() const {
  auto isSwapped = [](MatmulOp matmul, Value first) { return matmul.getLhs() != first; };
  MatmulOp scores = cast<MatmulOp>(site.scores);
  return rewriter.getArrayAttr(
      {describe(scores, isSwapped(scores, parts->query.tensor)),
       describe(parts->probabilityGrad, isSwapped(parts->probabilityGrad, parts->outputGrad.tensor)),
       describe(parts->valueGrad.matmul, !isSwapped(parts->valueGrad.matmul, parts->outputGrad.tensor)),
       describe(parts->queryGrad.matmul, !isSwapped(parts->queryGrad.matmul, parts->key.tensor)),
       describe(parts->keyGrad.matmul, !isSwapped(parts->keyGrad.matmul, parts->query.tensor))});
}

void AttentionFusion::Operands::addInput(const Operand &input) {
  maps.insert(maps.begin() + tensors.size() + inputs.size(), input.map);
  inputs.push_back(input.tensor);
}

void AttentionFusion::Operands::addOut(const Operand &out) {
  outs.push_back(out.tensor);
  maps.push_back(out.map);
}

/// Returns an input whose rows are contiguous: with the dimension of keys last. T5's bias, from a table for
/// each distance, has heads there.
Operand AttentionFusion::makeRowsContiguous(const RowInput &input) {
  auto *key = llvm::find_if(input.at, [&](AffineExpr expr) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    return dim && llvm::is_contained(site.keys, dim.getPosition());
  });
  unsigned position = key - input.at.begin();
  auto type = dyn_cast<RankedTensorType>(input.tensor.getType());
  if (key == input.at.end() || site.keys.size() != 1 ||
      llvm::all_of(type.getShape().drop_front(position + 1), [](int64_t size) { return size == 1; }))
    return {input.tensor, toMap(input.at)};
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(type.getRank()));
  permutation.erase(permutation.begin() + position);
  permutation.push_back(position);
  Location loc = input.tensor.getLoc();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, loc, input.tensor);
  Value init =
      tensor::EmptyOp::create(rewriter, loc, applyPermutation(sizes, permutation), type.getElementType());
  Value rows = linalg::TransposeOp::create(rewriter, loc, input.tensor, init, permutation)->getResult(0);
  return {rows, toMap(applyPermutation(input.at, permutation))};
}

/// Lists the operands of an operation with results like those given.
AttentionFusion::Operands AttentionFusion::gather(ArrayRef<Operand> operands, ArrayRef<RowInput> inputs,
                                                  ArrayRef<Operand> results) {
  Operands all;
  Location loc = rewriter.getInsertionPoint()->getLoc();
  for (const Operand &operand : operands) {
    all.tensors.push_back(operand.tensor);
    all.maps.push_back(operand.map);
  }
  for (const RowInput &input : inputs)
    all.addInput(makeRowsContiguous(input));
  for (const Operand &result : results) {
    auto type = cast<RankedTensorType>(result.tensor.getType());
    auto structured = result.tensor.getDefiningOp<DestinationStyleOpInterface>();
    SmallVector<OpFoldResult> sizes =
        structured ? tensor::getMixedSizes(rewriter, loc, structured.getDpsInits().back())
                   : getAsIndexOpFoldResult(rewriter.getContext(), type.getShape());
    all.addOut({tensor::EmptyOp::create(rewriter, loc, sizes, type.getElementType()), result.map});
  }
  return all;
}

void AttentionFusion::replace(ArrayRef<Operand> results, Operation *op) {
  for (auto [old, now] : llvm::zip(results, op->getResults()))
    rewriter.replaceAllUsesWith(old.tensor, now);
}

/// Builds the operation where the rewriter is, and replaces `results`.
template <typename Op>
void AttentionFusion::build(ArrayRef<Operand> operands, RowsPlan &plan, ArrayRef<Operand> results,
                            ArrayAttr sites) {
  Location loc = rewriter.getInsertionPoint()->getLoc();
  Operands all = gather(operands, plan.inputs, results);
  KeyLimit limit = limitKeys(plan.getMatmuls(), plan.getOutputs());
  if (limit.condition)
    all.addInput(*limit.condition);
  auto op = Op::create(rewriter, loc, all.tensors, all.inputs, all.outs, all.maps, sites, limit.visible);
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
  if (limit.condition) {
    op.setVisibleIf(all.inputs.size() - 1);
    types.push_back(rewriter.getI1Type());
  }
  OpBuilder::InsertionGuard guard(rewriter);
  Block *block = rewriter.createBlock(&op.getRows(), {}, types, SmallVector<Location>(types.size(), loc));
  RowsWriter writer(rewriter, plan, parts->dims.outer, block);
  SmallVector<Value> yielded = writer.write();
  YieldOp::create(rewriter, loc, yielded.front(), ValueRange(yielded).drop_front());
  replace(results, op);
}

SmallVector<Operand> AttentionFusion::getBackwardResults() const {
  SmallVector<Operand> results{{parts->queryGrad.matmul.getResult(0), parts->queryGrad.map},
                               {parts->keyGrad.matmul.getResult(0), parts->keyGrad.map},
                               {parts->valueGrad.matmul.getResult(0), parts->valueGrad.map}};
  llvm::append_range(results, parts->further);
  for (Value statistic : isOnline ? ArrayRef<Value>() : ArrayRef(gradientStatistics))
    results.push_back({statistic, toStatisticMap(readers.statistics.find(statistic)->second)});
  return results;
}

SmallVector<Operand> AttentionFusion::getForwardResults() const {
  SmallVector<Operand> results{parts->output};
  for (Value statistic : statistics)
    results.push_back({statistic, toStatisticMap(readers.statistics.find(statistic)->second)});
  return results;
}

void AttentionFusion::buildBackward() {
  rewriter.setInsertionPoint(firstGradient);
  build<AttentionGradOp>({parts->query, parts->key, parts->value, parts->outputGrad}, *backward,
                         getBackwardResults(), describeBackward());
}

void AttentionFusion::buildForward() {
  rewriter.setInsertionPoint(site.output);
  build<AttentionOp>({parts->query, parts->key, parts->value}, *forward, getForwardResults(),
                     describeForward());
}
