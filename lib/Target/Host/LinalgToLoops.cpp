// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers linalg on memrefs to loops: chooses the innermost dimension, and whether to use threads.
// Upstream builds the loops.

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Target/Host/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"

namespace fp8 {
#define GEN_PASS_DEF_LINALGTOLOOPS
#include "fp8/Target/Host/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// Relative cost of an access in the innermost loop, by its stride.
static constexpr int64_t kContiguousCost = 1, kStridedCost = 4;
/// Cost of a sum that is carried from one innermost iteration to the next, which prevents vectors.
static constexpr int64_t kSerialCost = 3;
/// Cost of a math function, in simple operations.
static constexpr int64_t kMathCost = 20;

/// Returns the stride in memory along `dim`: 0, 1, or 2 for anything else.
static int64_t strideClass(MemRefType type, AffineMap map, unsigned dim) {
  int64_t offset, result = 0;
  SmallVector<int64_t> strides;
  bool known = succeeded(type.getStridesAndOffset(strides, offset));
  for (auto [position, expr] : llvm::enumerate(map.getResults())) {
    if (!expr.isFunctionOfDim(dim))
      continue;
    bool unit = known && strides[position] == 1 && isa<AffineDimExpr>(expr);
    result += unit ? 1 : 2;
  }
  return std::min<int64_t>(result, 2);
}

/// Returns the cost of the memory accesses of an iteration if `dim` is the innermost loop.
static int64_t innermostCost(linalg::GenericOp op, unsigned dim) {
  bool reduction = linalg::isReductionIterator(op.getIteratorTypesArray()[dim]);
  int64_t cost = reduction ? kSerialCost : 0;
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    if (!type)
      continue;
    int64_t stride = strideClass(type, op.getMatchingIndexingMap(&operand), dim);
    cost += stride == 0 ? 0 : stride == 1 ? kContiguousCost : kStridedCost;
  }
  return cost;
}

/// Returns the loop order, with the cheapest innermost dimension last. Reductions keep their relative
/// order, so a reduction can be innermost only if it is the last one.
static SmallVector<unsigned> chooseLoopOrder(linalg::GenericOp op) {
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  unsigned best = iterators.size() - 1;
  int64_t bestCost = std::numeric_limits<int64_t>::max();
  bool sawReduction = false;
  for (unsigned dim : llvm::reverse(llvm::seq<unsigned>(iterators.size()))) {
    bool reduction = linalg::isReductionIterator(iterators[dim]);
    bool allowed = !(reduction && sawReduction) && sizes[dim] != 1;
    sawReduction |= reduction;
    int64_t cost = innermostCost(op, dim);
    if (!allowed || cost >= bestCost)
      continue;
    best = dim;
    bestCost = cost;
  }
  SmallVector<unsigned> order;
  auto append = [&](bool reductions) {
    for (unsigned dim : llvm::seq<unsigned>(iterators.size()))
      if (dim != best && linalg::isReductionIterator(iterators[dim]) == reductions)
        order.push_back(dim);
  };
  append(/*reductions=*/false);
  append(/*reductions=*/true);
  if (!iterators.empty())
    order.push_back(best);
  return order;
}

/// Returns the number of elements times the cost of one; the maximum if a size is dynamic.
static int64_t estimateWork(linalg::GenericOp op) {
  int64_t cost = op->getNumOperands();
  op.getRegion().walk(
      [&](Operation *inner) { cost += isa<math::MathDialect>(inner->getDialect()) ? 4 * kMathCost : 1; });
  int64_t work = (cost + 3) / 4;
  for (int64_t size : op.getStaticLoopRanges()) {
    if (ShapedType::isDynamic(size) || work > std::numeric_limits<int32_t>::max())
      return std::numeric_limits<int64_t>::max();
    work *= size;
  }
  return work;
}

/// Turns the first `count` loops of a perfect nest into one scf.parallel.
static void parallelize(RewriterBase &rewriter, ArrayRef<Operation *> loops, unsigned count) {
  auto outermost = cast<scf::ForOp>(loops.front());
  auto innermost = cast<scf::ForOp>(loops[count - 1]);
  rewriter.setInsertionPoint(outermost);
  SmallVector<Value> lower, upper, step, ivs;
  for (Operation *op : loops.take_front(count)) {
    auto loop = cast<scf::ForOp>(op);
    lower.push_back(loop.getLowerBound());
    upper.push_back(loop.getUpperBound());
    // The step of interleaved rows is a constant inside the outer loops.
    std::optional<APInt> constant = loop.getConstantStep();
    step.push_back(constant
                       ? arith::ConstantIndexOp::create(rewriter, loop.getLoc(), constant->getSExtValue())
                       : loop.getStep());
    ivs.push_back(loop.getInductionVar());
  }
  auto parallel = scf::ParallelOp::create(rewriter, outermost.getLoc(), lower, upper, step);
  for (auto [old, replacement] : llvm::zip_equal(ivs, parallel.getInductionVars()))
    rewriter.replaceAllUsesWith(old, replacement);
  Block *source = innermost.getBody();
  rewriter.eraseOp(source->getTerminator());
  rewriter.inlineBlockBefore(source, parallel.getBody()->getTerminator(),
                             parallel.getInductionVars()[count - 1]);
  rewriter.eraseOp(outermost);
}

