// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Propagates sets of sources forward over a function, in program order.

#include "fp8/Analysis/Reachability.h"
#include "fp8/Analysis/Branches.h"
#include "fp8/Analysis/RegionFlow.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/ShapedOpInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace fp8;

Reachability::Reachability(FunctionOpInterface function, ArrayRef<Operation *> sources, Reach reach,
                           ArrayRef<Value> values)
    : reach(reach), count(sources.size() + values.size()), sourceValues(values.begin(), values.end()) {
  for (auto [i, source] : llvm::enumerate(sources)) {
    numbers[source] = i;
    for (Operation *op = source->getParentOp(); op; op = op->getParentOp())
      holders.insert(op);
  }
  for (auto [i, value] : llvm::enumerate(values))
    reached.try_emplace(value, count).first->second.set(sources.size() + i);
  visit(function.getFunctionBody());
}

void Reachability::add(llvm::BitVector &set, Value value) const {
  auto it = reached.find(value);
  if (it != reached.end())
    set |= it->second;
}

void Reachability::store(Value value, const llvm::BitVector &set) {
  if (set.none() || sourceValues.contains(value))
    return;
  auto [it, isNew] = reached.try_emplace(value, set);
  changed |= isNew || set.test(it->second);
  it->second |= set;
}

void Reachability::visit(Region &region) {
  for (Block &block : region)
    for (Operation &op : block)
      visit(&op);
}

void Reachability::visit(Operation *op) {
  if (isa<ShapedDimOpInterface, tensor::EmptyOp>(op)) // a size says nothing of the elements
    return;
  if (!isa<RegionBranchOpInterface>(op))
    return visitPlain(op);
  if (reach != Reach::everything)
    return visitControlFlow(op);
  // Values of one iteration enter the next one: repeat until no set grows.
  bool before = changed, any = false;
  do {
    changed = false;
    visitControlFlow(op);
    any |= changed;
  } while (changed);
  changed = before || any;
}

void Reachability::visitPlain(Operation *op) {
  llvm::BitVector all(count);
  // A branch without code is a branch: its result is not computed from its condition.
  for (Value operand : getSelector(op) ? op->getOperands().drop_front() : op->getOperands())
    add(all, operand);
  // Bodies (of linalg ops, say) may read values from outside.
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured)
    add(all, value);
  if (auto number = numbers.find(op); number != numbers.end()) {
    if (reach == Reach::direct)
      all.reset();
    all.set(number->second);
  }
  for (Value result : op->getResults())
    store(result, all);
  // Sources inside a region with unknown control flow depend on all values that enter the operation.
  for (Region &region : holders.contains(op) ? op->getRegions() : MutableArrayRef<Region>()) {
    for (Value argument : region.getArguments())
      store(argument, all);
    visit(region);
  }
}

/// Visits the arguments of each region, then the region, and the results of `op` last. In the first visit,
/// values that come from an earlier iteration have no sources yet.
void Reachability::visitControlFlow(Operation *op) {
  for (Region &region : op->getRegions()) {
    for (Value argument : region.getArguments()) {
      llvm::BitVector set(count);
      for (Value value : getForwardedValues(argument))
        add(set, value);
      store(argument, set);
    }
    visit(region);
  }
  for (Value result : op->getResults()) {
    llvm::BitVector set(count);
    if (getForwardedValues(result).empty())
      addAllReadInside(set, op); // assembled in another way, as in scf.forall
    for (Value value : getOrigins(result))
      add(set, value);
    store(result, set);
  }
}

void Reachability::addAllReadInside(llvm::BitVector &set, Operation *op) const {
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      add(set, operand);
  });
}
