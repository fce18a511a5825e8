// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sizes, loops over tasks, and the part of the output of a task.

#include "PackedGemmSpace.h"
#include "fp8/Conversion/TakingLoop.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp8;

std::optional<unsigned> fp8::findDim(AffineMap map, unsigned dim) {
  return map.getResultPosition(getAffineDimExpr(dim, map.getContext()));
}

OpFoldResult MatmulSpace::sizeOf(OpBuilder &b, ArrayRef<unsigned> group) const {
  return multiplySizes(b, loc, llvm::map_to_vector(group, [&](unsigned dim) { return sizes[dim]; }));
}

int64_t MatmulSpace::knownSize(ArrayRef<unsigned> group) const {
  int64_t product = 1;
  for (unsigned dim : group) {
    std::optional<int64_t> size = getConstantIntValue(sizes[dim]);
    if (!size)
      return ShapedType::kDynamic;
    product *= *size;
  }
  return product;
}

OpFoldResult MatmulSpace::linearize(OpBuilder &b, ArrayRef<OpFoldResult> indices,
                                    ArrayRef<unsigned> group) const {
  OpFoldResult linear = number(b, 0);
  for (auto [index, dim] : llvm::zip(indices, group))
    linear = addSizes(b, loc, multiplySizes(b, loc, {linear, sizes[dim]}), index);
  return linear;
}

void MatmulSpace::buildLoops(OpBuilder &b, ArrayRef<OpFoldResult> counts,
                             function_ref<void(OpBuilder &, ArrayRef<OpFoldResult>)> body) const {
  SmallVector<Value> lower, upper, step;
  for (OpFoldResult count : counts) {
    if (isOneInteger(count))
      continue;
    lower.push_back(arith::ConstantIndexOp::create(b, loc, 0));
    upper.push_back(getValueOrCreateConstantIndexOp(b, loc, count));
    step.push_back(arith::ConstantIndexOp::create(b, loc, 1));
  }
  auto run = [&](OpBuilder &inside, ValueRange ivs) {
    SmallVector<OpFoldResult> indices;
    for (OpFoldResult count : counts) {
      indices.push_back(isOneInteger(count) ? number(b, 0) : OpFoldResult(ivs.front()));
      ivs = isOneInteger(count) ? ivs : ivs.drop_front();
    }
    body(inside, indices);
  };
  if (lower.empty())
    return run(b, {});
  if (!plan.isParallel) {
    scf::buildLoopNest(b, loc, lower, upper, step,
                       [&](OpBuilder &inside, Location, ValueRange ivs) { run(inside, ivs); });
    return;
  }
  auto loop = scf::ParallelOp::create(b, loc, lower, upper, step);
  OpBuilder inside = OpBuilder::atBlockTerminator(loop.getBody());
  run(inside, loop.getInductionVars());
}

SmallVector<OpFoldResult> MatmulSpace::rowBlockCounts(OpBuilder &b) const {
  SmallVector<OpFoldResult> counts;
  for (unsigned dim : llvm::concat<const unsigned>(dims.batch, outerRows()))
    counts.push_back(sizes[dim]);
  counts.push_back(countBlocks(b));
  return counts;
}

Task MatmulSpace::rowBlockAt(OpBuilder &b, ArrayRef<OpFoldResult> indices) const {
  Task task;
  task.batch.assign(indices.begin(), indices.begin() + dims.batch.size());
  indices = indices.drop_front(dims.batch.size());
  task.outer.assign(indices.begin(), indices.begin() + plan.cut);
  OpFoldResult block = indices[plan.cut];
  task.begin = multiplySizes(b, loc, {block, number(b, plan.step)});
  task.count = remainingSize(b, loc, cutSize(b), task.begin, plan.step);
  OpFoldResult before = multiplySizes(b, loc, {linearize(b, task.batch, dims.batch), sizeOf(b, outerRows())});
  OpFoldResult outer = addSizes(b, loc, before, linearize(b, task.outer, outerRows()));
  task.slot = addSizes(b, loc, multiplySizes(b, loc, {outer, countBlocks(b)}), block);
  task.firstPanel = number(b, 0);
  task.panels = countPanels(b);
  return task;
}

Task MatmulSpace::taskAt(OpBuilder &b, ArrayRef<OpFoldResult> indices) const {
  Task task = rowBlockAt(b, indices.drop_back());
  if (!plan.panelsPerTask)
    return task;
  task.mostPanels = plan.panelsPerTask;
  task.firstPanel = multiplySizes(b, loc, {indices.back(), number(b, plan.panelsPerTask)});
  task.panels = remainingSize(b, loc, task.panels, task.firstPanel, plan.panelsPerTask);
  return task;
}

