// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decomposes attention, still on tensors, into matmuls and the code of rows between them: a loop over the
// rows or, where a row is too long for that, operations on all rows. It runs block by block of rows, so that
// scores of one block are in memory at a time. A gradient that is summed over rows of several blocks is an
// f32 tensor whose sums each block resumes, so that blocks change no bit.

#include "AttentionDecomposer.h"
#include "fp8/Conversion/Passes.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

/// Computes the rows of `box`. Returns `outs` with their parts.
template <typename Op>
SmallVector<Value> AttentionDecomposer<Op>::runBlock(OpBuilder &b, ValueRange outs, const Box &box) {
  SmallVector<Value> matmuls;
  auto elementOf = [&](unsigned i) { return getElementTypeOrSelf(op.getMatmulRow(i)); };
  Box seen = limitKeys(b, box);
  matmuls.push_back(multiplyScores(b, 0, 0, 1, elementOf(0), box, seen));
  if constexpr (kIsGrad)
    matmuls.push_back(multiplyScores(b, 1, 3, 2, elementOf(1), box, seen));
  ValueRange further = outs.drop_front(Op::kNumMainResults);
  SmallVector<Value> rows;
  if (isLoop) {
    rows = runRows(b, matmuls, further, box, seen);
  } else if (FailureOr<SmallVector<Value>> lifted = liftRows(b, matmuls, further, box); succeeded(lifted)) {
    rows = *lifted;
  } else {
    hasFailed = true;
    return SmallVector<Value>(outs);
  }
  SmallVector<Value> results;
  if constexpr (kIsGrad) {
    Value valueGrad = multiplyInto(b, 2, rows[0], 3, 2, outs[2], seen);
    results.push_back(multiplyInto(b, 3, rows[1], 1, 0, outs[0], seen));
    results.push_back(multiplyInto(b, 4, rows[1], 0, 1, outs[1], seen));
    results.push_back(valueGrad);
  } else {
    results.push_back(multiplyInto(b, 1, rows[0], 2, 0, outs[0], seen));
  }
  for (unsigned i = Op::kNumMainResults; i < outs.size(); ++i) {
    Value row = rows[Op::kNumMatmulRows + i - Op::kNumMainResults];
    results.push_back(isSum(i) ? addRows(b, row, i, outs[i], seen) : row);
  }
  return results;
}

template <typename Op>
SmallVector<Value>
AttentionDecomposer<Op>::buildLoop(OpBuilder &b, OpFoldResult end, int64_t step, ValueRange outs,
                                   function_ref<SmallVector<Value>(OpBuilder &, Value, ValueRange)> body) {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0), by = arith::ConstantIndexOp::create(b, loc, step);
  auto loop = scf::ForOp::create(b, loc, zero, getValueOrCreateConstantIndexOp(b, loc, end), by, outs,
                                 [&](OpBuilder &inner, Location at, Value index, ValueRange carried) {
                                   scf::YieldOp::create(inner, at, body(inner, index, carried));
                                 });
  return SmallVector<Value>(loop.getResults());
}