/// Interleaves several rows of a nest whose innermost loop carries a sum: the sums are independent chains
/// of operations, and each keeps its order. Nothing happens to loops that upstream does not interleave.
/// `loops` are those in front of `op`.
static void interleaveRows(linalg::GenericOp op, linalg::LinalgLoops &loops) {
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  if (loops.size() < 2 || !linalg::isReductionIterator(iterators.back()) ||
      !linalg::isParallelIterator(iterators[iterators.size() - 2]))
    return;
  auto rows = cast<scf::ForOp>(loops[loops.size() - 2]);
  std::optional<APInt> count = rows.getStaticTripCount();
  for (uint64_t factor : {4, 2}) // with the loop left in place
    if (count && count->ugt(factor) && count->getZExtValue() % factor == 0) {
      (void)loopUnrollJamByFactor(rows, factor);
      break;
    }
  unsigned depth = loops.size(); // upstream may have replaced loops
  loops.clear();
  op->getPrevNode()->walk<WalkOrder::PreOrder>([&](scf::ForOp loop) { loops.push_back(loop); });
  assert(loops.size() == depth && "expected a nest of loops");
  (void)depth;
}

/// Returns the comparisons `index < constant` in `loop`, with the constants.
static SmallVector<std::pair<arith::CmpIOp, int64_t>> findComparisons(scf::ForOp loop) {
  SmallVector<std::pair<arith::CmpIOp, int64_t>> comparisons;
  loop.walk([&](arith::CmpIOp op) {
    std::optional<int64_t> constant = getConstantIntValue(op.getRhs());
    bool isLess =
        llvm::is_contained({arith::CmpIPredicate::ult, arith::CmpIPredicate::slt}, op.getPredicate());
    if (op.getLhs() == loop.getInductionVar() && isLess && constant && *constant >= 0)
      comparisons.emplace_back(op, *constant);
  });
  return comparisons;
}

/// Cuts `loop` into one loop per range of its index in which all comparisons of the index with constants
/// have the same results: the parts of a concatenation become copies, without a branch per element.
static void splitAtComparisons(RewriterBase &rewriter, scf::ForOp loop) {
  constexpr size_t mostParts = 8; // each is another copy of the code
  auto comparisons = findComparisons(loop);
  std::optional<int64_t> lower = getConstantIntValue(loop.getLowerBound());
  std::optional<int64_t> upper = getConstantIntValue(loop.getUpperBound());
  if (comparisons.empty() || !lower || !upper || *lower < 0 || getConstantIntValue(loop.getStep()) != 1 ||
      loop.getNumResults() != 0)
    return;
  SmallVector<int64_t> cuts{*upper};
  for (auto [op, constant] : comparisons)
    if (constant > *lower && constant < *upper)
      cuts.push_back(constant);
  llvm::sort(cuts);
  cuts.erase(llvm::unique(cuts), cuts.end());
  if (cuts.size() > mostParts)
    return;
  Location loc = loop.getLoc();
  rewriter.setInsertionPoint(loop);
  int64_t begin = *lower;
  for (int64_t end : cuts) {
    IRMapping mapping;
    auto part = cast<scf::ForOp>(rewriter.clone(*loop, mapping));
    OpBuilder bounds(part);
    part.setLowerBound(arith::ConstantIndexOp::create(bounds, loc, begin));
    part.setUpperBound(arith::ConstantIndexOp::create(bounds, loc, end));
    for (auto [op, constant] : comparisons) {
      Value isLess = arith::ConstantIntOp::create(bounds, loc, end <= constant, /*width=*/1);
      mapping.lookup(op.getResult()).replaceAllUsesWith(isLess);
    }
    begin = end;
  }
  rewriter.eraseOp(loop);
}

/// Moves the parallel dimensions to the front of `order`, in the same order; returns their number.
static unsigned moveParallelFirst(linalg::GenericOp op, SmallVector<unsigned> &order) {
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  SmallVector<unsigned> parallel, reductions;
  for (unsigned dim : order)
    (linalg::isParallelIterator(iterators[dim]) ? parallel : reductions).push_back(dim);
  order = parallel;
  llvm::append_range(order, reductions);
  return parallel.size();
}

