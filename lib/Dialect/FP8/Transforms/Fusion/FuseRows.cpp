// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Norms and softmaxes move into the cast or the amax that reads them, whose region works on
// rows from then on. RowCluster.h says what can move, RowBuilder.h what it becomes; here bytes
// read and written decide whether it stays.

#include "RowBuilder.h"
#include "fp8/Analysis/MemoryTraffic.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_FUSEROWS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// What reads the cluster's results, or depends on what does, before `op`: it has to come after.
/// Fails where something of it has effects.
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

/// Moves the cluster into `op`, if that saves traffic. Returns whether it did.
bool fuse(RewriterBase &rewriter, Operation *op, ArrayRef<int64_t> rows) {
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

/// The sets of dimensions that may be rows: those that a tensor lacks which the region reads, as
/// a statistic of the rows does, and the last one.
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

class FuseRows : public impl::FuseRowsBase<FuseRows> {
public:
  void runOnOperation() final {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<AmaxOp, QuantizeOp>(op) && op->getNumResults() != 0 && !op->getAttr("block") &&
          ElementRegion::of(op)->rows.empty())
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
} // namespace fp8
