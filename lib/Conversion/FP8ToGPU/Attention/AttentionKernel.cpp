// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The walk of a block over its tiles, and its results.

#include "AttentionKernel.h"

#include "../Kernel/ElementAccess.h"
#include "../Kernel/ElementPairs.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <cmath>

using namespace mlir;
using namespace fp8;

AttentionKernel::AttentionKernel(KernelBuilder &b, const AttentionView &view, const AttentionPlan &plan)
    : b(b), view(view), plan(plan), ownDim(plan.isTransposed ? view.keys : view.queries),
      streamedDim(plan.isTransposed ? view.queries : view.keys), type(view.operands[0].getElementType()),
      tiles(arrange(view, plan)), shared(b.dynamicShared()), code(b, view, plan.isTransposed) {}

/// Finds the block's own rows and its indices of the grid's dimensions. Blocks whose rows see most come
/// first.
void AttentionKernel::findTile() {
  Expr numTiles = (ownSize() + (plan.countRows() - 1)) / plan.countRows();
  Expr tile = b.block(0) % numTiles, rest = b.block(0) / numTiles;
  if (view.endSeen && !plan.isTransposed)
    tile = numTiles - 1 - tile;
  firstOwn = tile * plan.countRows();
  if (plan.isOfScores) {
    Expr numSteps = (streamedSize() + (plan.step - 1)) / plan.step;
    onlyStep = rest % numSteps;
    rest = rest / numSteps;
  }
  outer.assign(view.sizes.size(), std::nullopt);
  for (unsigned dim : llvm::reverse(plan.gridDims)) {
    Expr size = view.sizes[dim].get(b, 32);
    outer[dim] = rest % size;
    rest = rest / size;
  }
}

/// Returns the sums and, in the forward kernel, the state of two rows before the first step: with a sink that
/// of a row which has seen it.
SmallVector<Value> AttentionKernel::begin() {
  Values sums;
  for (const AttentionResult &result : plan.results)
    sums.append(countSums(result), b.real(0).getValue());
  sums.append(2 * plan.rowSums.size(), b.real(0).getValue());
  if (!plan.isForward)
    return sums;
  for (unsigned row = 0; row < 2; ++row) {
    Indices indices = outer;
    indices[ownDim] = atMost(ownRow(row), ownSize() - 1);
    sums.push_back(plan.sink
                       ? b.load(b.getF32Type(), getAddress(b, view.inputs[*plan.sink], indices)).getValue()
                       : b.real(-INFINITY).getValue());
  }
  // One of the four lanes of a row has it.
  Expr count = plan.sink ? select(b.lane() % 4 == 0, b.real(1), b.real(0)) : b.real(0);
  sums.append(2, count.getValue());
  return sums;
}

/// Returns whether `visible_keys` holds.
Expr AttentionKernel::isLimited() {
  const AttentionTensor &condition = view.inputs[*view.visibleIf];
  Value stored =
      b.load(getStorageType(condition.getElementType()), getAddress(b, condition, outer)).getValue();
  return b.expr(fromStorage(b, b.getLoc(), stored, condition.getElementType()));
}

/// Returns the first step and the end of those whose rows the own ones see.
std::pair<Expr, Expr> AttentionKernel::findSteps() {
  auto countSteps = [&](Expr rows) { return (rows + (plan.step - 1)) / plan.step; };
  Expr first = b.number(0), end = countSteps(streamedSize());
  if (!view.firstSeen && !view.endSeen)
    return {first, end};
  auto ifLimited = [&](Expr limited, Expr all) {
    return view.visibleIf ? select(isLimited(), limited, all) : limited;
  };
  Expr lastOwn = atMost(firstOwn + (plan.countRows() - 1), ownSize() - 1);
  // Query i sees the keys from i + firstSeen on and before i + endSeen, so that key j is seen by the queries
  // from j - endSeen + 1 on and before j - firstSeen + 1.
  std::optional<int64_t> from = view.firstSeen, to = view.endSeen;
  if (plan.isTransposed) {
    from = to ? std::optional(1 - *to) : std::nullopt;
    to = view.firstSeen ? std::optional(1 - *view.firstSeen) : std::nullopt;
  }
  if (from)
    first = ifLimited(atLeast(firstOwn + double(*from), 0) / plan.step, first);
  if (to)
    end = ifLimited(countSteps(atLeast(atMost(lastOwn + double(*to), streamedSize()), 0)), end);
  return {first, end};
}

