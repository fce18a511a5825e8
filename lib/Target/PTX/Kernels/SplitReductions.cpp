// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Divides long reductions into parts, so that all multiprocessors take part: the parts of each result are
// reduced side by side, by one launch, and their values by another one. Without it a block or a thread would
// take all elements of a result, such as the norm of a gradient. (Upstream's splitReduction takes tensors,
// and this stage has memrefs: buffers are known, and reductions that became part of another kernel are gone.)

#include "LaneReduction.h"
#include "LaneTeam.h"
#include "fp8/Conversion/FP8ToGPU/PartViews.h"
#include "fp8/Conversion/Kernel.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "fp8/Target/PTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include <cmath>

namespace fp8 {
#define GEN_PASS_DEF_SPLITREDUCTIONS
#include "fp8/Target/PTX/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// Iterations of a thread that are worth the launches of parts and of their combination.
static constexpr int64_t kLongIterations = 256;
/// The least that a thread iterates over a part.
static constexpr int64_t kPartIterations = 64;
/// Adjacent elements that a block takes as they are, in less time than further launches need.
static constexpr int64_t kBlockElements = 1 << 16;

//===----------------------------------------------------------------------===//
// The operations that are split
//===----------------------------------------------------------------------===//

/// Returns whether parts of a reduction by `combiner` may be combined by it: any order is as good as another
/// in f32 and f64, and of integers and maxima gives the same result.
static bool isCombiner(Operation *combiner) {
  if (!combiner || combiner->getNumOperands() != 2 || combiner->getNumResults() != 1 ||
      !combiner->hasOneUse() || !arith::getNeutralElement(combiner))
    return false;
  Type type = combiner->getResult(0).getType();
  return isLaneType(type) && (type.isF32() || type.isF64() || type.isIntOrIndex() ||
                              !isa<arith::AddFOp, arith::MulFOp>(combiner));
}

/// Returns the combiners of all results of `op`; nothing if one is not reduced by a combiner alone.
static SmallVector<Operation *> findCombiners(linalg::GenericOp op) {
  SmallVector<Operation *> combiners;
  Block *body = op.getBody();
  for (auto [argument, value] :
       llvm::zip_equal(op.getRegionOutputArgs(), body->getTerminator()->getOperands())) {
    Operation *combiner = value.getDefiningOp();
    if (!isCombiner(combiner) || combiner->getBlock() != body || !argument.hasOneUse() ||
        *argument.getUsers().begin() != combiner)
      return {};
    combiners.push_back(combiner);
  }
  return combiners;
}

/// Returns whether the code of `op` can run on views of its operands: it does not use positions, each
/// dimension of an operand is one of `op`, and operands have strides.
static bool isMovable(linalg::GenericOp op) {
  bool hasIndex = op->walk([](linalg::IndexOp) { return WalkResult::interrupt(); }).wasInterrupted();
  return !hasIndex && haveStrides(op->getOperands()) &&
         llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) { return map.isProjectedPermutation(); });
}

/// Returns whether all results of `op` have the same parallel dimensions in the same order, and no others.
static bool isReduction(linalg::GenericOp op) {
  if (!op.hasPureBufferSemantics() || op.getNumReductionLoops() == 0 || op.getNumDpsInits() == 0 ||
      ShapedType::isDynamicShape(op.getStaticLoopRanges()))
    return false;
  AffineMap first = op.getIndexingMapsArray()[op.getNumDpsInputs()];
  if (first.getNumResults() != op.getNumParallelLoops())
    return false;
  for (OpOperand &init : op.getDpsInitsMutable())
    if (op.getMatchingIndexingMap(&init) != first)
      return false;
  return llvm::all_of(first.getResults(), [&](AffineExpr expr) {
    return isa<AffineDimExpr>(expr) &&
           linalg::isParallelIterator(op.getIteratorTypesArray()[cast<AffineDimExpr>(expr).getPosition()]);
  });
}

