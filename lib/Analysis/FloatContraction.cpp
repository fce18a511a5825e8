// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recognizes matmuls by indexing maps and body.

#include "fp8/Analysis/FloatContraction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace fp8;

//===----------------------------------------------------------------------===//
// Maps
//===----------------------------------------------------------------------===//

bool fp8::hasContractionMaps(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1)
    return false;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (!llvm::all_of(maps, [](AffineMap map) { return map.isProjectedPermutation(); }))
    return false;
  return llvm::any_of(llvm::seq(maps[0].getNumDims()), [&](unsigned d) {
    return maps[0].isFunctionOfDim(d) && maps[1].isFunctionOfDim(d) && !maps[2].isFunctionOfDim(d);
  });
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

static Value skipCasts(Value value) {
  while (isa_and_present<arith::ExtFOp, arith::TruncFOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

std::optional<BodySlice> fp8::sliceOfOneArgument(Value value, Block *body) {
  BodySlice slice;
  SmallVector<Value> worklist{value};
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(next); argument && argument.getOwner() == body) {
      if (slice.argument && slice.argument != argument)
        return std::nullopt;
      slice.argument = argument;
      continue;
    }
    Operation *op = next.getDefiningOp();
    if (!op || op->getBlock() != body)
      continue; // from outside
    // linalg.index makes the value depend on its position.
    if (!isMemoryEffectFree(op) || op->getNumRegions() != 0 || isa<linalg::IndexOp>(op))
      return std::nullopt;
    slice.ops.insert(op);
    llvm::append_range(worklist, op->getOperands());
  }
  if (!slice.argument)
    return std::nullopt;
  SmallVector<Operation *> ops = slice.ops.takeVector();
  llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  slice.ops.insert(ops.begin(), ops.end());
  return slice;
}

namespace {

/// accumulator + x · y, or accumulator - x · y.
struct MultiplyAdd {
  Value accumulator, x, y;
  bool negates = false;
};

} // namespace

/// Matches a matmul, which may be negated, and cast before it is added.
static bool matchMatmul(Value value, MultiplyAdd &result) {
  value = skipCasts(value);
  while (auto negation = value.getDefiningOp<arith::NegFOp>()) {
    result.negates = !result.negates;
    value = skipCasts(negation.getOperand());
  }
  auto product = value.getDefiningOp<arith::MulFOp>();
  if (product)
    std::tie(result.x, result.y) = std::pair(product.getLhs(), product.getRhs());
  return static_cast<bool>(product);
}

static std::optional<MultiplyAdd> matchMultiplyAdd(Value yielded, Value accumulator) {
  Operation *sum = skipCasts(yielded).getDefiningOp();
  MultiplyAdd result;
  if (auto fma = dyn_cast_if_present<math::FmaOp>(sum)) {
    result = {skipCasts(fma.getC()), fma.getA(), fma.getB()};
  } else if (isa_and_present<arith::AddFOp, arith::SubFOp>(sum)) {
    Value first = skipCasts(sum->getOperand(0)), second = sum->getOperand(1);
    if (isa<arith::AddFOp>(sum) && first != accumulator)
      std::tie(first, second) = std::pair(skipCasts(second), sum->getOperand(0));
    result.accumulator = first;
    result.negates = isa<arith::SubFOp>(sum);
    if (!matchMatmul(second, result))
      return std::nullopt;
  }
  return result.accumulator == accumulator ? std::optional(result) : std::nullopt;
}

static std::optional<FloatContraction> matchBody(linalg::LinalgOp op) {
  Block *body = op.getBlock();
  std::optional<MultiplyAdd> match =
      matchMultiplyAdd(body->getTerminator()->getOperand(0), body->getArgument(2));
  if (!match)
    return std::nullopt;
  FloatContraction result;
  result.productType = cast<FloatType>(match->x.getType());
  result.negates = match->negates;
  for (Value factor : {match->x, match->y}) {
    std::optional<BodySlice> slice = sliceOfOneArgument(factor, body);
    if (!slice || slice->argument.getArgNumber() > 1 || result.factors[slice->argument.getArgNumber()])
      return std::nullopt;
    result.factors[slice->argument.getArgNumber()] = factor;
  }
  return result;
}

bool fp8::sumsFloatProducts(linalg::LinalgOp op) { return matchBody(op).has_value(); }

std::optional<FloatContraction> fp8::matchFloatContraction(linalg::LinalgOp op) {
  // Operands may have any type that the body converts to floats.
  if (!hasContractionMaps(op) || !isa<FloatType>(getElementTypeOrSelf(op.getDpsInits()[0])))
    return std::nullopt;
  return matchBody(op);
}