/// Runs the blocks along the dimension that is cut; the last one may be smaller.
template <typename Op>
SmallVector<Value> AttentionDecomposer<Op>::runCut(OpBuilder &b, ValueRange outs, Box box) {
  unsigned dim = dims.outer[blocks->cut];
  OpFoldResult size = sizeOf(dim);
  auto runFrom = [&](OpBuilder &inner, OpFoldResult offset, OpFoldResult count, ValueRange carried) {
    box.offsets[dim] = offset;
    box.sizes[dim] = count;
    return runBlock(inner, carried, box);
  };
  std::optional<int64_t> known = getConstantIntValue(size);
  if (known && *known <= blocks->size)
    return runFrom(b, b.getIndexAttr(0), size, outs);
  OpFoldResult whole = b.getIndexAttr(blocks->size);
  if (!known)
    return buildLoop(b, size, blocks->size, outs, [&](OpBuilder &inner, Value index, ValueRange carried) {
      AffineExpr left = inner.getAffineSymbolExpr(0) - inner.getAffineDimExpr(0);
      AffineMap least =
          AffineMap::get(1, 1, {inner.getAffineConstantExpr(blocks->size), left}, op.getContext());
      OpFoldResult count = affine::makeComposedFoldedAffineMin(inner, loc, least, {index, size});
      return runFrom(inner, index, count, carried);
    });
  int64_t end = *known / blocks->size * blocks->size;
  SmallVector<Value> results(outs);
  if (end == blocks->size)
    results = runFrom(b, b.getIndexAttr(0), whole, results);
  else
    results = buildLoop(b, b.getIndexAttr(end), blocks->size, results,
                        [&](OpBuilder &inner, Value index, ValueRange carried) {
                          return runFrom(inner, index, whole, carried);
                        });
  if (end < *known)
    results = runFrom(b, b.getIndexAttr(end), b.getIndexAttr(*known - end), results);
  return results;
}

/// Runs all blocks at the indices that `box` has of the outer dimensions before `outer`, in order.
template <typename Op>
SmallVector<Value> AttentionDecomposer<Op>::runOuter(OpBuilder &b, unsigned outer, ValueRange outs, Box box) {
  if (outer == blocks->cut)
    return runCut(b, outs, box);
  unsigned dim = dims.outer[outer];
  OpFoldResult size = box.sizes[dim]; // 1 in a task
  box.sizes[dim] = b.getIndexAttr(1);
  if (isOneInteger(size))
    return runOuter(b, outer + 1, outs, box);
  return buildLoop(b, size, 1, outs, [&](OpBuilder &inner, Value index, ValueRange carried) {
    box.offsets[dim] = index;
    return runOuter(inner, outer + 1, carried, box);
  });
}

template <typename Op>
SmallVector<Value> AttentionDecomposer<Op>::runBlocks(OpBuilder &b, ValueRange outs, const Box &box) {
  return blocks ? runOuter(b, 0, outs, box) : runBlock(b, outs, box);
}

/// Runs the blocks of each task in order, and tasks on several threads.
template <typename Op>
SmallVector<Value> AttentionDecomposer<Op>::runTasks(ValueRange outs, Box box) {
  SmallVector<OpFoldResult> counts = llvm::map_to_vector(tasks, [&](unsigned dim) { return box.sizes[dim]; });
  auto loop = scf::ForallOp::create(rewriter, loc, counts, outs, /*mapping=*/std::nullopt);
  loop->setAttr(kTasksAttrName, rewriter.getUnitAttr());
  loop->setAttr(kComputesAttrName, rewriter.getStringAttr(kIsGrad ? "attention_grad" : "attention"));
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(loop.getBody());
  for (auto [dim, index] : llvm::zip_equal(tasks, loop.getInductionVars())) {
    box.offsets[dim] = index;
    box.sizes[dim] = rewriter.getIndexAttr(1);
  }
  SmallVector<Value> results = runBlocks(rewriter, loop.getRegionIterArgs(), box);
  Box part{SmallVector<OpFoldResult>(ranges.size(), rewriter.getIndexAttr(0)), {}};
  for (unsigned dim : llvm::seq<unsigned>(ranges.size())) {
    part.offsets[dim] = isTask(dim) ? box.offsets[dim] : part.offsets[dim];
    part.sizes.push_back(isTask(dim) ? box.sizes[dim] : sizeOf(dim));
  }
  for (auto [result, argument, map] : llvm::zip_equal(results, loop.getRegionIterArgs(), outMaps)) {
    auto own = slice(rewriter, {result, map}, part).template getDefiningOp<tensor::ExtractSliceOp>();
    OpBuilder atEnd = OpBuilder::atBlockEnd(loop.getTerminator().getBody());
    tensor::ParallelInsertSliceOp::create(atEnd, loc, own, argument, own.getMixedOffsets(),
                                          own.getMixedSizes(), own.getMixedStrides());
  }
  return SmallVector<Value>(loop.getResults());
}

