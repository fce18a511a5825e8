// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The keys that a mask leaves visible: `visible_keys` of the operations, and its condition.

#include "AttentionFusion.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/IR/Magnitude.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

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

/// Says what a mask leaves of each row, as numbers of keys relative to the row's own.
std::string AttentionFusion::describeMask() const {
  if (!hidden)
    return "";
  if (!hidden->first)
    return "causal";
  if (!hidden->end)
    return "no old keys";
  return ("window " + Twine(*hidden->end - *hidden->first)).str();
}

/// Builds the condition that all floats of `tensors` are numbers within ±kMostScore.
Operand AttentionFusion::buildBounds(ArrayRef<Value> tensors) {
  Location loc = site.output->getLoc();
  SmallVector<Value> numbers;
  for (Value tensor : tensors) {
    Value &magnitude = magnitudes[tensor];
    if (!magnitude) {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointAfterValue(tensor);
      magnitude = buildMagnitude(rewriter, loc, tensor);
    }
    numbers.push_back(magnitude);
  }
  Value empty = tensor::EmptyOp::create(rewriter, loc, ArrayRef<int64_t>(), rewriter.getI1Type());
  SmallVector<AffineMap> maps(numbers.size() + 1, AffineMap::get(rewriter.getContext()));
  auto all = linalg::GenericOp::create(
      rewriter, loc, empty.getType(), numbers, empty, maps, ArrayRef<utils::IteratorType>(),
      [](OpBuilder &inside, Location at, ValueRange elements) {
        Value most = arith::ConstantOp::create(inside, at, inside.getF32FloatAttr(kMostScore)), holds;
        for (Value element : elements.drop_back()) {
          Value own = arith::CmpFOp::create(inside, at, arith::CmpFPredicate::OLE, element, most);
          holds = holds ? arith::AndIOp::create(inside, at, holds, own).getResult() : own;
        }
        linalg::YieldOp::create(inside, at, holds);
      });
  return {all.getResult(0), toMap({})};
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
  if (!visible || (storesRow && !isOnline))
    return {};
  hidden = visible;
  AffineExpr row = rewriter.getAffineDimExpr(visible->row), none = rewriter.getAffineConstantExpr(0),
             all = rewriter.getAffineConstantExpr(site.code->getSizes()[site.keys.front()]);
  KeyLimit limit{AffineMapAttr::get(toMap({visible->first ? row + *visible->first : none,
                                           visible->end ? row + *visible->end : all})),
                 {}};
  if (!visible->bounded.empty())
    limit.condition = buildBounds(visible->bounded);
  return limit;
}
