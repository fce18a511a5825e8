// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives every iteration of a kernel's parallel loop, such as a row of a norm or the sum of a row, to the 32
// lanes of a warp: lane i runs iterations i, i + 32, … of the loops inside. Sums and maxima of such a loop
// are combined by shuffles, in an order that depends on nothing but the number of iterations. A kernel
// without a parallel loop, such as a sum of all elements, is a loop of one iteration.

#include "SingleLoop.h"
#include "ThreadLoop.h"
#include "fp8/Conversion/Kernel.h"
#include "fp8/Target/PTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace fp8 {
#define GEN_PASS_DEF_MAPREDUCTIONS
#include "fp8/Target/PTX/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

static constexpr int64_t kLanes = 32;

/// Returns whether lanes can combine their parts with `op`: an operation that has a neutral element, of a
/// type that shuffles take.
static bool isCombiner(Operation *op) {
  return op && op->getNumResults() == 1 && arith::getNeutralElement(op) &&
         (op->getResult(0).getType().isF32() || op->getResult(0).getType().isInteger(32));
}

static Value findBuffer(Value memref) {
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>())
    memref = view.getViewSource();
  return memref;
}

namespace {
/// A reduction through memory: a load, a combiner and a store of one element, in each iteration.
struct MemoryReduction {
  memref::LoadOp load;
  Operation *combiner;
  memref::StoreOp store;
};

/// How the parallel loop accesses a buffer.
struct Accesses {
  /// In loops, at the element of the iteration: the operations, all on one memref if one of them stores.
  SmallVector<Operation *> elements;
  bool storesElements = false;
  bool loadsOthers = false; ///< in loops, at other elements
  bool reduces = false;     ///< in loops, into one element
  bool loads = false;       ///< outside of loops
  bool stores = false;      ///< outside of loops
};

class WarpLoop {
public:
  WarpLoop(scf::ParallelOp loop, const NestIndices &nests) : loop(loop), nests(nests) {}
  /// Returns whether the lanes of a warp can share each iteration, and if their accesses are adjacent.
  bool analyze();
  void rewrite();

private:
  bool analyzeLoop(scf::ForOp inner);
  bool addElement(scf::ForOp inner, Operation *op, Value memref, ValueRange indices, bool isStore);
  bool isSafe(Value buffer, const Accesses &access);
  void shareLoop(scf::ForOp inner);
  Value combineLanes(OpBuilder &b, Operation *combiner, Value value);
  void shrink(memref::AllocaOp alloca);
  scf::IfOp buildFirstLane(OpBuilder &b, Location loc);

