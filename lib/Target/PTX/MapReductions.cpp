// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives every iteration of a kernel's parallel loop, such as a row of a norm or the sum of a row, to the
// lanes of a warp, or of a block of warps where iterations are long and few: lane i of 32 runs iterations i,
// i + 32, … of the loops inside. Sums, maxima and selections of such a loop are combined by the lanes, in an
// order that depends on nothing but the number of iterations. A kernel without a parallel loop, such as a sum
// of all elements, is a loop of one iteration.

#include "LaneReduction.h"
#include "LaneTeam.h"
#include "SingleLoop.h"
#include "ThreadLoop.h"
#include "fp8/Conversion/FP8ToGPU/Kernels.h"
#include "fp8/Conversion/GenericCode.h"
#include "fp8/Conversion/Kernel.h"
#include "fp8/Target/PTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace fp8 {
#define GEN_PASS_DEF_MAPREDUCTIONS
#include "fp8/Target/PTX/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

static Value findBuffer(Value memref) {
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>())
    memref = view.getViewSource();
  return memref;
}

namespace {
/// A value that a loop reduces: it carries it, or loads and stores an element in each iteration.
struct Place {
  Value before, after;
  unsigned carried = 0;       ///< which of the carried values, if there is no store
  memref::StoreOp store = {}; ///< in the loop, until that is rewritten
  // The element in memory, from then on.
  Value memref = {};
  SmallVector<Value> indices = {};
};

struct LoopReduction {
  std::unique_ptr<LaneReduction> reduction;
  SmallVector<Place> places;
};

/// How the parallel loop accesses a buffer.
struct Accesses {
  /// In loops, at the element of the iteration: the operations, all on one memref if one of them stores.
  SmallVector<Operation *> elements;
  bool storesElements = false;
  bool loadsOthers = false;  ///< in loops, at other elements
  bool reduces = false;      ///< in loops, into one element
  bool startsWithIt = false; ///< all lanes load that element before the loop
  bool loads = false;        ///< outside of loops
  bool stores = false;       ///< outside of loops
};

class WarpLoop {
public:
  WarpLoop(scf::ParallelOp loop, const NestIndices &nests) : loop(loop), nests(nests) {}
  /// Returns whether lanes can share each iteration, and if their accesses are adjacent.
  bool analyze();
  /// Returns the lanes that share an iteration.
  int64_t getLanes() const { return lanes; }
  void rewrite();

private:
  bool analyzeLoop(scf::ForOp inner);
  bool addElement(scf::ForOp inner, Operation *op, Value memref, ValueRange indices, bool isStore);
  bool isSafe(Value buffer, const Accesses &access);
  bool matchReductions(scf::ForOp inner, ArrayRef<Place> places);
  int64_t countLanes();
  void shareLoop(scf::ForOp inner);
  void storeResults(OpBuilder &b, LoopReduction &found, scf::ForOp before, ValueRange initial,
                    ValueRange combined);
  void shrink(memref::AllocaOp alloca);
  scf::IfOp buildFirstLane(OpBuilder &b, Location loc);

  scf::ParallelOp loop;
  const NestIndices &nests;
  Value lane;
  int64_t lanes = kWarpLanes;
  SmallVector<scf::ForOp> loops;
  llvm::DenseMap<Operation *, SmallVector<LoopReduction>> reductions; ///< per loop
  llvm::MapVector<Value, Accesses> buffers;
  bool isAdjacent = false;
};
} // namespace

//===----------------------------------------------------------------------===//
// Analysis
//===----------------------------------------------------------------------===//

