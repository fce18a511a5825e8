// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Facts about indices. Bounds are upstream's; divisors follow loops, minima and affine maps.

#include "fp8/Conversion/IndexFacts.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace fp8;

int64_t fp8::findMost(OpFoldResult index) {
  if (std::optional<int64_t> known = getConstantIntValue(index))
    return *known;
  FailureOr<int64_t> most = ValueBoundsConstraintSet::computeConstantBound(
      presburger::BoundType::UB, cast<Value>(index), /*stopCondition=*/nullptr, /*closedUB=*/true);
  return succeeded(most) ? *most : ShapedType::kDynamic;
}

/// Returns a divisor of all results of `map`, whose operands are multiples of their divisors.
static int64_t findDivisor(AffineMap map, ValueRange operands) {
  SmallVector<AffineExpr> dims, symbols;
  for (auto [position, operand] : llvm::enumerate(operands)) {
    int64_t divisor = findDivisor(OpFoldResult(operand));
    if (position < map.getNumDims())
      dims.push_back(getAffineDimExpr(position, map.getContext()) * divisor);
    else
      symbols.push_back(getAffineSymbolExpr(position - map.getNumDims(), map.getContext()) * divisor);
  }
  int64_t common = 0;
  for (AffineExpr expr : map.getResults()) {
    AffineExpr multiples =
        simplifyAffineExpr(expr.replaceDimsAndSymbols(dims, symbols), map.getNumDims(), map.getNumSymbols());
    common = std::gcd(common, multiples.getLargestKnownDivisor());
  }
  return std::max<int64_t>(common, 1);
}

int64_t fp8::findDivisor(OpFoldResult index) {
  if (std::optional<int64_t> known = getConstantIntValue(index))
    return std::max<int64_t>(std::abs(*known), 1);
  auto value = cast<Value>(index);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop || argument != loop.getInductionVar())
      return 1;
    int64_t divisor = std::gcd(getConstantIntValue(loop.getLowerBound()).value_or(1),
                               getConstantIntValue(loop.getStep()).value_or(1));
    return std::max<int64_t>(divisor, 1);
  }
  Operation *op = value.getDefiningOp();
  if (auto minimum = dyn_cast<affine::AffineMinOp>(op))
    return ::findDivisor(minimum.getMap(), minimum.getOperands());
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op))
    return ::findDivisor(apply.getMap(), apply.getOperands());
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return std::gcd(fp8::findDivisor(OpFoldResult(select.getTrueValue())),
                    fp8::findDivisor(OpFoldResult(select.getFalseValue())));
  if (auto dim = dyn_cast<memref::DimOp>(op))
    if (auto view = dim.getSource().getDefiningOp<memref::SubViewOp>(); view && dim.getConstantIndex()) {
      SmallVector<OpFoldResult> sizes = view.getMixedSizes();
      llvm::SmallBitVector dropped = view.getDroppedDims();
      int64_t left = *dim.getConstantIndex();
      for (auto [position, size] : llvm::enumerate(sizes))
        if (!dropped.test(position) && left-- == 0)
          return fp8::findDivisor(size);
    }
  return 1;
}