  scf::ParallelOp loop;
  const NestIndices &nests;
  Value lane;
  SmallVector<scf::ForOp> loops;
  llvm::DenseMap<Operation *, SmallVector<MemoryReduction>> reductions; ///< per loop
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
  isAdjacent |= getConstantIntValue(inner.getUpperBound()).value_or(kLanes) >= kLanes;
  return true;
}

/// Returns the load and the combiner of a reduction that ends in `store`.
static std::optional<MemoryReduction> matchReduction(memref::StoreOp store) {
  Operation *combiner = store.getValue().getDefiningOp();
  if (!isCombiner(combiner) || !combiner->hasOneUse())
    return std::nullopt;
  for (Value operand : combiner->getOperands()) {
    auto load = operand.getDefiningOp<memref::LoadOp>();
    if (load && load->hasOneUse() && load->getBlock() == store->getBlock() &&
        load.getMemRef() == store.getMemRef() && load.getIndices() == store.getIndices())
      return MemoryReduction{load, combiner, store};
  }
  return std::nullopt;
}

bool WarpLoop::analyzeLoop(scf::ForOp inner) {
  if (!isConstantIntValue(inner.getLowerBound(), 0) || !isConstantIntValue(inner.getStep(), 1) ||
      !inner.getInductionVar().getType().isIndex())
    return false;
  for (auto [argument, value] : llvm::zip_equal(inner.getRegionIterArgs(), inner.getYieldedValues())) {
    Operation *combiner = value.getDefiningOp();
    if (!isCombiner(combiner) || !combiner->hasOneUse() || !argument.hasOneUse() ||
        *argument.getUsers().begin() != combiner)
      return false;
  }
  SmallVector<MemoryReduction> &found = reductions[inner];
  for (auto store : inner.getBody()->getOps<memref::StoreOp>()) {
    bool dependsOnIteration = llvm::any_of(store.getIndices(), [&](Value index) {
      return inner->isAncestor(index.getParentBlock()->getParentOp());
    });
    if (dependsOnIteration)
      continue;
    std::optional<MemoryReduction> reduction = matchReduction(store);
    if (!reduction || buffers[findBuffer(store.getMemRef())].reduces)
      return false; // or two reductions into one buffer, by one loop or several
    buffers[findBuffer(store.getMemRef())].reduces = true;
    found.push_back(*reduction);
  }
  auto isPartOfReduction = [&](Operation *op) {
    return llvm::any_of(found, [&](MemoryReduction &r) { return r.load == op || r.store == op; });
  };
  loops.push_back(inner);
  return llvm::all_of(inner.getBody()->without_terminator(), [&](Operation &op) {
    if (isPartOfReduction(&op))
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
  bool readsBack = access.loads || access.loadsOthers || !access.elements.empty();
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
  return isAdjacent && loop.getInitVals().empty() &&
         llvm::all_of(buffers, [&](auto &entry) { return isSafe(entry.first, entry.second); });
}

//===----------------------------------------------------------------------===//
// Rewrite
//===----------------------------------------------------------------------===//

static Value buildCombiner(OpBuilder &b, Operation *combiner, Value lhs, Value rhs) {
  Operation *copy = b.clone(*combiner);
  copy->setOperands({lhs, rhs});
  return copy->getResult(0);
}

/// Combines the values of all lanes; every lane gets the result.
Value WarpLoop::combineLanes(OpBuilder &b, Operation *combiner, Value value) {
  Location loc = combiner->getLoc();
  auto number = [&](int32_t n) -> Value { return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(n)); };
  for (int32_t distance = kLanes / 2; distance != 0; distance /= 2) {
    Value other = NVVM::ShflOp::create(b, loc, value.getType(), number(-1), value, number(distance),
                                       number(kLanes - 1), NVVM::ShflKind::bfly, UnitAttr());
    value = buildCombiner(b, combiner, value, other);
  }
  return value;
}

scf::IfOp WarpLoop::buildFirstLane(OpBuilder &b, Location loc) {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane, zero);
  return scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false);
}

