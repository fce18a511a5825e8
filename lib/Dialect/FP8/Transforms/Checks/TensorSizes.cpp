// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Computes sizes of results from sizes of operands, operation by operation, by upstream's
// interfaces.

#include "TensorSizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace fp8;

TensorSizes::TensorSizes(func::FuncOp func) : func(func), builder(func.getContext(), this) {
  OpBuilder start = OpBuilder::atBlockBegin(&func.front());
  firstOwn = arith::ConstantIndexOp::create(start, func.getLoc(), 0);
}

TensorSizes::~TensorSizes() {
  for (Operation *op : llvm::reverse(built.getArrayRef()))
    if (op->use_empty())
      op->erase();
  firstOwn->erase();
}

void TensorSizes::notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) { built.insert(op); }

OpBuilder TensorSizes::atStart() { return OpBuilder(firstOwn); }

SmallVector<OpFoldResult> TensorSizes::getAll(Value tensor) {
  SmallVector<OpFoldResult> sizes;
  for (int64_t dim = 0; dim < cast<RankedTensorType>(tensor.getType()).getRank(); ++dim)
    sizes.push_back(get(tensor, dim));
  return sizes;
}

OpFoldResult TensorSizes::get(Value tensor, int64_t dim) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!type.isDynamicDim(dim))
    return builder.getIndexAttr(type.getDimSize(dim));
  if (OpFoldResult found = known.lookup({tensor, dim}))
    return found;
  OpFoldResult size = compute(tensor, dim);
  return known[{tensor, dim}] = size;
}

OpFoldResult TensorSizes::compute(Value tensor, int64_t dim) {
  Operation *op = tensor.getDefiningOp();
  if (!op) {
    Block *block = tensor.getParentBlock();
    block == &func.front() ? builder.setInsertionPoint(firstOwn) : builder.setInsertionPointToStart(block);
    return tensor::DimOp::create(builder, tensor.getLoc(), tensor, dim).getResult();
  }
  if (OpTrait::hasElementwiseMappableTraits(op))
    for (Value operand : op->getOperands())
      if (auto type = dyn_cast<RankedTensorType>(operand.getType()); type && type.getRank() > dim)
        return get(operand, dim);
  if (auto reshape = dyn_cast<tensor::ReshapeOp>(op))
    if (auto shape = reshape.getShape().getDefiningOp<tensor::FromElementsOp>()) {
      builder.setInsertionPoint(op);
      return simplify(getValueOrCreateCastToIndexLike(builder, op->getLoc(), builder.getIndexType(),
                                                      shape.getElements()[dim]));
    }
  if (isa<ReifyRankedShapedTypeOpInterface>(op)) {
    builder.setInsertionPoint(op);
    FailureOr<OpFoldResult> size =
        reifyDimOfResult(builder, op, cast<OpResult>(tensor).getResultNumber(), dim);
    if (succeeded(size))
      return simplify(*size);
  }
  builder.setInsertionPointAfter(op);
  return tensor::DimOp::create(builder, op->getLoc(), tensor, dim).getResult();
}

OpFoldResult TensorSizes::simplify(OpFoldResult size) {
  auto value = dyn_cast<Value>(size);
  if (!value)
    return size;
  // A cast to another integer type and back.
  if (auto outer = value.getDefiningOp<arith::IndexCastOp>())
    if (auto inner = outer.getIn().getDefiningOp<arith::IndexCastOp>();
        inner && inner.getIn().getType().isIndex())
      return simplify(inner.getIn());
  if (std::optional<int64_t> constant = getConstantIntValue(size))
    return builder.getIndexAttr(*constant);
  auto op = value.getDefiningOp<tensor::DimOp>();
  std::optional<int64_t> dim = op ? op.getConstantIndex() : std::nullopt;
  auto type = op ? dyn_cast<RankedTensorType>(op.getSource().getType()) : RankedTensorType();
  if (!dim || !type || *dim < 0 || *dim >= type.getRank())
    return size;
  // This tensor.dim already is the simplest form of the size.
  if (known.lookup({op.getSource(), *dim}) == size)
    return size;
  return get(op.getSource(), *dim);
}

bool TensorSizes::isSame(OpFoldResult a, OpFoldResult b) {
  a = simplify(a);
  b = simplify(b);
  if (isEqualConstantIntOrValue(a, b))
    return true;
  auto left = dyn_cast<Value>(a), right = dyn_cast<Value>(b);
  if (same.isEquivalent(a.getOpaqueValue(), b.getOpaqueValue()))
    return true;
  if (!left || !right)
    return false;
  Operation *x = left.getDefiningOp(), *y = right.getDefiningOp();
  if (!x || !y || !isPure(x) || x->getNumRegions() != 0 || !isa<IndexType, IntegerType>(left.getType()) ||
      cast<OpResult>(left).getResultNumber() != cast<OpResult>(right).getResultNumber())
    return false;
  return OperationEquivalence::isEquivalentTo(
      x, y, [&](Value one, Value other) { return success(one == other || isSame(one, other)); }, nullptr,
      OperationEquivalence::IgnoreLocations);
}

void TensorSizes::setSame(OpFoldResult a, OpFoldResult b) {
  same.unionSets(simplify(a).getOpaqueValue(), simplify(b).getOpaqueValue());
}

bool TensorSizes::followsFromArguments(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner() == &func.front();
  Operation *op = value.getDefiningOp();
  return isPure(op) && op->getNumRegions() == 0 && isa<IndexType, IntegerType>(value.getType()) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return followsFromArguments(operand); });
}

void TensorSizes::moveToStart(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || (op->getBlock() == firstOwn->getBlock() && op->isBeforeInBlock(firstOwn)))
    return;
  for (Value operand : op->getOperands())
    moveToStart(operand);
  op->moveBefore(firstOwn);
}

bool TensorSizes::hoist(OpFoldResult size) {
  auto value = dyn_cast<Value>(size);
  if (!value)
    return true;
  if (!followsFromArguments(value))
    return false;
  moveToStart(value);
  return true;
}

void TensorSizes::collectArguments(OpFoldResult size, llvm::SetVector<BlockArgument> &arguments) {
  auto value = dyn_cast<Value>(simplify(size));
  if (!value)
    return;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() == &func.front())
      arguments.insert(argument);
    return;
  }
  for (Value operand : value.getDefiningOp()->getOperands())
    if (isa<IndexType, IntegerType>(operand.getType()) || isa<BlockArgument>(operand))
      collectArguments(operand, arguments);
}