void MatmulSpace::forEachRowBlock(OpBuilder &b, function_ref<void(OpBuilder &, const Task &)> body) const {
  buildLoops(b, rowBlockCounts(b), [&](OpBuilder &inside, ArrayRef<OpFoldResult> indices) {
    body(inside, rowBlockAt(inside, indices));
  });
}

OpFoldResult MatmulSpace::countWorkers(OpBuilder &b) const {
  if (!plan.isParallel)
    return number(b, 1);
  OpFoldResult tasks = multiplySizes(b, loc, {countRowBlocks(b), countColumnTasks(b)});
  if (std::optional<int64_t> known = getConstantIntValue(tasks))
    return number(b, std::min(*known, kMostWorkers));
  Value most = arith::ConstantIndexOp::create(b, loc, kMostWorkers);
  return arith::MinUIOp::create(b, loc, getValueOrCreateConstantIndexOp(b, loc, tasks), most).getResult();
}

void MatmulSpace::forEachTask(OpBuilder &b, Value taken,
                              function_ref<void(OpBuilder &, const Task &)> body) const {
  SmallVector<OpFoldResult> counts = rowBlockCounts(b);
  counts.push_back(countColumnTasks(b));
  if (!taken)
    return buildLoops(b, counts, [&](OpBuilder &inside, ArrayRef<OpFoldResult> indices) {
      Task task = taskAt(inside, indices);
      task.worker = number(inside, 0);
      body(inside, task);
    });
  Value tasks = getValueOrCreateConstantIndexOp(b, loc, multiplySizes(b, loc, counts));
  resetTaken(b, loc, taken);
  buildLoops(b, countWorkers(b), [&](OpBuilder &worker, ArrayRef<OpFoldResult> own) {
    buildTakingLoop(worker, loc, taken, tasks, [&](OpBuilder &inside, Value index) {
      auto indices = affine::AffineDelinearizeIndexOp::create(inside, loc, index, counts);
      Task task = taskAt(inside, getAsOpFoldResult(indices.getResults()));
      task.worker = own.front();
      body(inside, task);
    });
  });
}

void MatmulSpace::forEachPart(OpBuilder &b, const Task &task,
                              function_ref<void(OpBuilder &, const Task &)> body) const {
  OpFoldResult count = ceilDivSize(b, loc, task.panels, plan.panelsPerPart);
  if (isOneInteger(count))
    return body(b, task);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0), one = arith::ConstantIndexOp::create(b, loc, 1);
  auto loop = scf::ForOp::create(b, loc, zero, getValueOrCreateConstantIndexOp(b, loc, count), one);
  OpBuilder inside = OpBuilder::atBlockTerminator(loop.getBody());
  OpFoldResult begin =
      multiplySizes(inside, loc, {OpFoldResult(loop.getInductionVar()), number(inside, plan.panelsPerPart)});
  Task part = task;
  part.firstPanel = addSizes(inside, loc, task.firstPanel, begin);
  part.panels = remainingSize(inside, loc, task.panels, begin, plan.panelsPerPart);
  part.mostPanels = plan.panelsPerPart;
  body(inside, part);
}

OutputBox MatmulSpace::boxOf(OpBuilder &b, const Task &task) const {
  SmallVector<OpFoldResult> offsets(sizes.size(), number(b, 0)), extents(sizes);
  auto setIndices = [&](ArrayRef<unsigned> group, ArrayRef<OpFoldResult> indices) {
    for (auto [dim, index] : llvm::zip(group, indices)) {
      offsets[dim] = index;
      extents[dim] = number(b, 1);
    }
  };
  setIndices(dims.batch, task.batch);
  setIndices(outerRows(), task.outer);
  if (!dims.m.empty()) {
    offsets[dims.m[plan.cut]] = task.begin;
    extents[dims.m[plan.cut]] = task.count;
  }
  if (task.mostPanels) {
    OpFoldResult width = number(b, plan.tile.columns);
    unsigned dim = dims.n.front();
    offsets[dim] = multiplySizes(b, loc, {task.firstPanel, width});
    // No more columns than the task has: those behind may be another task's, and what is in their sums is
    // old.
    if (std::optional<int64_t> known = getConstantIntValue(task.panels)) {
      extents[dim] = remainingSize(b, loc, sizes[dim], offsets[dim], *known * plan.tile.columns);
    } else {
      AffineExpr columns, size, begin;
      bindSymbols(b.getContext(), columns, size, begin);
      extents[dim] = affine::makeComposedFoldedAffineMin(
          b, loc, AffineMap::get(0, 3, {columns, size - begin}, b.getContext()),
          {multiplySizes(b, loc, {task.panels, width}), sizes[dim], offsets[dim]});
    }
  }
  OutputBox box;
  for (AffineExpr expr : outMap.getResults()) {
    unsigned dim = cast<AffineDimExpr>(expr).getPosition();
    box.offsets.push_back(offsets[dim]);
    box.sizes.push_back(extents[dim]);
  }
  return box;
}