//===----------------------------------------------------------------------===//
// How many parts
//===----------------------------------------------------------------------===//

namespace {
/// The parts of a reduction along one dimension; a rest behind them is a part of its own.
struct Parts {
  unsigned dim;
  int64_t count, length, rest;
  /// Lanes share a part (fp8-map-reductions): its elements are adjacent. The dimension of parts is the last
  /// of their values then, else the first.
  bool hasRows;
};
} // namespace

/// Returns whether neighbours along the last dimension are adjacent in memory, where lanes share them.
static bool hasAdjacentElements(linalg::GenericOp op) {
  unsigned last = op.getNumLoops() - 1;
  return llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *operand) {
    auto type = dyn_cast<MemRefType>(operand->get().getType());
    std::optional<unsigned> position =
        op.getMatchingIndexingMap(operand).getResultPosition(getAffineDimExpr(last, op.getContext()));
    return !type || !position ||
           (*position + 1 == type.getRank() && type.getStridesAndOffset().first.back() == 1);
  });
}

/// Returns up to `most` parts of `size`: as many as divide it, if there are at least half as many.
static int64_t chooseCount(int64_t size, int64_t most) {
  for (int64_t count = most; count > most / 2; --count)
    if (size % count == 0)
      return count;
  return most;
}

/// Returns how to divide `op`, if it is long enough.
static std::optional<Parts> chooseParts(linalg::GenericOp op) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<unsigned> reduced;
  op.getReductionDims(reduced);
  bool isLast = reduced.back() + 1 == ranges.size(), hasRows = isLast && hasAdjacentElements(op);
  int64_t lanes = hasRows ? kWarpLanes : 1, threads = lanes, iterations = 1;
  for (auto [dim, size] : llvm::enumerate(ranges))
    (llvm::is_contained(reduced, dim) ? iterations : threads) *= size;
  iterations /= lanes;
  if (threads == 0 || iterations < kLongIterations || threads >= kManyThreads ||
      (hasRows && iterations * lanes <= kBlockElements))
    return std::nullopt;
  // Lanes take a part if it is one row: all of the other dimension are parts then.
  bool hasOther = hasRows && reduced.size() > 1;
  if (hasOther)
    reduced.pop_back();
  unsigned dim = *llvm::max_element(reduced, [&](unsigned a, unsigned b) { return ranges[a] < ranges[b]; });
  int64_t size = ranges[dim], most = std::min({kManyThreads / threads, iterations / kPartIterations, size});
  if (isLast && !hasRows) // a thread per result combines them
    most = std::min<int64_t>(most, std::sqrt(double(iterations)));
  int64_t count = hasOther ? std::min(size, kManyThreads) : chooseCount(size, most);
  if (count < 2)
    return std::nullopt;
  return Parts{dim, count, size / count, size % count, hasRows};
}

/// Makes one dimension of neighbouring ones that are reduced, where memory allows it.
static linalg::GenericOp collapseReduced(IRRewriter &rewriter, linalg::GenericOp op) {
  SmallVector<ReassociationIndices> runs;
  for (auto [dim, type] : llvm::enumerate(op.getIteratorTypesArray())) {
    if (!linalg::isReductionIterator(type))
      continue;
    if (runs.empty() || runs.back().back() + 1 != int64_t(dim))
      runs.emplace_back();
    runs.back().push_back(dim);
  }
  llvm::erase_if(runs, [&](const ReassociationIndices &run) {
    return run.size() == 1 || !linalg::areDimSequencesPreserved(op.getIndexingMapsArray(), {run});
  });
  if (runs.empty())
    return op;
  FailureOr<linalg::CollapseResult> result = linalg::collapseOpIterationDims(op, runs, rewriter);
  if (failed(result))
    return op;
  auto collapsed = cast<linalg::GenericOp>(result->collapsedOp.getOperation());
  for (NamedAttribute attribute : op->getDiscardableAttrs())
    collapsed->setAttr(attribute.getName(), attribute.getValue());
  rewriter.eraseOp(op);
  return collapsed;
}

