// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recognizes matmuls that are written as two ops.

#include "fp8/Analysis/SummedProduct.h"
#include "fp8/Analysis/FloatContraction.h"
#include "fp8/Analysis/Rearrangement.h"
#include "fp8/Dialect/FP8/IR/ContractionDims.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fp8;

/// Matches a sum over one tensor that reads every element once. Sets the types.
static bool matchSum(linalg::LinalgOp op, SummedProduct &result) {
  if (!op.hasPureTensorSemantics() || op.getNumDpsInputs() != 1 || op.getNumDpsInits() != 1 ||
      op.getNumReductionLoops() == 0 || !op.getIndexingMapsArray()[0].isPermutation() ||
      !op.getIndexingMapsArray()[1].isProjectedPermutation())
    return false;
  auto add = op.getBlock()->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!add)
    return false;
  Value accumulator = op.getBlock()->getArgument(1), addend = add.getLhs();
  if (addend == accumulator)
    addend = add.getRhs();
  else if (add.getRhs() != accumulator)
    return false;
  if (auto extension = addend.getDefiningOp<arith::ExtFOp>())
    addend = extension.getIn();
  result.productType = dyn_cast<FloatType>(addend.getType());
  result.sumType = dyn_cast<FloatType>(add.getType());
  return result.productType && addend == op.getBlock()->getArgument(0);
}

/// Matches an elementwise product of two tensors. Sets the factors and their maps in the dimensions
/// of its result.
static bool matchMatmul(Operation *op, SummedProduct &result) {
  if (!op || !op->hasOneUse())
    return false;
  result.product = op;
  if (isa<arith::MulFOp>(op)) {
    AffineMap identity = AffineMap::getMultiDimIdentityMap(
        cast<RankedTensorType>(op->getResult(0).getType()).getRank(), op->getContext());
    for (unsigned i : {0, 1})
      result.factors[i] = op->getOperand(i);
    result.maps = {identity, identity};
    return true;
  }
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  if (!structured || !structured.hasPureTensorSemantics() || structured.getNumDpsInputs() != 2 ||
      structured.getNumDpsInits() != 1 || structured.getNumReductionLoops() != 0)
    return false;
  result.maps = structured.getIndexingMapsArray();
  if (!llvm::all_of(result.maps, [](AffineMap map) { return map.isProjectedPermutation(); }) ||
      !result.maps[2].isPermutation())
    return false;
  Block *body = structured.getBlock();
  auto product = body->getTerminator()->getOperand(0).getDefiningOp<arith::MulFOp>();
  if (!product)
    return false;
  auto lhs = sliceOfOneArgument(product.getLhs(), body), rhs = sliceOfOneArgument(product.getRhs(), body);
  if (!lhs || !rhs || lhs->argument.getArgNumber() + rhs->argument.getArgNumber() != 1)
    return false;
  AffineMap fromResult = inversePermutation(result.maps.pop_back_val());
  for (unsigned i : {0, 1}) {
    result.factors[i] = structured.getDpsInputs()[i];
    result.maps[i] = result.maps[i].compose(fromResult);
  }
  return true;
}

/// Looks through transposes and broadcasts of a factor, to find the dimensions that it lacks.
static void stepThroughViews(Value &factor, AffineMap &map) {
  while (Operation *op = factor.getDefiningOp()) {
    std::optional<Rearrangement> view = matchRearrangement(op);
    if (!view || view->cast || !view->map.isProjectedPermutation())
      return;
    factor = view->input;
    map = view->map.compose(map);
  }
}

static bool isMatrixMatmul(linalg::LinalgOp sum, ArrayRef<AffineMap> maps) {
  std::optional<ContractionDims> dims = inferContractionDims(maps);
  if (!dims || dims->k.empty())
    return false;
  SmallVector<int64_t> ranges = sum.getStaticLoopRanges();
  auto isLarge = [&](unsigned d) { return ranges[d] != 1; };
  return llvm::any_of(dims->m, isLarge) || llvm::any_of(dims->n, isLarge);
}

std::optional<SummedProduct> fp8::matchSummedProduct(linalg::LinalgOp sum) {
  SummedProduct result;
  if (!matchSum(sum, result) || !matchMatmul(sum.getDpsInputs()[0].getDefiningOp(), result))
    return std::nullopt;
  SmallVector<AffineMap> sumMaps = sum.getIndexingMapsArray();
  for (unsigned i : {0, 1}) {
    result.maps[i] = result.maps[i].compose(sumMaps[0]);
    stepThroughViews(result.factors[i], result.maps[i]);
  }
  result.maps.push_back(sumMaps[1]);
  return isMatrixMatmul(sum, result.maps) ? std::optional(result) : std::nullopt;
}
