// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sizes, loops over tasks, and the part of the output of a task.

#include "PackedGemmSpace.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp8;

std::optional<unsigned> fp8::findDim(AffineMap map, unsigned dim) {
  return map.getResultPosition(getAffineDimExpr(dim, map.getContext()));
}

OpFoldResult ProductSpace::sizeOf(OpBuilder &b, ArrayRef<unsigned> group) const {
  return multiplySizes(b, loc, llvm::map_to_vector(group, [&](unsigned dim) { return sizes[dim]; }));
}

int64_t ProductSpace::knownSize(ArrayRef<unsigned> group) const {
  int64_t product = 1;
  for (unsigned dim : group) {
    std::optional<int64_t> size = getConstantIntValue(sizes[dim]);
    if (!size)
      return ShapedType::kDynamic;
    product *= *size;
  }
  return product;
}

OpFoldResult ProductSpace::linearize(OpBuilder &b, ArrayRef<OpFoldResult> indices,
                                     ArrayRef<unsigned> group) const {
  OpFoldResult linear = number(b, 0);
  for (auto [index, dim] : llvm::zip(indices, group))
    linear = addSizes(b, loc, multiplySizes(b, loc, {linear, sizes[dim]}), index);
  return linear;
}

void ProductSpace::buildLoops(OpBuilder &b, ArrayRef<OpFoldResult> counts,
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

void ProductSpace::forEachTask(OpBuilder &b, bool cutColumns,
                               function_ref<void(OpBuilder &, const Task &)> body) const {
  SmallVector<OpFoldResult> counts;
  for (unsigned dim : llvm::concat<const unsigned>(dims.batch, outerRows()))
    counts.push_back(sizes[dim]);
  OpFoldResult blocks = countBlocks(b);
  OpFoldResult panels = countPanels(b);
  counts.push_back(blocks);
  if (cutColumns)
    counts.push_back(countColumnTasks(b));
  buildLoops(b, counts, [&](OpBuilder &inside, ArrayRef<OpFoldResult> indices) {
    Task task;
    task.batch.assign(indices.begin(), indices.begin() + dims.batch.size());
    indices = indices.drop_front(dims.batch.size());
    task.outer.assign(indices.begin(), indices.begin() + plan.cut);
    indices = indices.drop_front(plan.cut);
    task.begin = multiplySizes(inside, loc, {indices[0], number(inside, plan.step)});
    task.count = remainingSize(inside, loc, cutSize(inside), task.begin, plan.step);
    OpFoldResult product = linearize(inside, task.batch, dims.batch);
    SmallVector<OpFoldResult> parts{multiplySizes(inside, loc, {product, sizeOf(inside, outerRows())}),
                                    linearize(inside, task.outer, outerRows())};
    task.slot =
        addSizes(inside, loc, multiplySizes(inside, loc, {addSizes(inside, loc, parts[0], parts[1]), blocks}),
                 indices[0]);
    bool isLoop = llvm::any_of(counts, [](OpFoldResult count) { return !isOneInteger(count); });
    task.thread =
        plan.isParallel && isLoop ? OpFoldResult(buildThreadNumber(inside, loc)) : number(inside, 0);
    task.firstPanel = number(inside, 0);
    task.panels = panels;
    if (cutColumns) {
      task.mostPanels = plan.panelsPerTask;
      task.firstPanel = multiplySizes(inside, loc, {indices[1], number(inside, plan.panelsPerTask)});
      task.panels = remainingSize(inside, loc, panels, task.firstPanel, plan.panelsPerTask);
    }
    body(inside, task);
  });
}

void ProductSpace::forEachPart(OpBuilder &b, const Task &task,
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

OutputBox ProductSpace::boxOf(OpBuilder &b, const Task &task) const {
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
    extents[dim] = remainingSize(b, loc, sizes[dim], offsets[dim], task.mostPanels * plan.tile.columns);
  }
  OutputBox box;
  for (AffineExpr expr : outMap.getResults()) {
    unsigned dim = cast<AffineDimExpr>(expr).getPosition();
    box.offsets.push_back(offsets[dim]);
    box.sizes.push_back(extents[dim]);
  }
  return box;
}
