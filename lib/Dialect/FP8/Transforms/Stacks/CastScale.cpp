// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds, compares and repeats the code that computes scales.

#include "CastScale.h"
#include "fp8/Analysis/CheapestCut.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace fp8;

std::optional<CastScale> CastScale::of(QuantizeOp op) {
  // The random bits of a slice are not those of its part of the whole tensor.
  if (op.getTransposition() || !op.getProducer().empty() || op.getRandom())
    return std::nullopt;
  CastScale found(op);
  return found.add(found.scale) ? std::optional(found) : std::nullopt;
}

/// Adds the operations that compute `value`; false where `value` depends on anything but the
/// tensor and the function's arguments.
bool CastScale::add(Value value) {
  if (value == tensor)
    return true;
  Operation *op = value.getDefiningOp();
  if (!op)
    return isa<func::FuncOp>(value.getParentBlock()->getParentOp());
  if (ofArguments.contains(op) || ofTensor.contains(op))
    return true;
  if (!isMemoryEffectFree(op))
    return false;
  SmallVector<Value> reads = getReadValues(op);
  if (!llvm::all_of(reads, [&](Value read) { return add(read); }))
    return false;
  bool followsFromTensor = llvm::any_of(
      reads, [&](Value read) { return read == tensor || ofTensor.contains(read.getDefiningOp()); });
  if (!followsFromTensor)
    return ofArguments.insert(op);
  return isa<AmaxOp, ComputeScaleOp, scf::IfOp>(op) && ofTensor.insert(op);
}

namespace {
/// Compares code that reads one tensor with code that reads another, of any other shape.
class Comparison {
public:
  Comparison(Value tensorA, Value tensorB) : tensorA(tensorA), tensorB(tensorB) {}
  bool areAlike(Value a, Value b);

private:
  bool areAlike(Operation *a, Operation *b);
  bool areAlike(Region &a, Region &b);

  Value tensorA, tensorB;
  DenseMap<Value, Value> inside; ///< values of regions
};
} // namespace

bool Comparison::areAlike(Value a, Value b) {
  if (a == tensorA || b == tensorB)
    return a == tensorA && b == tensorB;
  if (a == b || inside.lookup(a) == b)
    return true;
  auto first = dyn_cast<OpResult>(a), second = dyn_cast<OpResult>(b);
  return first && second && first.getResultNumber() == second.getResultNumber() &&
         areAlike(first.getOwner(), second.getOwner());
}

bool Comparison::areAlike(Operation *a, Operation *b) {
  return a->getName() == b->getName() && a->getAttrDictionary() == b->getAttrDictionary() &&
         a->getResultTypes() == b->getResultTypes() && a->getNumOperands() == b->getNumOperands() &&
         llvm::all_of(llvm::zip(a->getOperands(), b->getOperands()),
                      [&](auto pair) { return areAlike(std::get<0>(pair), std::get<1>(pair)); }) &&
         llvm::all_of(llvm::zip(a->getRegions(), b->getRegions()),
                      [&](auto pair) { return areAlike(std::get<0>(pair), std::get<1>(pair)); });
}

bool Comparison::areAlike(Region &a, Region &b) {
  if (a.empty() || b.empty())
    return a.empty() && b.empty();
  if (!a.hasOneBlock() || !b.hasOneBlock() || a.getArgumentTypes() != b.getArgumentTypes() ||
      a.front().getOperations().size() != b.front().getOperations().size())
    return false;
  for (auto [first, second] : llvm::zip(a.getArguments(), b.getArguments()))
    inside[first] = second;
  for (auto [first, second] : llvm::zip(a.front(), b.front())) {
    if (!areAlike(&first, &second))
      return false;
    for (auto [value, other] : llvm::zip(first.getResults(), second.getResults()))
      inside[value] = other;
  }
  return true;
}

bool CastScale::isAlike(const CastScale &other) const {
  return Comparison(tensor, other.tensor).areAlike(scale, other.scale);
}

Operation *CastScale::moveToStart() {
  Operation *last = nullptr;
  for (Operation *op : ofArguments) {
    if (last)
      op->moveAfter(last);
    else
      op->moveBefore(&op->getParentOfType<func::FuncOp>().front().front());
    last = op;
  }
  return last;
}

Value CastScale::cloneFor(OpBuilder &builder, Value other) const {
  IRMapping mapping;
  mapping.map(tensor, other);
  for (Operation *op : ofTensor)
    builder.clone(*op, mapping);
  return mapping.lookupOrDefault(scale);
}