//===----------------------------------------------------------------------===//
// Rewrite
//===----------------------------------------------------------------------===//

/// Returns the part of the operand from `begin` on along its dimension that is `dim` of `op`.
static Value takeRange(OpBuilder &b, linalg::GenericOp op, OpOperand &operand, unsigned dim, int64_t begin,
                       int64_t size) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  std::optional<unsigned> position = map.getResultPosition(b.getAffineDimExpr(dim));
  if (!position)
    return operand.get();
  ArrayRef<int64_t> shape = cast<MemRefType>(operand.get().getType()).getShape();
  SmallVector<OpFoldResult> offsets(shape.size(), b.getIndexAttr(0)),
      strides(shape.size(), b.getIndexAttr(1)), sizes = getAsIndexOpFoldResult(b.getContext(), shape);
  if (size == shape[*position])
    return operand.get();
  offsets[*position] = b.getIndexAttr(begin);
  sizes[*position] = b.getIndexAttr(size);
  return memref::SubViewOp::create(b, op.getLoc(), operand.get(), offsets, sizes, strides);
}

/// Returns buffers for the values of all parts, which have the combiners' neutral elements. Neighbouring
/// threads store neighbouring values.
static SmallVector<Value> allocateParts(OpBuilder &b, linalg::GenericOp op, ArrayRef<Operation *> combiners,
                                        const Parts &parts) {
  SmallVector<Value> buffers;
  for (auto [init, combiner] : llvm::zip_equal(op.getDpsInits(), combiners)) {
    auto type = cast<MemRefType>(init.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape.insert(parts.hasRows ? shape.end() : shape.begin(), parts.count);
    Value buffer = memref::AllocOp::create(b, op.getLoc(), MemRefType::get(shape, type.getElementType()));
    Value neutral = arith::ConstantOp::create(b, op.getLoc(), *arith::getNeutralElement(combiner));
    linalg::FillOp::create(b, op.getLoc(), neutral, buffer);
    buffers.push_back(buffer);
  }
  return buffers;
}

/// Returns the map of an operand, or of values of parts, with the dimension of parts.
static AffineMap addParts(AffineMap map, const Parts &parts, bool isResult) {
  MLIRContext *context = map.getContext();
  AffineExpr part = getAffineDimExpr(0, context);
  SmallVector<AffineExpr> results;
  for (AffineExpr expr : map.getResults()) {
    unsigned dim = cast<AffineDimExpr>(expr).getPosition();
    if (dim == parts.dim)
      results.push_back(part);
    results.push_back(getAffineDimExpr(dim + 1, context));
  }
  if (isResult)
    results.insert(parts.hasRows ? results.end() : results.begin(), part);
  return AffineMap::get(map.getNumDims() + 1, 0, results, context);
}

/// Reduces each part into its value.
static void reduceParts(OpBuilder &b, linalg::GenericOp op, ArrayRef<Value> values, const Parts &parts) {
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(operand);
    std::optional<unsigned> position = map.getResultPosition(b.getAffineDimExpr(parts.dim));
    Value view = takeRange(b, op, *operand, parts.dim, 0, parts.count * parts.length);
    inputs.push_back(position ? buildPartView(b, op.getLoc(), view, *position, parts.count) : view);
    maps.push_back(addParts(map, parts, /*isResult=*/false));
  }
  for (OpOperand &init : op.getDpsInitsMutable())
    maps.push_back(addParts(op.getMatchingIndexingMap(&init), parts, /*isResult=*/true));
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  iterators.insert(iterators.begin(), utils::IteratorType::parallel);
  auto reduced = linalg::GenericOp::create(b, op.getLoc(), inputs, values, maps, iterators);
  IRMapping mapping;
  op.getRegion().cloneInto(&reduced.getRegion(), mapping);
  for (NamedAttribute attribute : op->getDiscardableAttrs())
    reduced->setAttr(attribute.getName(), attribute.getValue());
}

