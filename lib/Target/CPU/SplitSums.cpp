// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cuts a loop that carries a float sum in two: one computes the addends into a buffer, one adds them. A sum
// is taken in the program's order, so each addition waits for the one before, and LLVM makes no vectors of a
// loop that carries one; of the addends it does.

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "fp8/Target/CPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace fp8 {
#define GEN_PASS_DEF_SPLITSUMS
#include "fp8/Target/CPU/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// Addends that are computed before they are added; the buffer then stays in the L1 cache of a core.
static constexpr int64_t kChunk = 1024;
/// Rows of so many are one chunk, so that their sums run beside those of other rows (fp8-interleave-rows);
/// the buffers then stay in the L2 cache.
static constexpr int64_t kLongestRow = 4096;
/// Operations for each addend from which on vectors save more than the buffer costs; the sums of a row then
/// run beside those of other rows (fp8-interleave-rows), which saves more.
static constexpr int64_t kLeastOperations = 2, kLeastOperationsOfRow = 1;

namespace {

/// `store (load + addend)` to an element that is the same in all iterations.
struct Sum {
  Operation *load, *add, *store;
  Value addend;

  bool contains(Operation *op) const { return op == load || op == add || op == store; }
};

} // namespace

/// Returns the sum that `store` ends, if there is one.
static std::optional<Sum> matchSum(scf::ForOp loop, memref::StoreOp store) {
  if (!llvm::all_of(store.getOperands().drop_front(),
                    [&](Value v) { return loop.isDefinedOutsideOfLoop(v); }))
    return std::nullopt;
  auto add = store.getValueToStore().getDefiningOp<arith::AddFOp>();
  if (!add || !add->hasOneUse())
    return std::nullopt;
  for (unsigned i : {0, 1}) {
    auto load = add->getOperand(i).getDefiningOp<memref::LoadOp>();
    if (load && load->hasOneUse() && load->getBlock() == loop.getBody() &&
        load.getMemRef() == store.getMemRef() && load.getIndices() == store.getIndices())
      return Sum{load, add, store, add->getOperand(1 - i)};
  }
  return std::nullopt;
}

/// Returns the memory that `memref` is a view of: an allocation, an argument of the function, or null for
/// anything else.
static Value findMemory(Value memref) {
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>())
    memref = view.getViewSource();
  if (auto argument = dyn_cast<BlockArgument>(memref))
    return isa<func::FuncOp>(argument.getOwner()->getParentOp()) ? memref : Value();
  return isa<memref::AllocOp, memref::AllocaOp, memref::GetGlobalOp>(memref.getDefiningOp()) ? memref
                                                                                             : Value();
}

/// Returns whether nothing else can be `memory`.
static bool isUnique(Value memory) {
  auto argument = dyn_cast<BlockArgument>(memory);
  return !argument || cast<func::FuncOp>(argument.getOwner()->getParentOp())
                          .getArgAttr(argument.getArgNumber(), LLVM::LLVMDialect::getNoAliasAttrName());
}

/// Returns whether `op` can be seen to leave the memory of `sum` alone.
static bool isApart(Operation &op, const Sum &sum) {
  Value memory = findMemory(cast<memref::StoreOp>(sum.store).getMemRef());
  return memory && llvm::all_of(op.getOperands(), [&](Value operand) {
           if (!isa<BaseMemRefType>(operand.getType()))
             return true;
           Value other = findMemory(operand);
           return other && other != memory && (isUnique(other) || isUnique(memory));
         });
}

/// Returns the sums that `loop` carries; none where the loop should stay as it is.
static SmallVector<Sum> findSums(scf::ForOp loop) {
  SmallVector<Sum> sums;
  int64_t operations = 0;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (op.getNumRegions() != 0 || isa<CallOpInterface>(op))
      return {};
    if (auto store = dyn_cast<memref::StoreOp>(op)) {
      if (std::optional<Sum> sum = matchSum(loop, store))
        sums.push_back(*sum);
    } else {
      operations +=
          op.getNumResults() == 1 && isa<FloatType>(op.getResult(0).getType()) && !isa<memref::LoadOp>(op);
    }
  }
  // Sums are added up later than the rest of an iteration runs, which must not see that.
  for (const Sum &sum : sums)
    for (Operation &op : loop.getBody()->without_terminator())
      if (!sum.contains(&op) && !isApart(op, sum))
        return {};
  int64_t least = isa<scf::ParallelOp>(loop->getParentOp()) ? kLeastOperationsOfRow : kLeastOperations;
  return operations < static_cast<int64_t>(sums.size()) * (1 + least) ? SmallVector<Sum>() : sums;
}

/// Allocates a buffer for the addends of each sum, where a thread does so once.
static SmallVector<Value> allocateBuffers(RewriterBase &rewriter, scf::ForOp loop, ArrayRef<Sum> sums,
                                          int64_t length) {
  OpBuilder::InsertionGuard guard(rewriter);
  auto parallel = loop->getParentOfType<scf::ParallelOp>();
  rewriter.setInsertionPointToStart(
      parallel ? parallel.getBody() : &loop->getParentOfType<func::FuncOp>().getFunctionBody().front());
  IntegerAttr alignment = rewriter.getI64IntegerAttr(getTarget(loop).getBufferAlignment());
  return llvm::map_to_vector(sums, [&](const Sum &sum) -> Value {
    auto type = MemRefType::get({length}, sum.addend.getType());
    return memref::AllocaOp::create(rewriter, loop.getLoc(), type, alignment);
  });
}

