// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Divides an iteration among lanes.

#include "LaneLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace fp8;

scf::IfOp LaneLoop::buildFirstLane(OpBuilder &b, Location loc) {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane, zero);
  return scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false);
}

/// Puts the results in the places of a reduction. One lane stores the results that are in memory.
void LaneLoop::storeResults(OpBuilder &b, LoopReduction &found, scf::ForOp before, ValueRange initial,
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

/// Finds where the sums of a reduction in `inner` begin: its places in memory become those of its stores.
/// Returns the values that it begins with, of those that the reduction reads.
static SmallVector<Value> findInitials(OpBuilder &b, LoopReduction &found, scf::ForOp inner) {
  SmallVector<Value> initial;
  for (ReducedValue &place : found.places) {
    if (place.store) {
      place.memref = place.store.getMemRef();
      place.indices = place.store.getIndices();
    }
    if (!place.memref)
      initial.push_back(inner.getInits()[place.carried]);
    else if (found.reduction->startsWithInitial())
      initial.push_back(memref::LoadOp::create(b, inner.getLoc(), place.memref, place.indices));
  }
  return initial;
}

/// Returns whether all lanes read an initial value where one of them stores the result.
static bool isShared(ArrayRef<LoopReduction> found) {
  return llvm::any_of(found, [](const LoopReduction &each) {
    return each.reduction->startsWithInitial() && llvm::any_of(each.places, [](const ReducedValue &place) {
             return place.memref && !findBuffer(place.memref).getDefiningOp<memref::AllocaOp>();
           });
  });
}

/// Moves the body of `inner` into `shared`, the loop of a lane, where each reduction has `counts` values.
static void moveBody(scf::ForOp inner, scf::ForOp shared, MutableArrayRef<LoopReduction> found,
                     ArrayRef<unsigned> counts) {
  Block *body = shared.getBody();
  body->clear();
  inner.getBody()->getTerminator()->erase();
  body->getOperations().splice(body->end(), inner.getBody()->getOperations());
  inner.getInductionVar().replaceAllUsesWith(shared.getInductionVar());
  OpBuilder b = OpBuilder::atBlockEnd(body);
  SmallVector<Value> next;
  ValueRange carried = shared.getRegionIterArgs();
  for (auto [each, count] : llvm::zip_equal(found, counts)) {
    SmallVector<Operation *> loads;
    for (ReducedValue &place : each.places)
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
  scf::YieldOp::create(b, inner.getLoc(), next);
}

/// Divides the iterations of `inner` among the lanes.
void LaneLoop::shareLoop(scf::ForOp inner) {
  SmallVector<LoopReduction> &found = reductions[inner];
  OpBuilder b(inner);
  Location loc = inner.getLoc();
  SmallVector<SmallVector<Value>> initials;
  SmallVector<Value> starts;
  SmallVector<unsigned> counts;
  for (LoopReduction &each : found) {
    initials.push_back(findInitials(b, each, inner));
    SmallVector<Value> start = each.reduction->buildStart(b, initials.back());
    counts.push_back(start.size());
    llvm::append_range(starts, start);
  }
  if (isShared(found) &&
      lanes == kWarpLanes) // one lane stores there in the end; more warps meet at a barrier
    NVVM::SyncWarpOp::create(b, loc, arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(-1)));
  Value all = arith::ConstantIndexOp::create(b, loc, lanes);
  auto shared = scf::ForOp::create(b, loc, lane, inner.getUpperBound(), all, starts);
  moveBody(inner, shared, found, counts);
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
void LaneLoop::shrink(memref::AllocaOp alloca) {
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

void LaneLoop::rewrite() {
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
