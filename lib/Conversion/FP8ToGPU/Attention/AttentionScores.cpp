// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program's code on the scores of a step, and the running softmax of the forward kernel. The values of a
// thread are cells of 8 streamed rows each: two own rows (0 and 1) by two streamed ones.

#include "AttentionKernel.h"

#include "../Kernel/ElementAccess.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/IRMapping.h"
#include <cmath>

using namespace mlir;
using namespace fp8;

SmallVector<unsigned> AttentionKernel::findNeededValues() const {
  llvm::SmallSetVector<unsigned, 2> needed;
  for (const AttentionResult &result : plan.results)
    needed.insert(result.code);
  for (const AttentionRowSum &rowSum : plan.rowSums)
    needed.insert(rowSum.code);
  if (plan.isForward && !code.isOne(1))
    needed.insert(1);
  SmallVector<unsigned> sorted = needed.takeVector();
  llvm::sort(sorted);
  return sorted;
}

/// Returns whether value number `i` of those that a thread has of two own rows is of this one.
static bool isOfRow(unsigned i, unsigned row) { return i % 4 / 2 == row; }

/// Adds the values of a step to the sums of two rows, each those of the lane's own columns.
void AttentionKernel::addToRowSums(ArrayRef<Values> values, MutableArrayRef<Value> sums) {
  for (auto [number, rowSum] : llvm::enumerate(plan.rowSums))
    for (auto [cell, value] : llvm::enumerate(values[rowSum.code])) {
      Value &sum = sums[number * 2 + cell % 4 / 2];
      sum = (b.expr(sum) + b.expr(value)).getValue();
    }
}

/// Runs the code on all cells. Where rows are beyond the last streamed one, the score is -∞ in the forward
/// kernel, and all values are 0 in the others; with `inside` there are none.
SmallVector<SmallVector<Value>> AttentionKernel::runCells(Expr firstStreamed, ArrayRef<Values> products,
                                                          bool inside) {
  SmallVector<unsigned> needed = findNeededValues();
  SmallVector<Values> values(code.countValues());
  for (unsigned cell = 0, e = products[0].size(); cell < e; ++cell) {
    unsigned own = cell % 4 / 2, streamed = cell / 4 * 2 + cell % 2;
    SmallVector<Value> scores = llvm::map_to_vector(products, [&](const Values &of) { return of[cell]; });
    SmallVector<Value, 2> computed = code.compute(own, streamed, scores, inside, needed);
    for (auto [i, result] : llvm::zip_equal(needed, computed)) {
      Expr value = b.expr(result);
      if (hasTail() && !inside) {
        Expr row = firstStreamed + int64_t(streamed / 2 * 8 + streamed % 2);
        bool isScore = plan.isForward && i == 0;
        value = select(row < streamedSize(), value, b.real(isScore ? -INFINITY : 0.0f));
      }
      values[i].push_back(value.getValue());
    }
  }
  return values;
}

/// Returns what the code yields for each cell of a step: a list for each value, empty if it is not needed.
SmallVector<SmallVector<Value>> AttentionKernel::runCode(Expr step, ArrayRef<Values> products) {
  Expr first = step * plan.step, firstStreamed = first + b.lane() % 4 * 2;
  SmallVector<Expr> rows;
  for (int64_t i = 0; i < plan.step / 4; ++i)
    rows.push_back(firstStreamed + (i / 2 * 8 + i % 2));
  Expr stage = step % plan.stages * tiles.stageBytes;
  code.stream(rows, [&](unsigned input, unsigned row) { return loadInput(input, row, stage); });
  Expr firstOfWarp = firstOwn + b.warp() * 16;
  std::optional<Expr> inside =
      code.isInside({firstOfWarp, firstOfWarp + 15}, {first, first + (plan.step - 1)});
  if (hasTail()) {
    Expr exist = first + plan.step < streamedSize() + 1;
    inside = inside ? *inside & exist : exist;
  }
  if (!inside)
    return runCells(firstStreamed, products, /*inside=*/true);
  unsigned numCells = products[0].size();
  auto flatten = [&](bool isInside) {
    Values all;
    for (const Values &list : runCells(firstStreamed, products, isInside))
      llvm::append_range(all, list);
    return all;
  };
  SmallVector<unsigned> needed = findNeededValues();
  Values all = b.either(
      *inside, SmallVector<Type>(needed.size() * numCells, b.getF32Type()), [&] { return flatten(true); },
      [&] { return flatten(false); });
  SmallVector<Values> values(code.countValues());
  for (auto [i, number] : llvm::enumerate(needed))
    values[number].assign(ArrayRef(all).slice(i * numCells, numCells));
  return values;
}