/// Waits until all copies are in shared memory, and all threads are here.
void AttentionKernel::waitForCopies() {
  NVVM::CpAsyncWaitGroupOp::create(b, 0);
  if (plan.usesWgmma) // which reads shared memory by another proxy than threads write it
    NVVM::FenceProxyOp::create(b, NVVM::ProxyKindAttr::get(b.getContext(), NVVM::ProxyKind::async_shared),
                               NVVM::SharedSpaceAttr::get(b.getContext(), NVVM::SharedSpace::shared_cta));
  b.barrier();
}

/// Runs one step: `carried` are the sums of all results, and in the forward kernel the state of two rows.
SmallVector<Value> AttentionKernel::runStep(Expr step, ValueRange carried) {
  waitForCopies();
  if (plan.stages > 1)
    fill(step + 1);
  Values next = computeStep(step, carried);
  if (plan.stages == 1 && !plan.isOfScores) {
    b.barrier(); // the rows of this step have been read
    fill(step + 1);
  }
  return next;
}

/// Multiplies the rows of a step, which are in shared memory.
SmallVector<Value> AttentionKernel::computeStep(Expr step, ValueRange carried) {
  Values next(carried);
  Expr stage = step % plan.stages * tiles.stageBytes;
  SmallVector<Values> products;
  if (plan.usesWgmma)
    products = multiplyGroupScores(stage);
  else
    for (unsigned product = 0; product < plan.own.size(); ++product)
      products.push_back(multiplyScores(product, stage));
  SmallVector<Values> values = runCode(step, products);
  if (plan.isOfScores) {
    for (auto [sum, value] : llvm::zip_equal(next, values[plan.results.front().code]))
      sum = (b.expr(sum) + b.expr(value)).getValue();
    return next;
  }
  if (plan.isForward) {
    values[0] = normalize(values[0], next);
    if (!values[1].empty())
      for (auto [value, factor] : llvm::zip_equal(values[0], values[1]))
        value = (b.expr(value) * b.expr(factor)).getValue();
  }
  MutableArrayRef<Value> sums = next;
  addToRowSums(values, sums.take_back(2 * plan.rowSums.size()));
  if (plan.usesWgmma) {
    accumulateByGroup(values, stage, sums);
    return next;
  }
  for (const AttentionResult &result : plan.results) {
    accumulate(result, values[result.code], stage, sums.take_front(countSums(result)));
    sums = sums.drop_front(countSums(result));
  }
  return next;
}

/// Sums over all streamed rows at the indices `outer` of the outer dimensions.
SmallVector<Value> AttentionKernel::sumOver(const Indices &indices, ValueRange carried) {
  outer = indices;
  auto [first, end] = findSteps();
  if (plan.isOfScores) {
    first = select(onlyStep < first, first, onlyStep);
    end = select(onlyStep < end, onlyStep + 1, end);
  }
  stepsEnd = end;
  // Tiles of the indices before may still be read, or, where they had no step, be copied.
  if (!plan.loopDims.empty()) {
    NVVM::CpAsyncWaitGroupOp::create(b, 0);
    b.barrier();
  }
  for (const Tile &tile : tiles.own)
    copy(tile, b.at(shared, b.number(tile.start)), firstOwn);
  fill(first);
  if (plan.keepsOwn) {
    waitForCopies();
    loadOwn();
  }
  code.start(outer, {ownRow(0), ownRow(1)});
  return b.loop(first, end, carried, [&](Expr step, ValueRange carried) { return runStep(step, carried); });
}

