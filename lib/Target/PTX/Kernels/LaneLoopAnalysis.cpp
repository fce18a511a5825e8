// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether lanes can share an iteration, and how many do.

#include "LaneLoop.h"
#include "fp8/Conversion/GenericCode.h"
#include "fp8/Conversion/Kernel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace fp8;

/// Elements to each of few results, from which on lanes also share what is not adjacent: many threads
/// outweigh that each of them reads a sector of its own.
static constexpr int64_t kElementsApart = 1024;

Value fp8::findBuffer(Value memref) {
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>())
    memref = view.getViewSource();
  return memref;
}

/// Records an access at the iteration's element. Returns false if it is at a computed one, which is stored,
/// if neighbouring iterations that store are not adjacent in memory, or if the memory has no strides.
bool LaneLoop::addElement(scf::ForOp inner, Operation *op, Value memref, ValueRange indices, bool isStore) {
  BufferAccesses &access = buffers[findBuffer(memref)];
  SmallVector<Value> iteration = nests.lookup(inner);
  if (iteration.empty())
    iteration.push_back(inner.getInductionVar());
  auto isOwn = [&](Value index) { return llvm::is_contained(iteration, index); };
  bool isElement = llvm::all_of(iteration, [&](Value index) { return llvm::is_contained(indices, index); });
  bool isComputed = llvm::any_of(indices, [&](Value index) {
    return !isOwn(index) && inner->isAncestor(index.getParentBlock()->getParentOp());
  });
  if (!isElement || isComputed) {
    access.loadsOthers = true;
    return !isStore;
  }
  auto type = cast<MemRefType>(memref.getType());
  if (!type.isStrided() || llvm::count_if(indices, isOwn) != int64_t(iteration.size()))
    return false;
  auto [strides, offset] = type.getStridesAndOffset();
  if (indices.back() != iteration.back() || strides.back() != 1) {
    access.loadsOthers = readsApart = true;
    return !isStore;
  }
  access.elements.push_back(op);
  access.storesElements |= isStore;
  isAdjacent |= getConstantIntValue(inner.getUpperBound()).value_or(kWarpLanes) >= kWarpLanes;
  return true;
}

/// Returns the only load in the block of the element that `store` stores, if it comes first.
static memref::LoadOp findLoad(memref::StoreOp store) {
  memref::LoadOp found;
  for (auto load : store->getBlock()->getOps<memref::LoadOp>())
    if (load.getMemRef() == store.getMemRef() && load.getIndices() == store.getIndices()) {
      if (found || !load->isBeforeInBlock(store))
        return {};
      found = load;
    }
  return found;
}

/// Finds how lanes can compute the values that a loop reduces.
bool LaneLoop::matchReductions(scf::ForOp inner, ArrayRef<ReducedValue> places) {
  SmallVector<LoopReduction> &found = reductions[inner];
  SmallVector<ReducedValue> others;
  for (const ReducedValue &place : places) {
    if (std::unique_ptr<LaneReduction> combiner = matchCombiner(place.before, place.after))
      found.push_back({std::move(combiner), {place}});
    else
      others.push_back(place);
  }
  if (others.empty())
    return true;
  auto getBefore = [](const ReducedValue &place) { return place.before; };
  auto getAfter = [](const ReducedValue &place) { return place.after; };
  std::unique_ptr<LaneReduction> selection =
      matchSelection(inner, llvm::map_to_vector(others, getBefore), llvm::map_to_vector(others, getAfter));
  if (!selection) {
    if (getConstantIntValue(inner.getUpperBound()).value_or(kWarpLanes) >= kWarpLanes)
      remarkGeneric(
          inner, "runs in one thread for each result on the GPU",
          "what an iteration carries to the next one is more than sums, products but of bf16 and f16, "
          "extremes, bitwise operations, or one selection by comparisons and what belongs to it");
    return false;
  }
  for (ReducedValue &place : others)
    if (place.store)
      buffers[findBuffer(place.store.getMemRef())].startsWithIt = true;
  found.push_back({std::move(selection), others});
  return true;
}