/// Computes the addends of `count` iterations from `begin` on, and everything else that `loop` does in them.
static scf::ForOp computeAddends(OpBuilder &b, scf::ForOp loop, ArrayRef<Sum> sums, ValueRange buffers,
                                 Value begin, Value count, ValueRange carried) {
  Location loc = loop.getLoc();
  Value zero = arith::ConstantIndexOp::create(b, loc, 0), one = arith::ConstantIndexOp::create(b, loc, 1);
  return scf::ForOp::create(
      b, loc, zero, count, one, carried, [&](OpBuilder &inner, Location, Value k, ValueRange values) {
        IRMapping mapping;
        mapping.map(loop.getInductionVar(), arith::AddIOp::create(inner, loc, begin, k));
        mapping.map(loop.getRegionIterArgs(), values);
        for (Operation &op : loop.getBody()->without_terminator())
          if (llvm::none_of(sums, [&](const Sum &sum) { return sum.contains(&op); }))
            inner.clone(op, mapping);
        for (auto [sum, buffer] : llvm::zip_equal(sums, buffers))
          memref::StoreOp::create(inner, loc, mapping.lookupOrDefault(sum.addend), buffer, k);
        inner.clone(*loop.getBody()->getTerminator(), mapping);
      });
}

/// Adds `count` addends to each sum.
static void addUp(OpBuilder &b, Location loc, ArrayRef<Sum> sums, ValueRange buffers, Value count) {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0), one = arith::ConstantIndexOp::create(b, loc, 1);
  scf::ForOp::create(b, loc, zero, count, one, {}, [&](OpBuilder &inner, Location, Value k, ValueRange) {
    for (auto [sum, buffer] : llvm::zip_equal(sums, buffers)) {
      IRMapping mapping;
      mapping.map(sum.addend, memref::LoadOp::create(inner, loc, buffer, k).getResult());
      inner.clone(*sum.load, mapping);
      inner.clone(*sum.add, mapping);
      inner.clone(*sum.store, mapping);
    }
    scf::YieldOp::create(inner, loc);
  });
}

/// Replaces `loop` by loops over chunks of its iterations, or by one chunk, if its buffers take at most
/// `bytes`, from which they are subtracted.
static void split(RewriterBase &rewriter, scf::ForOp loop, int64_t &bytes) {
  SmallVector<Sum> sums = findSums(loop);
  if (sums.empty() || getConstantIntValue(loop.getStep()) != 1)
    return;
  Location loc = loop.getLoc();
  Value lower = loop.getLowerBound(), upper = loop.getUpperBound();
  std::optional<int64_t> from = getConstantIntValue(lower), to = getConstantIntValue(upper);
  int64_t size = from && to ? *to - *from : ShapedType::kDynamic;
  int64_t most = isa<scf::ParallelOp>(loop->getParentOp()) ? kLongestRow : kChunk;
  // A loop of a row is at most as long as the row.
  int64_t longest = size;
  if (auto ofRow = loop->getParentOp()->getAttrOfType<IntegerAttr>(kRowElementsAttrName))
    longest = ShapedType::isDynamic(size) ? ofRow.getInt() : size;
  bool isShort = !ShapedType::isDynamic(longest) && longest <= most;
  int64_t length = isShort ? longest : kChunk, needed = 0;
  for (const Sum &sum : sums)
    needed += length * llvm::divideCeil(sum.addend.getType().getIntOrFloatBitWidth(), 8);
  if (needed > bytes)
    return;
  bytes -= needed;
  SmallVector<Value> buffers = allocateBuffers(rewriter, loop, sums, length);
  auto runChunk = [&](OpBuilder &b, Value begin, Value count, ValueRange carried) {
    scf::ForOp addends = computeAddends(b, loop, sums, buffers, begin, count, carried);
    addUp(b, loc, sums, buffers, count);
    return addends.getResults();
  };
  rewriter.setInsertionPoint(loop);
  Value chunk = arith::ConstantIndexOp::create(rewriter, loc, length);
  if (isShort) {
    Value count = chunk;
    if (ShapedType::isDynamic(size)) // a bound that is the same for all rows stays that
      count = from == 0 ? upper : arith::SubIOp::create(rewriter, loc, upper, lower).getResult();
    return rewriter.replaceOp(loop, runChunk(rewriter, lower, count, loop.getInitArgs()));
  }
  auto chunks = scf::ForOp::create(rewriter, loc, lower, upper, chunk, loop.getInitArgs(),
                                   [&](OpBuilder &b, Location, Value begin, ValueRange carried) {
                                     Value count = chunk;
                                     if (ShapedType::isDynamic(size) || size % kChunk != 0)
                                       count = arith::MinUIOp::create(
                                           b, loc, chunk, arith::SubIOp::create(b, loc, upper, begin));
                                     scf::YieldOp::create(b, loc, runChunk(b, begin, count, carried));
                                   });
  rewriter.replaceOp(loop, chunks.getResults());
}

namespace {
struct SplitSumsPass : public fp8::impl::SplitSumsBase<SplitSumsPass> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    IRRewriter rewriter(&getContext());
    int64_t bytes = getTarget(getOperation()).getMaxRowBytes(); // the target's limit for a stack
    for (scf::ForOp loop : loops)
      split(rewriter, loop, bytes);
  }
};
} // namespace