/// Exchanges words among four neighbouring lanes: `words` are those of a lane for four tiles of 8 columns,
/// two columns each. Returns the four words of one tile, that of the lane's number among the four.
static SmallVector<Value> transposeWords(KernelBuilder &b, ArrayRef<Value> words) {
  auto isSet = [&](int64_t bit) { return (b.lane() & bit) == bit; };
  auto pick = [&](int64_t bit, Value ifSet, Value ifNot) {
    return select(isSet(bit), b.expr(ifSet), b.expr(ifNot)).getValue();
  };
  auto exchange = [&](Value sent, int64_t bit) { return b.fromLane(b.expr(sent), bit).getValue(); };
  // The even lane of two has the words of even tiles from both, the odd one those of odd tiles.
  SmallVector<Value, 2> ofTile[2];
  for (unsigned i = 0; i < 2; ++i) {
    Value even = words[2 * i], odd = words[2 * i + 1], received = exchange(pick(1, even, odd), 1);
    ofTile[i] = {pick(1, received, even), pick(1, odd, received)};
  }
  SmallVector<Value> result(4);
  for (unsigned i = 0; i < 2; ++i) {
    Value received = exchange(pick(2, ofTile[0][i], ofTile[1][i]), 2);
    result[i] = pick(2, received, ofTile[0][i]);
    result[2 + i] = pick(2, ofTile[1][i], received);
  }
  return result;
}

/// Stores the sums of one own row: two neighbouring columns for each 8, or 16 bytes for each 32 columns where
/// memory is aligned for that.
void AttentionKernel::storeRow(const AttentionResult &result, unsigned row, ArrayRef<Value> sums) {
  const AttentionTensor &out = view.outs[result.out];
  const Tile &streamed = tiles.streamed[result.streamed];
  Type element = out.getElementType();
  int64_t bytes = element.getIntOrFloatBitWidth() / 8, alignment = out.getAlignmentAlong(streamed.columnDim);
  Expr stride = out.getStride(streamed.columnDim).get(b, 64), exists = ownRow(row) < ownSize();
  Indices indices = outer;
  indices[ownDim] = ownRow(row);
  Value base = getAddress(b, out, indices);
  auto convert = [&](Value value) -> Value {
    Type wanted = isa<VectorType>(value.getType()) ? Type(VectorType::get(2, element)) : element;
    return element.isF32() ? value : arith::TruncFOp::create(b, wanted, value).getResult();
  };
  auto getPair = [&](int64_t column) {
    const Value *pair = &sums[column / 8 * 4 + row * 2];
    return convert(joinPair(b, pair[0], pair[1]));
  };
  int64_t column = 0;
  for (; bytes == 2 && alignment == kChunk && column + 32 <= streamed.columns; column += 32) {
    Values words;
    for (int64_t tile = 0; tile < 4; ++tile)
      words.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), getPair(column + tile * 8)));
    words = transposeWords(b, words);
    Value chunk = vector::FromElementsOp::create(b, VectorType::get(4, b.getI32Type()), words);
    Expr offset = widen(b.lane() % 4 * kChunk + column * bytes);
    b.when(exists, [&] { b.store(b.expr(chunk), b.at(base, offset)); });
  }
  b.when(exists, [&] {
    for (; column < streamed.columns; column += 8) {
      Expr offset = widen(b.lane() % 4 * 2 + column) * stride * double(bytes);
      if (alignment >= 2 * bytes) {
        b.store(b.expr(getPair(column)), b.at(base, offset));
        continue;
      }
      for (unsigned i = 0; i < 2; ++i)
        b.store(b.expr(convert(sums[column / 8 * 4 + row * 2 + i])),
                b.at(base, offset + stride * double(i * bytes)));
    }
  });
}

