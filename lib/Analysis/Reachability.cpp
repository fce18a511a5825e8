// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Propagates sets of sources forward over a function, in program order.

#include "fp8/Analysis/Reachability.h"
#include "fp8/Analysis/RegionFlow.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/ShapedOpInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace fp8;

Reachability::Reachability(FunctionOpInterface function, ArrayRef<Operation *> sources, bool direct)
    : direct(direct) {
  for (auto [i, source] : llvm::enumerate(sources)) {
    numbers[source] = i;
    for (Operation *op = source->getParentOp(); op; op = op->getParentOp())
      holders.insert(op);
  }
  visit(function.getFunctionBody());
}

void Reachability::add(llvm::BitVector &set, Value value) const {
  auto it = reached.find(value);
  if (it != reached.end())
    set |= it->second;
}

void Reachability::store(Value value, const llvm::BitVector &set) {
  if (set.any())
    reached[value] |= set;
}

void Reachability::visit(Region &region) {
  for (Block &block : region)
    for (Operation &op : block)
      visit(&op);
}

void Reachability::visit(Operation *op) {
  if (isa<ShapedDimOpInterface>(op)) // a size says nothing of the elements
    return;
  llvm::BitVector all(numbers.size());
  for (Value operand : op->getOperands())
    add(all, operand);

  if (!isa<RegionBranchOpInterface>(op)) {
    // Bodies (of linalg ops, say) may read values from outside.
    llvm::SetVector<Value> captured;
    getUsedValuesDefinedAbove(op->getRegions(), captured);
    for (Value value : captured)
      add(all, value);
    if (auto number = numbers.find(op); number != numbers.end()) {
      if (direct)
        all.reset();
      all.set(number->second);
    }
    for (Value result : op->getResults())
      store(result, all);
    // Sources inside a region that we know nothing about depend on all that enters it.
    for (Region &region : holders.contains(op) ? op->getRegions() : MutableArrayRef<Region>()) {
      for (Value argument : region.getArguments())
        store(argument, all);
      visit(region);
    }
    return;
  }

  // Control flow: what enters a region first, then the region, then what leaves. An
  // argument that is known by now entered the region; the rest comes round the loop.
  for (Region &region : op->getRegions()) {
    for (Value argument : region.getArguments()) {
      llvm::BitVector set(numbers.size());
      for (Value value : getForwardedValues(argument))
        add(set, value);
      store(argument, set);
    }
    visit(region);
  }
  for (Value result : op->getResults()) {
    llvm::BitVector set(numbers.size());
    if (getForwardedValues(result).empty())
      addAllReadInside(set, op); // put together otherwise, as in scf.forall
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