/// Reduces what is left behind the parts into the results.
static void reduceRest(OpBuilder &b, linalg::GenericOp op, const Parts &parts) {
  auto rest = cast<linalg::GenericOp>(b.clone(*op));
  b.setInsertionPoint(rest);
  for (OpOperand *operand : rest.getDpsInputOperands())
    operand->set(takeRange(b, op, op->getOpOperand(operand->getOperandNumber()), parts.dim,
                           parts.count * parts.length, parts.rest));
  b.setInsertionPointAfter(rest);
}

/// Combines the values of the parts into the results.
static void combineParts(OpBuilder &b, linalg::GenericOp op, ArrayRef<Operation *> combiners,
                         ArrayRef<Value> values, bool atEnd) {
  unsigned rank = cast<MemRefType>(values.front().getType()).getRank(), part = atEnd ? rank - 1 : 0;
  AffineMap all = b.getMultiDimIdentityMap(rank), results = all.dropResult(part);
  SmallVector<AffineMap> maps(values.size(), all);
  maps.append(values.size(), results);
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  iterators[part] = utils::IteratorType::reduction;
  auto combine = [&](OpBuilder &inner, Location loc, ValueRange arguments) {
    SmallVector<Value> yielded;
    for (auto [i, combiner] : llvm::enumerate(combiners)) {
      Operation *copy = inner.clone(*combiner);
      copy->setOperands({arguments[combiners.size() + i], arguments[i]});
      yielded.push_back(copy->getResult(0));
    }
    linalg::YieldOp::create(inner, loc, yielded);
  };
  auto combined =
      linalg::GenericOp::create(b, op.getLoc(), values, op.getDpsInits(), maps, iterators, combine);
  combined->setAttr(kComputesAttrName, b.getStringAttr("combine_parts"));
}

/// Returns whether `op` becomes kernels of its own, not a part of another one.
static bool isOnHost(Operation *op) {
  for (Operation *parent = op->getParentOp(); !isa<func::FuncOp>(parent); parent = parent->getParentOp())
    if (isa<scf::ParallelOp, scf::ForallOp>(parent) || parent->hasAttr(kKernelAttrName))
      return false;
  return true;
}

static void split(linalg::LinalgOp linalgOp) {
  IRRewriter rewriter(linalgOp);
  auto op = dyn_cast<linalg::GenericOp>(linalgOp.getOperation());
  if (!op) {
    if (!isa<linalg::ReduceOp>(linalgOp) || !linalgOp.hasPureBufferSemantics())
      return;
    FailureOr<linalg::GenericOp> general = linalg::generalizeNamedOp(rewriter, linalgOp);
    if (failed(general))
      return;
    op = *general;
  }
  if (!isReduction(op) || !isMovable(op) || findCombiners(op).empty())
    return;
  if (!chooseParts(op))
    return;
  rewriter.setInsertionPoint(op);
  op = collapseReduced(rewriter, op);
  std::optional<Parts> parts = chooseParts(op);
  if (!parts)
    return;
  SmallVector<Operation *> combiners = findCombiners(op);
  llvm::for_each(combiners, dropOverflowFlags);
  rewriter.setInsertionPoint(op);
  SmallVector<Value> values = allocateParts(rewriter, op, combiners, *parts);
  reduceParts(rewriter, op, values, *parts);
  if (parts->rest != 0)
    reduceRest(rewriter, op, *parts);
  combineParts(rewriter, op, combiners, values, parts->hasRows);
  rewriter.eraseOp(op);
}

namespace {
struct SplitReductionsPass : public fp8::impl::SplitReductionsBase<SplitReductionsPass> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (!func.isPublic() || hasModuleAttr(func, kProgramOrderAttrName))
      return;
    SmallVector<linalg::LinalgOp> ops;
    func.walk([&](linalg::LinalgOp op) {
      if (isOnHost(op))
        ops.push_back(op);
    });
    for (linalg::LinalgOp op : ops)
      split(op);
  }
};
} // namespace
