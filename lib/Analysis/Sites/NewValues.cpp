// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Follows the new value of a carried argument back to matmuls.

#include "fp8/Analysis/Sites/NewValues.h"
#include "fp8/Analysis/RegionFlow.h"
#include "fp8/Dialect/FP8/IR/Boundary.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fp8;

static IntegerAttr getResultAttr(BlockArgument argument) {
  auto function = dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  return function && argument.getOwner()->isEntryBlock()
             ? function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), kCarriedAttrName)
             : IntegerAttr();
}

bool fp8::isCarried(Value parameter) {
  auto argument = dyn_cast<BlockArgument>(parameter);
  return argument && getResultAttr(argument);
}

/// True for an operand that has fewer elements than `whole`, as far as sizes are known.
static bool isSmaller(Value operand, RankedTensorType whole) {
  auto type = dyn_cast<RankedTensorType>(operand.getType());
  return !type ||
         (type.hasStaticShape() && whole.hasStaticShape() && type.getNumElements() < whole.getNumElements());
}

/// Adds the values that the elements of `value` are computed from, one step back, to `parts`.
static void collectParts(Value value, SmallVectorImpl<Value> &parts) {
  SmallVector<Value> forwarded = getForwardedValues(value);
  parts.append(forwarded);
  Operation *op = value.getDefiningOp();
  if (!op || !forwarded.empty())
    return;
  if (auto matmul = dyn_cast<MatmulOp>(op)) { // the matmul is added to its init
    parts.push_back(matmul.getInit());
    return;
  }
  auto type = dyn_cast<RankedTensorType>(value.getType());
  bool joins = isa<tensor::InsertSliceOp, tensor::ConcatOp>(op);
  for (Value operand : op->getOperands())
    if (isa<RankedTensorType>(operand.getType()) && type && (joins || !isSmaller(operand, type)))
      parts.push_back(operand);
}

/// The matmuls that `values` are computed from, with no other matmul between.
static llvm::SmallPtrSet<Operation *, 4> findMatmuls(SmallVector<Value> values) {
  llvm::SmallPtrSet<Operation *, 4> matmuls;
  llvm::SmallPtrSet<Value, 16> seen;
  while (!values.empty()) {
    Value value = values.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (value.getDefiningOp<MatmulOp>())
      matmuls.insert(value.getDefiningOp());
    collectParts(value, values);
  }
  return matmuls;
}

llvm::SmallPtrSet<Operation *, 4> fp8::findMatmulsOfNewValue(BlockArgument carried) {
  IntegerAttr result = getResultAttr(carried);
  Operation *terminator = carried.getOwner()->getParent()->back().getTerminator();
  if (!result || result.getInt() < 0 || result.getInt() >= terminator->getNumOperands())
    return {};
  return findMatmuls({terminator->getOperand(result.getInt())});
}

llvm::SmallPtrSet<Operation *, 4> fp8::findMatmulsOfGradient(Value parameter) {
  auto argument = dyn_cast<BlockArgument>(parameter);
  if (!argument)
    return {};
  if (isCarried(argument))
    return findMatmulsOfNewValue(argument);
  Operation *terminator = argument.getOwner()->getParent()->back().getTerminator();
  return findMatmuls(llvm::filter_to_vector(
      terminator->getOperands(), [&](Value result) { return result.getType() == argument.getType(); }));
}
