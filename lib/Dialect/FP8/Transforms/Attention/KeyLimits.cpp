// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The keys that a mask leaves visible: `visible_keys` of the operations, and its condition.

#include "AttentionFusion.h"
#include "ElementsWriter.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/IR/Magnitude.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

std::optional<double> AttentionFusion::getHiddenShare() const {
  if (!hidden)
    return 0;
  int64_t rows = site.code->getSizes()[hidden->row], keys = site.code->getSizes()[site.keys.front()];
  if (ShapedType::isDynamic(rows) || ShapedType::isDynamic(keys))
    return std::nullopt;
  return 1 - hidden->countScores(rows, keys) / (static_cast<double>(rows) * static_cast<double>(keys));
}

/// Returns the name of the mask for the report: "causal", "window 128" of 128 keys, or "no old keys"; ""
/// without one.
std::string AttentionFusion::describeMask() const {
  if (!hidden)
    return "";
  if (!hidden->first)
    return "causal";
  if (!hidden->end)
    return "no old keys";
  return ("window " + Twine(*hidden->end - *hidden->first)).str();
}

/// Builds the largest magnitude of a tensor, where it is not known yet.
Value AttentionFusion::buildBound(Value tensor) {
  Value &magnitude = magnitudes[tensor];
  if (!magnitude) {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointAfterValue(tensor);
    magnitude = buildMagnitude(rewriter, site.output->getLoc(), tensor);
  }
  return magnitude;
}

/// Returns whether a tensor is computed before the place where the rewriter is.
bool AttentionFusion::isKnownHere(Value tensor) const {
  return DominanceInfo().properlyDominates(tensor, &*rewriter.getInsertionPoint());
}

/// Builds whether a truth is so; null if it cannot be computed here.
Value AttentionFusion::buildTruth(const KeyTruth &truth) {
  RowsPlan plan(*site.code, {}, {}, truth.node);
  auto isInput = [&](const CodeNode *node) { return plan.getInputNumbers().contains(node); };
  auto isKnown = [&](const RowInput &input) { return isKnownHere(input.tensor); };
  if (!plan.chooseInputs().empty() || !llvm::all_of(plan.inputs, isKnown) ||
      !explainElements(truth.node, isInput).empty())
    return {};
  // The loops are the indices of the inputs, and others that the truth is a function of.
  unsigned key = site.keys.front();
  uint64_t read = 0, needed = truth.node->dims & ~(truth.isOfFirst ? uint64_t(1) << key : 0);
  for (const RowInput &input : plan.inputs)
    for (AffineExpr expr : input.at)
      if (isa<AffineDimExpr>(expr))
        read |= getDims(expr);
  SmallVector<unsigned> dims;
  SmallVector<AffineExpr> loops(parts->query.map.getNumDims(), rewriter.getAffineConstantExpr(0));
  for (unsigned dim : llvm::seq<unsigned>(loops.size()))
    if ((read | needed) >> dim & 1) {
      loops[dim] = rewriter.getAffineDimExpr(dims.size());
      dims.push_back(dim);
    }
  SmallVector<Value> tensors;
  SmallVector<AffineMap> maps;
  for (const RowInput &input : plan.inputs) {
    tensors.push_back(input.tensor);
    maps.push_back(toMap(input.at).replaceDimsAndSymbols(loops, {}, dims.size(), 0));
  }
  Location loc = site.output->getLoc();
  for (unsigned dim : llvm::seq<unsigned>(loops.size()))
    if ((needed & ~read) >> dim & 1) { // a tensor without elements that anything reads has its size
      int64_t size = site.code->getSizes()[dim];
      if (ShapedType::isDynamic(size))
        return {};
      tensors.push_back(tensor::EmptyOp::create(rewriter, loc, size, rewriter.getI8Type()));
      maps.push_back(AffineMap::get(dims.size(), 0, loops[dim]));
    }
  maps.push_back(AffineMap::get(dims.size(), 0, rewriter.getContext()));
  SmallVector<utils::IteratorType> iterators(dims.size(), utils::IteratorType::reduction);
  Value yes = arith::ConstantOp::create(rewriter, loc, rewriter.getBoolAttr(true));
  Value empty = tensor::EmptyOp::create(rewriter, loc, ArrayRef<int64_t>(), rewriter.getI1Type());
  Value init = linalg::FillOp::create(rewriter, loc, yes, empty).getResult(0);
  auto all = linalg::GenericOp::create(rewriter, loc, init.getType(), tensors, init, maps, iterators);
  SmallVector<Type> types =
      llvm::map_to_vector(all->getOperands(), [](Value operand) { return getElementTypeOrSelf(operand); });
  OpBuilder::InsertionGuard guard(rewriter);
  Block *block = rewriter.createBlock(&all.getRegion(), {}, types, SmallVector<Location>(types.size(), loc));
  ElementsWriter writer(rewriter, block, {});
  Value first = arith::ConstantIndexOp::create(rewriter, loc, 0);
  writer.setIndex(key, first);
  Value isOther;
  for (auto [loop, dim] : llvm::enumerate(dims)) {
    Value index = linalg::IndexOp::create(rewriter, loc, loop);
    writer.setIndex(dim, index);
    if (dim == key && truth.isOfFirst)
      isOther = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ne, index, first);
  }
  writer.setInputs(plan, 0);
  Value holds = writer.write(truth.node);
  if (!truth.value)
    holds = arith::XOrIOp::create(rewriter, loc, holds,
                                  arith::ConstantOp::create(rewriter, loc, rewriter.getBoolAttr(true)));
  if (isOther)
    holds = arith::OrIOp::create(rewriter, loc, isOther, holds);
  holds = arith::AndIOp::create(rewriter, loc, block->getArguments().back(), holds);
  linalg::YieldOp::create(rewriter, loc, holds);
  return all.getResult(0);
}

