// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Looks through tensors of one integer, and computes the integer without tensors.

#include "OneElement.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace fp8;

bool fp8::holdsOneInteger(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.getElementType().isIntOrIndex() && tensor.hasStaticShape() && tensor.getNumElements() == 1;
  return type.isIntOrIndex();
}

/// Returns whether `op` computes tensors of one integer from such tensors, without reductions.
static bool isOneComputation(linalg::LinalgOp op) {
  return op.hasPureTensorSemantics() && op.getNumReductionLoops() == 0 &&
         llvm::all_of(op->getOperandTypes(), holdsOneInteger);
}

Value fp8::getElementSource(Value value) {
  if (!holdsOneInteger(value.getType()))
    return Value();
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto op = dyn_cast_or_null<linalg::LinalgOp>(argument.getOwner()->getParentOp());
    return op && isOneComputation(op) ? op.getMatchingOpOperand(argument)->get() : Value();
  }
  Operation *op = value.getDefiningOp();
  if (auto computed = dyn_cast<linalg::LinalgOp>(op))
    if (isOneComputation(computed))
      return computed.getBlock()->getTerminator()->getOperand(cast<OpResult>(value).getResultNumber());
  if (isa<tensor::ExtractOp, tensor::FromElementsOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op) &&
      holdsOneInteger(op->getOperand(0).getType()))
    return op->getOperand(0);
  return Value();
}

Value fp8::extractOne(OpBuilder &builder, Location loc, Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return value;
  DenseIntElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)))
    return arith::ConstantOp::create(builder, loc, cast<TypedAttr>(*elements.getValues<Attribute>().begin()));
  SmallVector<Value> zeros(type.getRank());
  for (Value &zero : zeros)
    zero = arith::ConstantIndexOp::create(builder, loc, 0);
  return tensor::ExtractOp::create(builder, loc, value, zeros);
}

Value fp8::cloneElement(OpBuilder &builder, Value value) {
  DenseIntElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)) && holdsOneInteger(value.getType()))
    return extractOne(builder, value.getLoc(), value);
  bool isInBody = isa<linalg::LinalgOp>(value.getParentBlock()->getParentOp());
  if (!isa<TensorType>(value.getType()) && !isInBody)
    return value;
  if (Value source = getElementSource(value))
    return cloneElement(builder, source);
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumRegions() != 0 || op->getNumResults() != 1 || !isPure(op) ||
      !isa<arith::ArithDialect>(op->getDialect()) || !llvm::all_of(op->getOperandTypes(), holdsOneInteger) ||
      !holdsOneInteger(value.getType()))
    return Value();
  IRMapping mapping;
  for (Value operand : op->getOperands()) {
    Value element = cloneElement(builder, operand);
    if (!element)
      return Value();
    mapping.map(operand, element);
  }
  Operation *copy = builder.clone(*op, mapping);
  copy->getResult(0).setType(getElementTypeOrSelf(value.getType()));
  return copy->getResult(0);
}
