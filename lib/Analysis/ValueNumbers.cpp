// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compares operations in program order, so that their operands are numbered already.

#include "fp8/Analysis/ValueNumbers.h"
#include "fp8/Analysis/RegionFlow.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace fp8;

static constexpr auto kIgnoreLocations = OperationEquivalence::IgnoreLocations;

static bool hasVaryingOffset(tensor::ExtractSliceOp slice) {
  return llvm::is_contained(slice.getStaticOffsets(), ShapedType::kDynamic);
}

Value fp8::getStackedValue(Value value) {
  auto slice = value.getDefiningOp<tensor::ExtractSliceOp>();
  if (!slice || !hasVaryingOffset(slice))
    return nullptr;
  tensor::InsertSliceOp insert;
  for (Value origin : getOrigins(slice.getSource())) {
    auto candidate = origin.getDefiningOp<tensor::InsertSliceOp>();
    // Other origins are what the stack holds before it is filled.
    if (candidate && insert)
      return nullptr;
    if (candidate)
      insert = candidate;
  }
  if (!insert || insert.getStaticSizes() != slice.getStaticSizes() ||
      insert.getStaticOffsets() != slice.getStaticOffsets() ||
      insert.getStaticStrides() != slice.getStaticStrides())
    return nullptr;
  return insert.getSource();
}

/// The value that `value` is a plain copy of, of the same type.
static Value getCopied(Value value) {
  llvm::SmallPtrSet<Value, 4> seen; // a stack may be filled from itself
  while (seen.insert(value).second) {
    SmallVector<Value> origins = getOrigins(value);
    Value next = origins.size() == 1 && origins.front() != value ? origins.front() : getStackedValue(value);
    if (!next || next.getType() != value.getType())
      break;
    value = next;
  }
  return value;
}

ValueNumbers::ValueNumbers(FunctionOpInterface function) {
  function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == function)
      return WalkResult::advance();
    visit(op);
    // Elements have no numbers of their own.
    return isa<RegionBranchOpInterface>(op) ? WalkResult::advance() : WalkResult::skip();
  });
}

unsigned ValueNumbers::get(Value value) {
  auto [it, isNew] = numbers.try_emplace(getCopied(value), count);
  count += isNew;
  return it->second;
}

void ValueNumbers::visit(Operation *op) {
  if (op->getNumResults() == 0 || !isMemoryEffectFree(op))
    return;
  if (Operation *equal = findEqual(op))
    for (auto [result, known] : llvm::zip(op->getResults(), equal->getResults()))
      numbers[result] = get(known);
}

/// An operation before `op` that computes the same; null where there is none.
Operation *ValueNumbers::findEqual(Operation *op) {
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op); slice && hasVaryingOffset(slice)) {
    std::vector<int64_t> key;
    for (ArrayRef<int64_t> part : {slice.getStaticOffsets(), slice.getStaticSizes(), slice.getStaticStrides(),
                                   slice.getType().getShape()})
      key.insert(key.end(), part.begin(), part.end());
    auto [it, isNew] = slices.try_emplace({get(slice.getSource()), std::move(key)}, op);
    return isNew ? nullptr : it->second;
  }
  auto hashOperand = [&](Value operand) { return llvm::hash_value(get(operand)); };
  std::vector<Operation *> &alike = operations[OperationEquivalence::computeHash(
      op, hashOperand, OperationEquivalence::ignoreHashValue, kIgnoreLocations)];
  for (Operation *other : alike)
    if (areEqual(other, op))
      return other;
  alike.push_back(op);
  return nullptr;
}

bool ValueNumbers::areEqual(Operation *a, Operation *b) {
  DenseMap<Value, Value> inside; // values of the regions
  return OperationEquivalence::isEquivalentTo(
      a, b,
      [&](Value x, Value y) {
        auto known = inside.find(x);
        return success(known != inside.end() ? known->second == y : get(x) == get(y));
      },
      [&](Value x, Value y) { inside[x] = y; }, kIgnoreLocations);
}