/// Lowers `op` to loops for a target with many threads: one iteration of an scf.parallel per point of the
/// parallel dimensions. Neighbouring iterations access neighbouring elements.
static LogicalResult lowerToThreads(RewriterBase &rewriter, linalg::GenericOp op) {
  SmallVector<unsigned> order = chooseLoopOrder(op);
  unsigned parallel = moveParallelFirst(op, order);
  rewriter.setInsertionPoint(op);
  if (!llvm::is_sorted(order)) {
    FailureOr<linalg::GenericOp> ordered = linalg::interchangeGenericOp(rewriter, op, order);
    if (failed(ordered))
      return failure();
    op = *ordered;
  }
  rewriter.setInsertionPoint(op);
  FailureOr<linalg::LinalgLoops> loops = linalg::linalgOpToLoops(rewriter, op);
  if (failed(loops))
    return failure();
  if (parallel > 0 && !op->getParentOfType<scf::ParallelOp>())
    parallelize(rewriter, *loops, parallel);
  rewriter.eraseOp(op);
  return success();
}

static LogicalResult lowerToLoops(RewriterBase &rewriter, linalg::LinalgOp linalgOp,
                                  int64_t parallelThreshold) {
  rewriter.setInsertionPoint(linalgOp);
  bool inParallel = linalgOp->getParentOfType<scf::ParallelOp>() != nullptr;
  FailureOr<linalg::GenericOp> generic = linalg::generalizeNamedOp(rewriter, linalgOp);
  if (failed(generic)) // linalgOp is a generic already
    generic = cast<linalg::GenericOp>(linalgOp.getOperation());
  if (getTarget(*generic).hasManyThreads())
    return lowerToThreads(rewriter, *generic);
  SmallVector<unsigned> order = chooseLoopOrder(*generic);
  rewriter.setInsertionPoint(*generic);
  if (!llvm::is_sorted(order)) {
    generic = linalg::interchangeGenericOp(rewriter, *generic, order);
    if (failed(generic))
      return failure();
  }
  // The innermost loop stays sequential, because it is the one that is vectorized.
  unsigned parallel = 0;
  SmallVector<utils::IteratorType> iterators = generic->getIteratorTypesArray();
  while (parallel + 1 < iterators.size() && linalg::isParallelIterator(iterators[parallel]))
    ++parallel;
  int64_t work = estimateWork(*generic);
  rewriter.setInsertionPoint(*generic);
  FailureOr<linalg::LinalgLoops> loops = linalg::linalgOpToLoops(rewriter, *generic);
  if (failed(loops))
    return failure();
  interleaveRows(*generic, *loops);
  if (parallel > 0 && work >= parallelThreshold && !inParallel)
    parallelize(rewriter, *loops, parallel);
  if (loops->size() > parallel) // the innermost loop is left
    splitAtComparisons(rewriter, cast<scf::ForOp>(loops->back()));
  rewriter.eraseOp(*generic);
  return success();
}

/// Turns memref.copy into a linalg op, so that it becomes loops instead of a call of a support library.
static void lowerCopies(RewriterBase &rewriter, func::FuncOp func) {
  func.walk([&](memref::CopyOp copy) {
    rewriter.setInsertionPoint(copy);
    auto rank = cast<MemRefType>(copy.getTarget().getType()).getRank();
    AffineMap identity = rewriter.getMultiDimIdentityMap(rank);
    SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
    linalg::GenericOp::create(rewriter, copy.getLoc(), copy.getSource(), copy.getTarget(),
                              ArrayRef<AffineMap>{identity, identity}, iterators,
                              [](OpBuilder &builder, Location loc, ValueRange values) {
                                linalg::YieldOp::create(builder, loc, values.front());
                              });
    rewriter.eraseOp(copy);
  });
}

/// Emits an error at the first operation of linalg that does not implement LinalgOp.
static LogicalResult verifyHasLoops(func::FuncOp func) {
  WalkResult result = func.walk([](Operation *op) {
    bool known = isa<linalg::LinalgOp, linalg::YieldOp, linalg::IndexOp>(op);
    if (known || !isa<linalg::LinalgDialect>(op->getDialect()))
      return WalkResult::advance();
    op->emitOpError("has no lowering to the CPU yet; write it as linalg.generic operations");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

namespace {
struct LinalgToLoopsPass : public fp8::impl::LinalgToLoopsBase<LinalgToLoopsPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(verifyHasLoops(getOperation())))
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    lowerCopies(rewriter, getOperation());
    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    for (linalg::LinalgOp op : ops) {
      if (!op.hasPureBufferSemantics()) {
        op.emitError("expected to be bufferized before it is lowered to loops");
        return signalPassFailure();
      }
      if (failed(lowerToLoops(rewriter, op, parallelThreshold))) {
        op.emitError("cannot be lowered to loops");
        return signalPassFailure();
      }
    }
  }
};
} // namespace
