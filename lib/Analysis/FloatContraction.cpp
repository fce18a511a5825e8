// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recognition of matrix products by structure.

#include "fp8/Analysis/FloatContraction.h"
#include "fp8/Dialect/FP8/IR/ContractionDims.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fp8;

/// The indexing maps and operand types of a contraction of float tensors.
static bool hasContractionShape(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || !linalg::isaContractionOpInterface(op) ||
      !llvm::all_of(op->getOperands(), [](Value v) { return isa<FloatType>(getElementTypeOrSelf(v)); }))
    return false;
  std::optional<ContractionDims> dims = fp8::inferContractionDims(op.getIndexingMapsArray());
  return dims && !dims->k.empty();
}

static Value skipCasts(Value value) {
  while (isa_and_present<arith::ExtFOp, arith::TruncFOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// Follows unary operations up to a block argument, noting them in `chain`.
static BlockArgument followUnaryChain(Value value, Block *body, SmallVectorImpl<Operation *> &chain) {
  while (Operation *op = value.getDefiningOp()) {
    if (op->getBlock() != body || op->getNumOperands() != 1 || !isMemoryEffectFree(op))
      return nullptr;
    chain.push_back(op);
    value = op->getOperand(0);
  }
  std::reverse(chain.begin(), chain.end());
  return cast<BlockArgument>(value);
}

/// Matches acc + f(lhs) · g(rhs) or acc + -(f(lhs) · g(rhs)), in any order and with casts in between.
static std::optional<FloatContraction> matchBody(linalg::LinalgOp op) {
  Block *body = op.getBlock();
  auto sum = skipCasts(body->getTerminator()->getOperand(0)).getDefiningOp<arith::AddFOp>();
  if (!sum)
    return std::nullopt;
  Value first = skipCasts(sum.getLhs()), second = skipCasts(sum.getRhs());
  if (second != body->getArgument(2))
    std::swap(first, second);
  bool negates = false;
  while (auto negation = first.getDefiningOp<arith::NegFOp>()) {
    negates = !negates;
    first = skipCasts(negation.getOperand());
  }
  auto product = first.getDefiningOp<arith::MulFOp>();
  if (second != body->getArgument(2) || !product)
    return std::nullopt;

  FloatContraction result;
  result.productType = cast<FloatType>(product.getType());
  result.negates = negates;
  SmallVector<Operation *> a, b;
  BlockArgument fromA = followUnaryChain(product.getLhs(), body, a);
  BlockArgument fromB = followUnaryChain(product.getRhs(), body, b);
  if (!fromA || !fromB || fromA == fromB || fromA.getOwner() != body || fromB.getOwner() != body ||
      fromA.getArgNumber() > 1 || fromB.getArgNumber() > 1)
    return std::nullopt;
  result.prologues[fromA.getArgNumber()] = std::move(a);
  result.prologues[fromB.getArgNumber()] = std::move(b);
  return result;
}

std::optional<FloatContraction> fp8::matchFloatContraction(linalg::LinalgOp op) {
  return hasContractionShape(op) ? matchBody(op) : std::nullopt;
}