/// Returns the tensor that blocks write a result to: `outs`, or zeros that sums begin with, those of matmuls
/// in f32.
template <typename Op>
Value AttentionDecomposer<Op>::begin(unsigned result) {
  Value out = op.getOuts()[result];
  bool sumsMatmuls = result < Op::kNumMainResults && isSummedOverBlocks(outMaps[result]);
  if (!sumsMatmuls && !isSum(result))
    return out;
  if (sumsMatmuls && !getElementTypeOrSelf(out).isF32())
    out = tensor::EmptyOp::create(rewriter, loc, tensor::getMixedSizes(rewriter, loc, out),
                                  rewriter.getF32Type());
  Value zero = arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(getElementTypeOrSelf(out)));
  return linalg::FillOp::create(rewriter, loc, zero, out).getResult(0);
}

/// Rounds `sums` to the type of a result.
template <typename Op>
Value AttentionDecomposer<Op>::finish(unsigned result, Value sums) {
  Value out = op.getOuts()[result];
  if (sums.getType() == out.getType())
    return sums;
  AffineMap identity = rewriter.getMultiDimIdentityMap(outMaps[result].getNumResults());
  SmallVector<utils::IteratorType> iterators(identity.getNumDims(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             rewriter, loc, out.getType(), sums, out, ArrayRef{identity, identity}, iterators,
             [](OpBuilder &b, Location at, ValueRange values) {
               Value rounded = arith::TruncFOp::create(b, at, values[1].getType(), values[0]);
               linalg::YieldOp::create(b, at, rounded);
             })
      .getResult(0);
}

template <typename Op>
LogicalResult AttentionDecomposer<Op>::run(int64_t blockElements) {
  rewriter.setInsertionPoint(op);
  isLoop = fitsLoop();
  limit = chooseLimit();
  tasks = chooseTasks(blockElements);
  blocks = chooseBlocks(blockElements);
  bool cannotDivide = false;
  for (unsigned i = 0; i < Op::kNumMainResults; ++i)
    if (isSummedOverBlocks(outMaps[i]) && !canResume(i))
      cannotDivide = true;
  if (cannotDivide) {
    blocks.reset();
    tasks.clear();
  }
  if (limit && blocks && isSplit(limit->row))
    limit->isValid = checkOperands();
  else
    limit.reset();
  Box box{SmallVector<OpFoldResult>(ranges.size(), rewriter.getIndexAttr(0)), {}};
  for (unsigned dim : llvm::seq<unsigned>(ranges.size()))
    box.sizes.push_back(sizeOf(dim));
  SmallVector<Value> results;
  for (unsigned i = 0; i < op.getOuts().size(); ++i)
    results.push_back(begin(i));
  results = tasks.empty() ? runBlocks(rewriter, results, box) : runTasks(results, box);
  if (hasFailed)
    return failure();
  for (auto [i, result] : llvm::enumerate(results))
    result = finish(i, result);
  rewriter.replaceOp(op, results);
  return success();
}

namespace fp8 {
#define GEN_PASS_DEF_DECOMPOSEATTENTION
#include "fp8/Conversion/Passes.h.inc"

namespace {

class DecomposeAttention : public impl::DecomposeAttentionBase<DecomposeAttention> {
public:
  using impl::DecomposeAttentionBase<DecomposeAttention>::DecomposeAttentionBase;

  void runOnOperation() final {
    int64_t most = blockElements ? blockElements : getTarget(getOperation()).getScoreBlockElements();
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<AttentionOp, AttentionGradOp>(op))
        ops.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (Operation *op : ops) {
      auto grad = dyn_cast<AttentionGradOp>(op);
      LogicalResult done =
          grad ? detail::AttentionDecomposer<AttentionGradOp>(rewriter, grad).run(most)
               : detail::AttentionDecomposer<AttentionOp>(rewriter, cast<AttentionOp>(op)).run(most);
      if (failed(done))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace fp8