/// Builds the condition that magnitudes are within kMostScore, and truths are so.
Value AttentionFusion::buildAll(ArrayRef<Value> conditions) {
  Location loc = site.output->getLoc();
  Value empty = tensor::EmptyOp::create(rewriter, loc, ArrayRef<int64_t>(), rewriter.getI1Type());
  SmallVector<AffineMap> maps(conditions.size() + 1, AffineMap::get(rewriter.getContext()));
  auto all = linalg::GenericOp::create(
      rewriter, loc, empty.getType(), conditions, empty, maps, ArrayRef<utils::IteratorType>(),
      [](OpBuilder &inside, Location at, ValueRange elements) {
        Value most = arith::ConstantOp::create(inside, at, inside.getF32FloatAttr(kMostScore)), holds;
        for (Value own : elements.drop_back()) {
          if (!own.getType().isInteger(1))
            own = arith::CmpFOp::create(inside, at, arith::CmpFPredicate::OLE, own, most);
          holds = holds ? arith::AndIOp::create(inside, at, holds, own).getResult() : own;
        }
        linalg::YieldOp::create(inside, at, holds);
      });
  return all.getResult(0);
}

/// Finds `visible_keys` of an operation, by the index of queries.
AttentionFusion::KeyLimit AttentionFusion::limitKeys(ArrayRef<const CodeNode *> matmuls,
                                                     ArrayRef<const CodeNode *> outputs) {
  if (site.keys.size() != 1)
    return {};
  SmallVector<unsigned> queries =
      llvm::to_vector(llvm::make_filter_range(parts->dims.outer, [&](unsigned dim) {
        return !parts->key.map.isFunctionOfDim(dim) && !parts->value.map.isFunctionOfDim(dim);
      }));
  std::optional<VisibleKeys> visible =
      findVisibleKeys(*site.code, matmuls, outputs, queries, site.keys.front());
  // Hidden keys of a row that is stored would become +0 where the program may have -0; in a sum both are the
  // same.
  bool storesRow =
      matmuls.size() == 1
          ? llvm::any_of(outputs.drop_front(1),
                         [&](const CodeNode *output) { return output->isFunctionOf(site.keys.front()); })
          : llvm::any_of(readers.further, [](const FurtherRows &rows) { return !rows.isSum(); });
  if (!visible || (storesRow && !isOnline) ||
      !llvm::all_of(visible->bounded, [&](Value tensor) { return isKnownHere(tensor); }))
    return {};
  SmallVector<Value> conditions;
  for (const KeyTruth &truth : visible->truths)
    conditions.push_back(buildTruth(truth));
  if (!llvm::all_of(conditions, [](Value condition) { return bool(condition); }))
    return {};
  for (Value tensor : visible->bounded)
    conditions.push_back(buildBound(tensor));
  hidden = visible;
  AffineExpr row = rewriter.getAffineDimExpr(visible->row), none = rewriter.getAffineConstantExpr(0),
             all = rewriter.getAffineConstantExpr(site.code->getSizes()[site.keys.front()]);
  KeyLimit limit{AffineMapAttr::get(toMap({visible->first ? row + *visible->first : none,
                                           visible->end ? row + *visible->end : all})),
                 {}};
  if (!conditions.empty())
    limit.condition = {buildAll(conditions), toMap({})};
  return limit;
}