bool LaneLoop::analyzeLoop(scf::ForOp inner) {
  if (!isConstantIntValue(inner.getLowerBound(), 0) || !isConstantIntValue(inner.getStep(), 1) ||
      !inner.getInductionVar().getType().isIndex())
    return false;
  SmallVector<ReducedValue> places;
  for (auto [i, argument, value] : llvm::enumerate(inner.getRegionIterArgs(), inner.getYieldedValues()))
    places.push_back({argument, value, static_cast<unsigned>(i)});
  llvm::SmallPtrSet<Operation *, 8> inMemory;
  for (auto store : inner.getBody()->getOps<memref::StoreOp>()) {
    auto isInside = [&](Value value) { return inner->isAncestor(value.getParentBlock()->getParentOp()); };
    if (llvm::any_of(store.getIndices(), isInside))
      continue;
    memref::LoadOp load = findLoad(store);
    if (!load || isInside(store.getMemRef()) || buffers[findBuffer(store.getMemRef())].reduces)
      return false; // or two reductions into one buffer, by one loop or several
    buffers[findBuffer(store.getMemRef())].reduces = true;
    places.push_back({load, store.getValue(), 0, store});
    inMemory.insert({load, store});
  }
  if (!matchReductions(inner, places))
    return false;
  loops.push_back(inner);
  return llvm::all_of(inner.getBody()->without_terminator(), [&](Operation &op) {
    if (inMemory.contains(&op))
      return true;
    if (auto load = dyn_cast<memref::LoadOp>(op))
      return addElement(inner, load, load.getMemRef(), load.getIndices(), /*isStore=*/false);
    if (auto store = dyn_cast<memref::StoreOp>(op))
      return addElement(inner, store, store.getMemRef(), store.getIndices(), /*isStore=*/true);
    return isMemoryEffectFree(&op);
  });
}

/// Returns whether every lane reads what it has written itself.
bool LaneLoop::isSafe(Value buffer, const BufferAccesses &access) {
  bool isPrivate = buffer.getDefiningOp<memref::AllocaOp>() != nullptr;
  bool isWritten = access.storesElements || access.reduces || access.stores;
  if (isWritten && !isPrivate) {
    auto argument = dyn_cast<BlockArgument>(buffer);
    auto func = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
    if (!func || !(func.getArgAttr(argument.getArgNumber(), LLVM::LLVMDialect::getNoAliasAttrName()) ||
                   func.getArgAttr(argument.getArgNumber(), kOwnMemoryAttrName)))
      return false;
  }
  if (access.storesElements) {
    auto getMemRef = [](Operation *op) {
      return isa<memref::LoadOp>(op) ? cast<memref::LoadOp>(op).getMemRef()
                                     : cast<memref::StoreOp>(op).getMemRef();
    };
    auto getIndices = [](Operation *op) {
      ValueRange indices = isa<memref::LoadOp>(op) ? cast<memref::LoadOp>(op).getIndices()
                                                   : cast<memref::StoreOp>(op).getIndices();
      return indices.drop_back(); // the last one is the iteration
    };
    Operation *first = access.elements.front();
    return !access.loadsOthers && !access.reduces && !access.loads && !access.stores &&
           llvm::all_of(access.elements, [&](Operation *op) {
             return getMemRef(op) == getMemRef(first) && getIndices(op) == getIndices(first);
           });
  }
  // Memory that all lanes share and one lane writes may be read by that lane alone.
  bool readsBack = access.loads || access.loadsOthers || !access.elements.empty() ||
                   (access.startsWithIt && access.stores);
  return isPrivate ? !access.reduces || (access.elements.empty() && !access.loadsOthers)
                   : !isWritten || !readsBack;
}

bool LaneLoop::analyze() {
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (auto inner = dyn_cast<scf::ForOp>(op)) {
      if (!analyzeLoop(inner))
        return false;
    } else if (auto load = dyn_cast<memref::LoadOp>(op)) {
      buffers[findBuffer(load.getMemRef())].loads = true;
    } else if (auto store = dyn_cast<memref::StoreOp>(op)) {
      buffers[findBuffer(store.getMemRef())].stores = true;
    } else if (!isa<memref::AllocaOp>(op) && !isMemoryEffectFree(&op)) {
      return false;
    }
  }
  return chooseLanes() && loop.getInitVals().empty() &&
         llvm::all_of(buffers, [&](auto &entry) { return isSafe(entry.first, entry.second); });
}

/// Chooses how many lanes share an iteration. Returns false if one thread is as good.
bool LaneLoop::chooseLanes() {
  std::optional<int64_t> count = 1, length = 0;
  for (auto [lower, upper, step] :
       llvm::zip_equal(loop.getLowerBound(), loop.getUpperBound(), loop.getStep())) {
    std::optional<int64_t> begin = getConstantIntValue(lower), end = getConstantIntValue(upper);
    bool isKnown = count && begin && end && getConstantIntValue(step) == 1;
    count = isKnown ? std::optional(*count * std::max<int64_t>(*end - *begin, 0)) : std::nullopt;
  }
  for (scf::ForOp inner : loops) {
    std::optional<int64_t> end = getConstantIntValue(scf::ForOp(inner).getUpperBound());
    length = length && end ? std::optional(std::max(*length, *end)) : std::nullopt;
  }
  lanes = fp8::chooseLanes(count, length);
  if (!readsApart)
    return isAdjacent;
  bool reduces = llvm::any_of(reductions, [](auto &entry) { return !entry.second.empty(); });
  return reduces && count && *count * kWarpLanes < kManyThreads &&
         length.value_or(kElementsApart) >= kElementsApart;
}