/// Divides the iterations of `inner` among the lanes.
void WarpLoop::shareLoop(scf::ForOp inner) {
  SmallVector<MemoryReduction> inMemory = reductions.lookup(inner);
  IRRewriter b(inner);
  Location loc = inner.getLoc();
  inner.setLowerBound(lane);
  inner.setStep(arith::ConstantIndexOp::create(b, loc, kLanes));
  auto getNeutral = [&](Operation *combiner) -> Value {
    return arith::ConstantOp::create(b, loc, *arith::getNeutralElement(combiner));
  };
  SmallVector<Value> initial(inner.getInits()), neutral;
  SmallVector<Operation *> combiners;
  for (auto [i, value] : llvm::enumerate(inner.getYieldedValues())) {
    combiners.push_back(value.getDefiningOp());
    inner.getInitsMutable()[i].set(getNeutral(combiners.back()));
  }
  for (MemoryReduction &reduction : inMemory)
    neutral.push_back(getNeutral(reduction.combiner));
  if (!inMemory.empty()) {
    auto carry = [&](OpBuilder &, Location, ArrayRef<BlockArgument> arguments) {
      SmallVector<Value> yielded;
      for (auto [reduction, argument] : llvm::zip_equal(inMemory, arguments)) {
        reduction.load.getResult().replaceAllUsesWith(argument);
        yielded.push_back(reduction.combiner->getResult(0));
      }
      return yielded;
    };
    inner = cast<scf::ForOp>(
        inner.replaceWithAdditionalYields(b, neutral, /*replaceInitOperandUsesInLoop=*/false, carry)
            ->getOperation());
  }
  b.setInsertionPointAfter(inner);
  for (auto [i, combiner] : llvm::enumerate(combiners)) {
    Value part = inner.getResult(i);
    SmallVector<OpOperand *> uses = llvm::map_to_vector(part.getUses(), [](OpOperand &use) { return &use; });
    Value result = buildCombiner(b, combiner, initial[i], combineLanes(b, combiner, part));
    for (OpOperand *use : uses)
      use->set(result);
  }
  for (auto [i, reduction] : llvm::enumerate(inMemory)) {
    Value total = combineLanes(b, reduction.combiner, inner.getResult(combiners.size() + i));
    OpBuilder::InsertionGuard guard(b);
    if (!findBuffer(reduction.store.getMemRef()).getDefiningOp<memref::AllocaOp>())
      b.setInsertionPoint(buildFirstLane(b, loc).thenYield());
    Value before = memref::LoadOp::create(b, loc, reduction.store.getMemRef(), reduction.store.getIndices());
    memref::StoreOp::create(b, loc, buildCombiner(b, reduction.combiner, before, total),
                            reduction.store.getMemRef(), reduction.store.getIndices());
    reduction.store.erase();
    reduction.load.erase();
  }
}

/// Keeps of a row's temporary what one lane uses.
void WarpLoop::shrink(memref::AllocaOp alloca) {
  MemRefType type = alloca.getType();
  if (type.getRank() != 1 || !type.hasStaticShape() || !type.getLayout().isIdentity() ||
      !buffers[alloca].storesElements ||
      !llvm::all_of(alloca->getUsers(), llvm::IsaPred<memref::LoadOp, memref::StoreOp>))
    return;
  OpBuilder b(alloca);
  int64_t count = llvm::divideCeil(type.getDimSize(0), kLanes);
  auto part = memref::AllocaOp::create(b, alloca.getLoc(), MemRefType::get({count}, type.getElementType()),
                                       alloca.getAlignmentAttr());
  for (Operation *user : llvm::to_vector(alloca->getUsers())) {
    OpOperand &index = user->getOpOperand(user->getNumOperands() - 1);
    b.setInsertionPoint(user);
    Value lanes = arith::ConstantIndexOp::create(b, user->getLoc(), kLanes);
    index.set(arith::DivUIOp::create(b, user->getLoc(), index.get(), lanes));
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
  upper.push_back(index(kLanes));
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
// Kernels without a parallel loop
//===----------------------------------------------------------------------===//

/// Shares the code of a kernel of one thread among the lanes of a warp, if they can.
static void shareWhole(func::FuncOp func) {
  if (func.getNumResults() != 0 || !llvm::hasSingleElement(func.getBody()) ||
      func.front().getOps<scf::ForOp>().empty())
    return;
  OwningOpRef<func::FuncOp> copy = func.clone(); // which is dropped if they cannot
  NestIndices nests;
  WarpLoop warp(wrapInLoop(*copy, nests), nests);
  if (!warp.analyze())
    return;
  warp.rewrite();
  func.getBody().takeBody(copy->getBody());
}

namespace {
struct MapReductionsPass : public fp8::impl::MapReductionsBase<MapReductionsPass> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal() || func.isPublic() || hasModuleAttr(func, kProgramOrderAttrName))
      return;
    scf::ParallelOp loop = findParallelLoop(func);
    if (!loop)
      return shareWhole(func);
    if (!hasHostBounds(loop)) // one thread runs it; shuffles need all lanes
      return;
    NestIndices none;
    WarpLoop warp(loop, none);
    if (warp.analyze())
      warp.rewrite();
  }
};
} // namespace