/// Records an access at the iteration's element. Returns false if it is at a computed one, which is stored,
/// or if neighbouring iterations are not adjacent in memory.
bool WarpLoop::addElement(scf::ForOp inner, Operation *op, Value memref, ValueRange indices, bool isStore) {
  Accesses &access = buffers[findBuffer(memref)];
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
  auto [strides, offset] = cast<MemRefType>(memref.getType()).getStridesAndOffset();
  if (indices.back() != iteration.back() || llvm::count_if(indices, isOwn) != int64_t(iteration.size()) ||
      strides.back() != 1)
    return false;
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
bool WarpLoop::matchReductions(scf::ForOp inner, ArrayRef<Place> places) {
  SmallVector<LoopReduction> &found = reductions[inner];
  SmallVector<Place> others;
  for (const Place &place : places) {
    if (std::unique_ptr<LaneReduction> combiner = matchCombiner(place.before, place.after))
      found.push_back({std::move(combiner), {place}});
    else
      others.push_back(place);
  }
  if (others.empty())
    return true;
  auto getBefore = [](const Place &place) { return place.before; };
  auto getAfter = [](const Place &place) { return place.after; };
  std::unique_ptr<LaneReduction> selection =
      matchSelection(inner, llvm::map_to_vector(others, getBefore), llvm::map_to_vector(others, getAfter));
  if (!selection) {
    if (getConstantIntValue(inner.getUpperBound()).value_or(kWarpLanes) >= kWarpLanes)
      remarkGeneric(
          inner, "runs in one thread for each result on the GPU",
          "what an iteration carries to the next one is more than sums, products, extremes, bitwise "
          "operations, or one selection by comparisons and what belongs to it");
    return false;
  }
  for (Place &place : others)
    if (place.store)
      buffers[findBuffer(place.store.getMemRef())].startsWithIt = true;
  found.push_back({std::move(selection), others});
  return true;
}

bool WarpLoop::analyzeLoop(scf::ForOp inner) {
  if (!isConstantIntValue(inner.getLowerBound(), 0) || !isConstantIntValue(inner.getStep(), 1) ||
      !inner.getInductionVar().getType().isIndex())
    return false;
  SmallVector<Place> places;
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
bool WarpLoop::isSafe(Value buffer, const Accesses &access) {
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

bool WarpLoop::analyze() {
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
  lanes = countLanes();
  return isAdjacent && loop.getInitVals().empty() &&
         llvm::all_of(buffers, [&](auto &entry) { return isSafe(entry.first, entry.second); });
}

int64_t WarpLoop::countLanes() {
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
  return chooseLanes(count, length);
}

//===----------------------------------------------------------------------===//
// Rewrite
//===----------------------------------------------------------------------===//

scf::IfOp WarpLoop::buildFirstLane(OpBuilder &b, Location loc) {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane, zero);
  return scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false);
}

/// Puts the results in the places of a reduction. Those in memory one lane stores.
void WarpLoop::storeResults(OpBuilder &b, LoopReduction &found, scf::ForOp before, ValueRange initial,
                            ValueRange combined) {
  Location loc = before.getLoc();
  SmallVector<Value> results;
  if (found.reduction->startsWithInitial() || !initial.empty())
    results = found.reduction->buildResult(b, initial, combined);
  for (auto [i, place] : llvm::enumerate(found.places)) {
    if (!place.memref) {
      before.getResult(place.carried).replaceAllUsesWith(results[i]);
      continue;
    }
    OpBuilder::InsertionGuard guard(b);
    if (!findBuffer(place.memref).getDefiningOp<memref::AllocaOp>())
      b.setInsertionPoint(buildFirstLane(b, loc).thenYield());
    Value result = results.empty() ? Value() : results[i];
    if (!result) {
      Value kept = memref::LoadOp::create(b, loc, place.memref, place.indices);
      result = found.reduction->buildResult(b, kept, combined).front();
    }
    memref::StoreOp::create(b, loc, result, place.memref, place.indices);
  }
}

/// Divides the iterations of `inner` among the lanes.
void WarpLoop::shareLoop(scf::ForOp inner) {
  SmallVector<LoopReduction> &found = reductions[inner];
  OpBuilder b(inner);
  Location loc = inner.getLoc();
  SmallVector<SmallVector<Value>> initials;
  SmallVector<Value> starts;
  SmallVector<unsigned> counts;
  for (LoopReduction &each : found) {
    SmallVector<Value> &initial = initials.emplace_back();
    for (Place &place : each.places) {
      if (place.store) {
        place.memref = place.store.getMemRef();
        place.indices = place.store.getIndices();
      }
      if (!place.memref)
        initial.push_back(inner.getInits()[place.carried]);
      else if (each.reduction->startsWithInitial())
        initial.push_back(memref::LoadOp::create(b, loc, place.memref, place.indices));
    }
    SmallVector<Value> start = each.reduction->buildStart(b, initial);
    counts.push_back(start.size());
    llvm::append_range(starts, start);
  }
  bool isShared = llvm::any_of(found, [](const LoopReduction &each) {
    return each.reduction->startsWithInitial() && llvm::any_of(each.places, [](const Place &place) {
             return place.memref && !findBuffer(place.memref).getDefiningOp<memref::AllocaOp>();
           });
  });
  if (isShared && lanes == kWarpLanes) // one lane stores there in the end; more warps meet at a barrier
    NVVM::SyncWarpOp::create(b, loc, arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(-1)));
  Value all = arith::ConstantIndexOp::create(b, loc, lanes);
  auto shared = scf::ForOp::create(b, loc, lane, inner.getUpperBound(), all, starts);
  Block *body = shared.getBody();
  body->clear();
  inner.getBody()->getTerminator()->erase();
  body->getOperations().splice(body->end(), inner.getBody()->getOperations());
  inner.getInductionVar().replaceAllUsesWith(shared.getInductionVar());
  b.setInsertionPointToEnd(body);
  SmallVector<Value> next;
  ValueRange carried = shared.getRegionIterArgs();
  for (auto [each, count] : llvm::zip_equal(found, counts)) {
    SmallVector<Operation *> loads;
    for (Place &place : each.places)
      if (place.memref) {
        loads.push_back(place.before.getDefiningOp());
        place.store.erase();
      }
    llvm::append_range(next,
                       each.reduction->rewriteBody(b, carried.take_front(count), shared.getInductionVar()));
    carried = carried.drop_front(count);
    for (Operation *load : loads)
      load->erase();
  }
  scf::YieldOp::create(b, loc, next);
  b.setInsertionPointAfter(shared);
  ValueRange parts = shared.getResults();
  for (auto [each, initial, count] : llvm::zip_equal(found, initials, counts)) {
    auto combine = [&, reduction = each.reduction.get()](ValueRange mine, ValueRange others) {
      return reduction->combine(b, mine, others);
    };
    SmallVector<Value> combined = LaneTeam(lanes, lane).combine(b, loc, parts.take_front(count), combine);
    storeResults(b, each, inner, initial, combined);
    parts = parts.drop_front(count);
  }
  inner.erase();
}