/// Takes the scores of a step into the running softmax. `carried`: the sums, then the maxima and the sums of
/// exponentials of two rows; the latter are those of the lane's own columns. Returns exp(score - maximum).
SmallVector<Value> AttentionKernel::normalize(ArrayRef<Value> scores, MutableArrayRef<Value> carried) {
  MutableArrayRef<Value> sums = carried.drop_back(4), state = carried.take_back(4);
  auto toPower = [&](Expr difference) { return exponential(b, difference, plan.isBaseTwo); };
  Values exponentials(scores);
  SmallVector<Expr, 2> factors;
  for (unsigned row = 0; row < 2; ++row) {
    std::optional<Expr> largest;
    for (auto [cell, score] : llvm::enumerate(scores))
      if (isOfRow(cell, row))
        largest = largest ? maximum(b, *largest, b.expr(score)) : b.expr(score);
    for (int64_t lanes : {1, 2})
      largest = maximum(b, *largest, b.fromLane(*largest, lanes));
    Expr before = b.expr(state[row]), now = maximum(b, before, *largest);
    // A row of which all scores so far are -∞ has exponentials of 0.
    Expr reference = select(now == b.real(-INFINITY), b.real(0), now);
    factors.push_back(toPower(before - reference));
    Expr sum = b.expr(state[2 + row]) * factors.back();
    for (auto [cell, value] : llvm::enumerate(exponentials)) {
      if (!isOfRow(cell, row))
        continue;
      Expr power = toPower(b.expr(value) - reference);
      sum = sum + power;
      value = power.getValue();
    }
    state[row] = now.getValue();
    state[2 + row] = sum.getValue();
  }
  scale(sums, factors);
  return exponentials;
}

/// Multiplies the sums of both rows by their factors, unless these are 1 in the whole warp: a maximum that
/// has been found early grows no more.
void AttentionKernel::scale(MutableArrayRef<Value> sums, ArrayRef<Expr> factors) {
  Expr isOne = (factors[0] == b.real(1)) & (factors[1] == b.real(1));
  Expr areOnes = b.expr(NVVM::VoteSyncOp::create(b, b.getI1Type(), b.number(-1).getValue(), isOne.getValue(),
                                                 NVVM::VoteSyncKind::all));
  Values scaled = b.either(
      areOnes, SmallVector<Type>(sums.size(), b.getF32Type()), [&] { return Values(sums); },
      [&] {
        Values scaled(sums);
        for (auto [i, value] : llvm::enumerate(scaled))
          value = (b.expr(value) * factors[i % 4 / 2]).getValue();
        return scaled;
      });
  llvm::copy(scaled, sums.begin());
}

/// Divides the sums by those of the exponentials, and stores the statistics.
void AttentionKernel::finish(MutableArrayRef<Value> carried) {
  MutableArrayRef<Value> sums = carried.drop_back(4), state = carried.take_back(4);
  for (unsigned row = 0; row < 2; ++row) {
    Expr largest = b.expr(state[row]), sum = b.expr(state[2 + row]);
    for (int64_t lanes : {1, 2})
      sum = sum + b.fromLane(sum, lanes);
    Expr isEmpty = largest == b.real(-INFINITY);
    sum = select(isEmpty, b.real(plan.zeroEmptyRows ? 0.0f : NAN), sum);
    Expr factor = b.real(1) / sum;
    if (plan.zeroEmptyRows)
      factor = select(isEmpty, b.real(0), factor);
    for (auto [i, value] : llvm::enumerate(sums))
      if (isOfRow(i, row))
        value = (b.expr(value) * factor).getValue();
    if (plan.statistics)
      b.when((b.lane() % 4 == 0) & (ownRow(row) < ownSize()), [&] { storeStatistics(row, largest, sum); });
  }
}

void AttentionKernel::storeStatistics(unsigned row, Expr largest, Expr sum) {
  Indices indices = outer;
  indices[ownDim] = ownRow(row);
  IRMapping mapping;
  Block &block = plan.statistics->front();
  for (auto [argument, dim] : llvm::zip(block.getArguments(), view.dims.outer))
    mapping.map(argument, arith::IndexCastUIOp::create(b, b.getIndexType(), indices[dim]->getValue()));
  mapping.map(block.getArgument(view.dims.outer.size()), largest.getValue());
  mapping.map(block.getArgument(view.dims.outer.size() + 1), sum.getValue());
  for (Operation &op : block.without_terminator())
    b.clone(op, mapping);
  for (auto [out, value] :
       llvm::zip_equal(ArrayRef(view.outs).drop_front(), block.getTerminator()->getOperands())) {
    Value stored = value;
    if (Operation *op = value.getDefiningOp(); op && op->getBlock() != &block)
      stored = b.clone(*op)->getResult(0); // a constant before the operation
    else
      stored = mapping.lookup(value);
    b.store(b.expr(toStorage(b, b.getLoc(), stored)), getAddress(b, out, indices));
  }
}
