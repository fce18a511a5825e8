// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes one loop of nests of loops, and a parallel loop of one iteration of a kernel that has none, such as a
// sum of all elements.

#include "SingleLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace fp8;

/// Returns the loops of a perfect nest, from 0 to what is known before it in steps of 1, that only pass on
/// what they carry.
static SmallVector<scf::ForOp> findNest(scf::ForOp outermost) {
  SmallVector<scf::ForOp> nest;
  auto isKnown = [&](Value size) {
    return getConstantIntValue(size) || !outermost->isAncestor(size.getParentBlock()->getParentOp());
  };
  scf::ForOp loop = outermost;
  while (loop && isConstantIntValue(loop.getLowerBound(), 0) && isConstantIntValue(loop.getStep(), 1) &&
         isKnown(loop.getUpperBound()) && loop.getInductionVar().getType().isIndex()) {
    nest.push_back(loop);
    auto next = dyn_cast<scf::ForOp>(loop.getBody()->front());
    bool isPerfect = next && next->getNextNode() == loop.getBody()->getTerminator() &&
                     llvm::equal(next.getInits(), loop.getRegionIterArgs()) &&
                     llvm::equal(next.getResults(), loop.getYieldedValues());
    loop = isPerfect ? next : scf::ForOp();
  }
  return nest;
}

/// Makes one loop of a nest; returns it. `indices` are those of the loops of the nest.
static scf::ForOp joinNest(ArrayRef<scf::ForOp> nest, SmallVector<Value> &indices) {
  scf::ForOp outer = nest.front(), inner = nest.back();
  Location loc = outer.getLoc();
  OpBuilder b(outer);
  auto index = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(b, loc, value); };
  SmallVector<Value> sizes;
  for (scf::ForOp loop : nest) {
    std::optional<int64_t> constant = getConstantIntValue(loop.getUpperBound());
    sizes.push_back(constant ? index(*constant) : loop.getUpperBound());
  }
  Value count = sizes.front();
  for (Value size : ArrayRef<Value>(sizes).drop_front())
    count = b.createOrFold<arith::MulIOp>(loc, count, size);
  auto joined = scf::ForOp::create(b, loc, index(0), count, index(1), outer.getInits());
  Block *body = joined.getBody();
  body->clear();
  b.setInsertionPointToStart(body);
  Value rest = joined.getInductionVar();
  for (Value size : llvm::reverse(ArrayRef<Value>(sizes).drop_front())) {
    indices.push_back(arith::RemUIOp::create(b, loc, rest, size));
    rest = arith::DivUIOp::create(b, loc, rest, size);
  }
  indices.push_back(rest);
  std::reverse(indices.begin(), indices.end());
  for (auto [i, value] : llvm::enumerate(indices))
    scf::ForOp(nest[i]).getInductionVar().replaceAllUsesWith(value);
  for (auto [before, after] : llvm::zip_equal(inner.getRegionIterArgs(), joined.getRegionIterArgs()))
    before.replaceAllUsesWith(after);
  body->getOperations().splice(body->end(), inner.getBody()->getOperations());
  outer.replaceAllUsesWith(joined.getResults());
  outer.erase();
  return joined;
}

void fp8::joinNests(Block &block, NestIndices &nests) {
  for (auto loop : llvm::to_vector(block.getOps<scf::ForOp>()))
    if (SmallVector<scf::ForOp> nest = findNest(loop); nest.size() > 1) {
      SmallVector<Value> indices;
      scf::ForOp joined = joinNest(nest, indices);
      nests[joined] = indices;
    }
}

scf::ParallelOp fp8::wrapInLoop(func::FuncOp func, NestIndices &nests) {
  Block &block = func.front();
  joinNests(block, nests);
  OpBuilder b(block.getTerminator());
  Location loc = func.getLoc();
  auto index = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(b, loc, value); };
  Value zero = index(0), one = index(1);
  auto wrapped = scf::ParallelOp::create(b, loc, zero, one, one);
  for (Operation &op : llvm::make_early_inc_range(block))
    if (&op != wrapped && !op.hasTrait<OpTrait::IsTerminator>() && !op.hasTrait<OpTrait::ConstantLike>())
      op.moveBefore(wrapped.getBody()->getTerminator());
  return wrapped;
}
