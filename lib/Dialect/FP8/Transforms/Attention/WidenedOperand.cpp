// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Follows an operand back to the 16-bit tensor that it is made of.

#include "WidenedOperand.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

/// Returns the number that a scalar, or each element of a tensor, is; also of a constant of f64 that is
/// rounded.
static std::optional<double> getConstant(Value value) {
  if (auto rounded = value.getDefiningOp<arith::TruncFOp>()) {
    std::optional<double> wide = getConstant(rounded.getIn());
    return wide && getElementTypeOrSelf(value).isF32() ? std::optional<double>(static_cast<float>(*wide))
                                                       : std::nullopt;
  }
  FloatAttr scalar;
  if (matchPattern(value, m_Constant(&scalar)))
    return scalar.getValueAsDouble();
  DenseElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)) && elements.isSplat() &&
      isa<FloatType>(elements.getElementType()))
    return elements.getSplatValue<APFloat>().convertToDouble();
  return std::nullopt;
}

/// Steps back over one operation on floats, a scalar or elementwise: returns the operand that its result is a
/// multiple of, and multiplies `factor`; null for other operations.
static Value stepBack(Operation *op, double &factor) {
  if (isa<arith::ExtFOp>(op))
    return op->getOperand(0);
  if (!isa<arith::MulFOp, arith::DivFOp>(op) || !getElementTypeOrSelf(op->getResult(0)).isF32())
    return {};
  for (unsigned i : {0, 1}) {
    std::optional<double> constant = getConstant(op->getOperand(1 - i));
    if (!constant || (i == 1 && isa<arith::DivFOp>(op)))
      continue;
    factor = isa<arith::DivFOp>(op) ? factor / *constant : factor * *constant;
    return op->getOperand(i);
  }
  return {};
}

/// Steps back over an elementwise linalg operation.
static std::optional<WidenedOperand> stepBack(linalg::GenericOp op, const WidenedOperand &from) {
  if (op.getNumResults() != 1 || op.getNumDpsInputs() != 1 || op.getNumReductionLoops() != 0 ||
      !op.getIndexingMapsArray()[1].isIdentity() || !op.getIndexingMapsArray()[0].isPermutation())
    return std::nullopt;
  WidenedOperand next = from;
  Value value = op.getBody()->getTerminator()->getOperand(0);
  while (value != op.getBody()->getArgument(0)) {
    Operation *inner = value.getDefiningOp();
    if (!inner || inner->getBlock() != op.getBody() || !(value = stepBack(inner, next.factor)))
      return std::nullopt;
  }
  next.source.tensor = op.getDpsInputs()[0];
  next.source.map = op.getIndexingMapsArray()[0].compose(from.source.map);
  return next;
}

WidenedOperand fp8::detail::findSource(const Operand &operand) {
  WidenedOperand found{operand, 1};
  while (getElementTypeOrSelf(found.source.tensor).isF32()) {
    Operation *op = found.source.tensor.getDefiningOp();
    std::optional<WidenedOperand> next;
    if (auto generic = dyn_cast_or_null<linalg::GenericOp>(op)) {
      next = stepBack(generic, found);
    } else if (auto transpose = dyn_cast_or_null<linalg::TransposeOp>(op)) {
      next = found;
      next->source.tensor = transpose.getInput();
      next->source.map = transpose.getIndexingMapsArray()[0].compose(
          inversePermutation(transpose.getIndexingMapsArray()[1]).compose(found.source.map));
    } else if (op) {
      next = found;
      next->source.tensor = stepBack(op, next->factor);
    }
    if (!next || !next->source.tensor)
      return {operand, 1};
    found = *next;
  }
  return isa<BFloat16Type, Float16Type>(getElementTypeOrSelf(found.source.tensor))
             ? found
             : WidenedOperand{operand, 1};
}
