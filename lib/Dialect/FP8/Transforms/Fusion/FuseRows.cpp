// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fuses norms and softmaxes into the cast or amax that reads them, whose region then works on rows.
// RowCluster.h finds the operations that can be fused, RowBuilder.h builds the fused operation; this
// pass keeps it if it reads and writes fewer bytes.

#include "RowBuilder.h"
#include "fp8/Analysis/MemoryTraffic.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_FUSEROWS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// Returns the operations before `op` that depend on results of the cluster, which must move behind
/// the fused operation. Fails if one of them has side effects.
FailureOr<SmallVector<Operation *>> findReadersBefore(Operation *op, const detail::RowCluster &cluster) {
  SmallVector<Operation *> readers;
  llvm::SmallPtrSet<Operation *, 16> late;
  for (Operation *next = cluster.members.front(); next != op; next = next->getNextNode()) {
    bool isGeneric = cluster.isMember(next) && isa<linalg::GenericOp>(next);
    bool reads = isGeneric || late.contains(next);
    if (!reads)
      continue;
    for (Operation *user : next->getUsers()) {
      Operation *reader = op->getBlock()->findAncestorOpInBlock(*user);
      bool outside = reader && reader != op && (!cluster.isMember(reader) || !isa<linalg::GenericOp>(reader));
      if (outside && reader->isBeforeInBlock(op))
        late.insert(reader);
    }
    if (!isGeneric) {
      if (!isMemoryEffectFree(next))
        return failure();
      readers.push_back(next);
    }
  }
  return readers;
}

/// Returns whether the elements of a row follow each other in the order of the tensor, so that the random
/// bits of a cast follow from the number of the row's first element.
bool isContiguous(Operation *op, ArrayRef<int64_t> rows) {
  int64_t numDims = ElementRegion::of(op)->numDims, size = rows.size();
  return llvm::equal(rows, llvm::seq(numDims - size, numDims));
}

/// Returns whether the cast rounds by bits that do not follow from the rows.
bool roundsAcross(Operation *op, ArrayRef<int64_t> rows) {
  auto quantize = dyn_cast<QuantizeOp>(op);
  return quantize && quantize.getRandom() && !isContiguous(op, rows);
}

/// Fuses the cluster into `op` if that saves traffic. Returns whether it did.
bool fuse(RewriterBase &rewriter, Operation *op, ArrayRef<int64_t> rows) {
  if (roundsAcross(op, rows))
    return false;
  detail::RowCluster cluster(op, rows);
  if (failed(cluster.find()))
    return false;
  FailureOr<SmallVector<Operation *>> readers = findReadersBefore(op, cluster);
  if (failed(readers))
    return false;
  detail::RowBuilder builder(rewriter, op, rows, cluster);
  Operation *built = builder.build();
  MemoryTraffic before = countTraffic(op);
  for (Operation *member : cluster.members)
    before += countTraffic(member);
  if (countTraffic(built).total() >= before.total()) {
    rewriter.eraseOp(built);
    return false;
  }
  for (Operation *reader : *readers)
    rewriter.moveOpBefore(reader, op);
  unsigned kept = op->getNumResults();
  rewriter.replaceAllUsesWith(op->getResults(), built->getResults().take_front(kept));
  rewriter.eraseOp(op);
  for (auto [value, extra] : llvm::zip_equal(builder.stored, built->getResults().drop_front(kept)))
    rewriter.replaceAllUsesWith(value, extra);
  for (Operation *member : llvm::reverse(cluster.members))
    if (member->use_empty())
      rewriter.eraseOp(member);
  return true;
}

/// Returns the sets of dimensions that may be rows: those that an input of the region lacks, since it
/// may be a statistic of the rows, and the last dimension.
SmallVector<SmallVector<int64_t>> findCandidates(Operation *op) {
  ElementRegion region = *ElementRegion::of(op);
  SmallVector<SmallVector<int64_t>> candidates;
  auto add = [&](SmallVector<int64_t> dims) {
    if (!dims.empty() && dims.size() < region.numDims && !llvm::is_contained(candidates, dims))
      candidates.push_back(dims);
  };
  for (auto [input, map] : llvm::zip(region.inputs, region.inputMaps())) {
    SmallVector<int64_t> missing;
    for (unsigned dim = 0; dim < region.numDims; ++dim)
      if (!map.isFunctionOfDim(dim))
        missing.push_back(dim);
    if (input.getDefiningOp())
      add(missing);
  }
  add({static_cast<int64_t>(region.numDims) - 1});
  return candidates;
}

/// Returns whether the pass can fuse rows into `op`.
bool canHaveRows(Operation *op) {
  return isa<AmaxOp, QuantizeOp>(op) && op->getNumResults() != 0 && ElementRegion::of(op)->rows.empty();
}

class FuseRows : public impl::FuseRowsBase<FuseRows> {
public:
  void runOnOperation() final {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (canHaveRows(op))
        ops.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (Operation *op : ops)
      for (ArrayRef<int64_t> rows : findCandidates(op))
        if (fuse(rewriter, op, rows))
          break;
  }
};

} // namespace

detail::Reason detail::explainRows(linalg::GenericOp producer, Operation *cast) {
  if (!canHaveRows(cast))
    return "";
  SmallVector<SmallVector<int64_t>> candidates = findCandidates(cast);
  if (candidates.empty())
    return "";
  ArrayRef<int64_t> rows = candidates.front();
  if (roundsAcross(cast, rows))
    return "the cast rounds stochastically, in another order than by rows";
  RowCluster cluster(cast, rows);
  bool isFound = succeeded(cluster.find());
  if (!isFound || !cluster.isMember(producer))
    return cluster.explain(producer);
  return succeeded(findReadersBefore(cast, cluster))
             ? "computed by rows, the step would read and write no fewer bytes"
             : "an operation with side effects stands between";
}

} // namespace fp8