/// Stores the sums of one own row of scores, two neighbouring keys at a time where memory is aligned for
/// that.
void AttentionKernel::storeScores(const AttentionResult &result, unsigned row, ArrayRef<Value> sums) {
  const AttentionTensor &out = view.outs[result.out];
  const KernelNumber &size = view.sizes[streamedDim];
  Type element = out.getElementType();
  int64_t bytes = countElementBytes(element);
  bool storesPairs = out.getAlignmentAlong(streamedDim) >= 2 * bytes && size.isKnown() && size.known % 2 == 0;
  Expr stride = out.getStride(streamedDim).get(b, 64);
  Indices indices = outer;
  indices[ownDim] = ownRow(row);
  Value base = getAddress(b, out, indices);
  auto storeAt = [&](Expr column, Value value) {
    Type wanted = isa<VectorType>(value.getType()) ? Type(VectorType::get(2, element)) : element;
    Value narrow = element.isF32() ? value : arith::TruncFOp::create(b, wanted, value).getResult();
    auto store = [&] { b.store(b.expr(narrow), b.at(base, widen(column) * stride * double(bytes))); };
    if (hasTail())
      b.when(column < streamedSize(), store);
    else
      store();
  };
  b.when(ownRow(row) < ownSize(), [&] {
    for (unsigned cell = row * 2; cell < sums.size(); cell += 4) {
      Expr column = onlyStep * plan.step + b.lane() % 4 * 2 + int64_t(cell / 4 * 8);
      if (storesPairs) {
        storeAt(column, joinPair(b, sums[cell], sums[cell + 1]));
        continue;
      }
      storeAt(column, sums[cell]);
      storeAt(column + 1, sums[cell + 1]);
    }
  });
}

/// Stores the sum of one own row, of which four lanes have a part each.
void AttentionKernel::storeRowSum(const AttentionRowSum &rowSum, unsigned row, Expr sum) {
  for (int64_t lanes : {1, 2})
    sum = sum + b.fromLane(sum, lanes);
  const AttentionTensor &out = view.outs[rowSum.out];
  Type element = out.getElementType();
  Indices indices = outer;
  indices[ownDim] = ownRow(row);
  b.when((b.lane() % 4 == 0) & (ownRow(row) < ownSize()), [&] {
    Value value = sum.getValue();
    if (!element.isF32())
      value = arith::TruncFOp::create(b, element, value);
    b.store(b.expr(value), getAddress(b, out, indices));
  });
}

void AttentionKernel::store(ArrayRef<Value> sums) {
  for (const AttentionResult &result : plan.results) {
    for (unsigned row = 0; row < 2; ++row)
      if (plan.isOfScores)
        storeScores(result, row, sums);
      else
        storeRow(result, row, sums.take_front(countSums(result)));
    sums = sums.drop_front(countSums(result));
  }
  for (auto [number, rowSum] : llvm::enumerate(plan.rowSums))
    for (unsigned row = 0; row < 2; ++row)
      storeRowSum(rowSum, row, b.expr(sums[number * 2 + row]));
}

void AttentionKernel::build() {
  findTile();
  Values sums = begin();
  if (plan.loopDims.empty()) {
    sums = sumOver(outer, sums);
  } else {
    Expr count = b.number(1);
    for (unsigned dim : plan.loopDims)
      count = count * view.sizes[dim].get(b, 32);
    Indices ofGrid = outer;
    sums = b.loop(b.number(0), count, sums, [&](Expr number, ValueRange carried) {
      Indices indices = ofGrid;
      for (unsigned dim : llvm::reverse(plan.loopDims)) {
        Expr size = view.sizes[dim].get(b, 32);
        indices[dim] = number % size;
        number = number / size;
      }
      return sumOver(indices, carried);
    });
    outer = ofGrid;
  }
  if (plan.isForward)
    finish(sums);
  store(sums);
}