/// Keeps of a row's temporary what one lane uses.
void WarpLoop::shrink(memref::AllocaOp alloca) {
  MemRefType type = alloca.getType();
  if (type.getRank() != 1 || !type.hasStaticShape() || !type.getLayout().isIdentity() ||
      !buffers[alloca].storesElements ||
      !llvm::all_of(alloca->getUsers(), llvm::IsaPred<memref::LoadOp, memref::StoreOp>))
    return;
  OpBuilder b(alloca);
  int64_t count = llvm::divideCeil(type.getDimSize(0), lanes);
  auto part = memref::AllocaOp::create(b, alloca.getLoc(), MemRefType::get({count}, type.getElementType()),
                                       alloca.getAlignmentAttr());
  for (Operation *user : llvm::to_vector(alloca->getUsers())) {
    OpOperand &index = user->getOpOperand(user->getNumOperands() - 1);
    b.setInsertionPoint(user);
    Value all = arith::ConstantIndexOp::create(b, user->getLoc(), lanes);
    index.set(arith::DivUIOp::create(b, user->getLoc(), index.get(), all));
    user->replaceUsesOfWith(alloca, part);
  }
  alloca.erase();
}

void WarpLoop::rewrite() {
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  auto index = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(b, loc, value); };
  SmallVector<Value> lower(loop.getLowerBound()), upper(loop.getUpperBound()), step(loop.getStep());
  lower.push_back(index(0));
  upper.push_back(index(lanes));
  step.push_back(index(1));
  auto wide = scf::ParallelOp::create(b, loc, lower, upper, step);
  lane = wide.getInductionVars().back();
  wide.getBody()->getTerminator()->erase();
  wide.getBody()->getOperations().splice(wide.getBody()->end(), loop.getBody()->getOperations());
  for (auto [before, after] : llvm::zip(loop.getInductionVars(), wide.getInductionVars()))
    before.replaceAllUsesWith(after);
  loop.erase();
  loop = wide;

  for (auto store : llvm::to_vector(loop.getBody()->getOps<memref::StoreOp>())) {
    if (findBuffer(store.getMemRef()).getDefiningOp<memref::AllocaOp>())
      continue;
    b.setInsertionPoint(store);
    store->moveBefore(buildFirstLane(b, store.getLoc()).thenYield());
  }
  for (auto alloca : llvm::to_vector(loop.getBody()->getOps<memref::AllocaOp>()))
    shrink(alloca);
  for (scf::ForOp inner : loops)
    shareLoop(inner);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Shares the iterations of a kernel among lanes, if they can: those of its parallel loop, or all of its
/// code.
static void share(func::FuncOp func) {
  if (func.getNumResults() != 0 || !llvm::hasSingleElement(func.getBody()))
    return;
  if (scf::ParallelOp loop = findParallelLoop(func); loop && !hasHostBounds(loop))
    return;                                      // one thread runs it; shuffles need all lanes
  OwningOpRef<func::FuncOp> copy = func.clone(); // which is dropped if they cannot
  NestIndices nests;
  scf::ParallelOp loop = findParallelLoop(*copy);
  if (loop)
    joinNests(*loop.getBody(), nests);
  else
    loop = wrapInLoop(*copy, nests);
  WarpLoop warp(loop, nests);
  if (!warp.analyze())
    return;
  warp.rewrite();
  func.getBody().takeBody(copy->getBody());
  if (warp.getLanes() > kWarpLanes) // a block for each iteration
    func->setAttr(kThreadsAttrName, Builder(func.getContext()).getI32IntegerAttr(warp.getLanes()));
}

namespace {
struct MapReductionsPass : public fp8::impl::MapReductionsBase<MapReductionsPass> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal() || func.isPublic() || hasModuleAttr(func, kProgramOrderAttrName))
      return;
    if (func.walk([](scf::ForOp) { return WalkResult::interrupt(); }).wasInterrupted())
      share(func);
  }
};
} // namespace
