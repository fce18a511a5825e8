// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads maps, and copies written as generic operations, as sums of loops.

#include "WindowReads.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace fp8;

/// Adds `factor` times `expr` to `sum`; returns false if `expr` is no sum of dimensions.
static bool addTo(LoopSum &sum, AffineExpr expr, int64_t factor) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    sum.constant += factor * constant.getValue();
    return true;
  }
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    sum.factors[dim.getPosition()] += factor;
    return true;
  }
  auto both = dyn_cast<AffineBinaryOpExpr>(expr);
  if (both && both.getKind() == AffineExprKind::Add)
    return addTo(sum, both.getLHS(), factor) && addTo(sum, both.getRHS(), factor);
  auto scale = both ? dyn_cast<AffineConstantExpr>(both.getRHS()) : AffineConstantExpr();
  return scale && both.getKind() == AffineExprKind::Mul &&
         addTo(sum, both.getLHS(), factor * scale.getValue());
}

std::optional<SmallVector<LoopSum>> fp8::detail::flatten(AffineMap map) {
  SmallVector<LoopSum> sums;
  for (AffineExpr expr : map.getResults()) {
    LoopSum &sum = sums.emplace_back(LoopSum{SmallVector<int64_t>(map.getNumDims(), 0)});
    if (!addTo(sum, expr, 1))
      return std::nullopt;
  }
  return sums;
}

/// Returns the index that a body computes from those of its loops.
static std::optional<LoopSum> readIndex(Value value, unsigned numDims) {
  LoopSum sum{SmallVector<int64_t>(numDims, 0)};
  if (std::optional<int64_t> constant = getConstantIntValue(value)) {
    sum.constant = *constant;
    return sum;
  }
  if (auto index = value.getDefiningOp<linalg::IndexOp>()) {
    sum.factors[index.getDim()] = 1;
    return sum;
  }
  auto difference = value.getDefiningOp<arith::SubIOp>();
  if (!difference)
    return std::nullopt;
  std::optional<LoopSum> a = readIndex(difference.getLhs(), numDims),
                         b = readIndex(difference.getRhs(), numDims);
  if (!a || !b)
    return std::nullopt;
  a->constant -= b->constant;
  for (auto [x, y] : llvm::zip_equal(a->factors, b->factors))
    x -= y;
  return a;
}

std::optional<WindowRead> fp8::detail::matchCopy(linalg::GenericOp op) {
  if (op.getNumReductionLoops() != 0 || op->getNumResults() != 1 || !op.hasPureTensorSemantics() ||
      !op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity())
    return std::nullopt;
  Value yielded = op.getBody()->getTerminator()->getOperand(0);
  unsigned rank = op.getNumLoops();
  if (op.getNumDpsInputs() == 1 && yielded == op.getBody()->getArgument(0)) {
    std::optional<SmallVector<LoopSum>> indices =
        detail::flatten(op.getMatchingIndexingMap(op.getDpsInputOperand(0)));
    return indices ? std::optional(WindowRead{op.getDpsInputs()[0], std::move(*indices)}) : std::nullopt;
  }
  auto extract = yielded.getDefiningOp<tensor::ExtractOp>();
  if (!extract || op.getNumDpsInputs() != 0 ||
      op->isAncestor(extract.getTensor().getParentBlock()->getParentOp()))
    return std::nullopt;
  WindowRead read{extract.getTensor(), {}};
  for (Value index : extract.getIndices()) {
    std::optional<LoopSum> sum = readIndex(index, rank);
    if (!sum)
      return std::nullopt;
    read.indices.push_back(std::move(*sum));
  }
  return read;
}

bool fp8::detail::isReordering(const WindowRead &copy, unsigned rank) {
  llvm::SmallBitVector seen(rank);
  for (const LoopSum &index : copy.indices)
    for (unsigned d : index.loops()) {
      if (index.loops().size() != 1 || std::abs(index.factors[d]) != 1 || seen.test(d))
        return false;
      seen.set(d);
    }
  return true;
}
