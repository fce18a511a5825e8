// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Computes code on numbers. A node is computed once for the indices that it is a function of.

#include "fp8/Analysis/Attention/ElementCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/AffineMap.h"

using namespace mlir;
using namespace fp8;
using Kind = CodeNode::Kind;

/// Returns the number that `expr` is for these indices.
static int64_t evaluate(AffineExpr expr, ArrayRef<int64_t> indices) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return indices[dim.getPosition()];
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t lhs = evaluate(binary.getLHS(), indices), rhs = evaluate(binary.getRHS(), indices);
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return lhs + rhs;
  case AffineExprKind::Mul:
    return lhs * rhs;
  case AffineExprKind::Mod:
    return llvm::mod(lhs, rhs);
  case AffineExprKind::FloorDiv:
    return llvm::divideFloorSigned(lhs, rhs);
  default:
    return llvm::divideCeilSigned(lhs, rhs);
  }
}

std::optional<ScalarValue> CodeEvaluator::compute(const CodeNode *node, ArrayRef<int64_t> at) {
  indices.assign(at.begin(), at.end());
  return computeNode(node);
}

std::optional<ScalarValue> CodeEvaluator::computeNode(const CodeNode *node) {
  if (auto value = fixed.find(node); value != fixed.end())
    return value->second;
  if (node->accumulates)
    return visit(node);
  std::vector<int64_t> own;
  for (auto [dim, index] : llvm::enumerate(indices))
    if (node->isFunctionOf(dim))
      own.push_back(index);
  std::pair key{node, std::move(own)};
  if (auto value = known.find(key); value != known.end())
    return value->second;
  std::optional<ScalarValue> value = visit(node);
  return known[key] = value;
}

/// Accumulates over all numbers of the bound indices from `number` on, the last one fastest.
std::optional<ScalarValue> CodeEvaluator::reduce(const CodeNode *node, unsigned number) {
  if (number == node->bound.size())
    return accumulated = computeNode(node->operands[1]);
  unsigned dim = node->bound[number];
  if (dim >= indices.size())
    indices.resize(dim + 1, 0);
  int64_t outer = indices[dim];
  for (int64_t index : range(dim)) {
    indices[dim] = index;
    if (!reduce(node, number + 1))
      break;
  }
  indices[dim] = outer;
  return accumulated;
}

std::optional<ScalarValue> CodeEvaluator::visit(const CodeNode *node) {
  auto toInteger = [&](int64_t number) {
    unsigned width = node->type.isIndex() ? 64 : node->type.getIntOrFloatBitWidth();
    return APInt(width, number, /*isSigned=*/true, /*implicitTrunc=*/true);
  };
  switch (node->kind) {
  case Kind::element:
    return read(*node,
                llvm::map_to_vector(node->at, [&](AffineExpr expr) { return evaluate(expr, indices); }));
  case Kind::index:
    return toInteger(evaluate(node->at[0], indices));
  case Kind::constant:
    return getScalarValue(node->constant);
  case Kind::accumulator:
    return accumulated;
  case Kind::selection: {
    std::optional<ScalarValue> condition = computeNode(node->operands[0]);
    return condition ? computeNode(node->operands[std::get<APInt>(*condition).isZero() ? 2 : 1]) : condition;
  }
  case Kind::reduction: {
    std::optional<ScalarValue> outside = accumulated;
    accumulated = computeNode(node->operands[0]);
    std::optional<ScalarValue> result = accumulated ? reduce(node, 0) : std::nullopt;
    accumulated = outside;
    return result;
  }
  case Kind::operation: {
    SmallVector<ScalarValue> operands;
    for (const CodeNode *operand : node->operands) {
      std::optional<ScalarValue> value = computeNode(operand);
      if (!value)
        return std::nullopt;
      operands.push_back(*value);
    }
    std::optional<ScalarValue> result = computeScalar(node->getOperation(), operands, rounding);
    if (!result)
      unknown = node->getOperation();
    return result;
  }
  }
  llvm_unreachable("all kinds are handled");
}
