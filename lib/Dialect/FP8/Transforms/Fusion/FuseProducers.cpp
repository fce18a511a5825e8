// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fuses producers of quantized tensors into the quantize or amax that reads them. The cost model
// is bytes read and written, see MemoryTraffic.h.

#include "RegionFusion.h"
#include "fp8/Analysis/MemoryTraffic.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_FUSEPRODUCERS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// One way to move a producer into a region.
struct Move {
  linalg::GenericOp producer;
  AffineMap loops;              ///< from dimensions of the region to the producer's loops
  SmallVector<unsigned> stored; ///< results of the producer that become extra results
  bool recompute = false;       ///< the code is copied, and the producer stays for other readers
};

/// Returns all readers of the results of `producer` except `reader`.
llvm::SetVector<Operation *> findOtherReaders(linalg::GenericOp producer, Operation *reader) {
  llvm::SetVector<Operation *> others(producer->user_begin(), producer->user_end());
  others.remove(reader);
  return others;
}

int64_t countInputBytes(linalg::GenericOp op) {
  llvm::SmallPtrSet<Value, 8> seen;
  int64_t bytes = 0;
  for (Value input : op.getDpsInputs())
    if (seen.insert(input).second)
      bytes += countBytes(input.getType());
  return bytes;
}

/// Returns whether all readers can compute the producer's only result themselves and move fewer bytes
/// in total than if one of them stores it and the others read it.
bool isWorthRecomputing(linalg::GenericOp producer, const llvm::SetVector<Operation *> &others) {
  if (!detail::isCheap(producer) || producer->getNumResults() != 1)
    return false;
  for (Operation *other : others)
    if (!isa<linalg::GenericOp, QuantizeOp, QuantizeBlocksOp, AmaxOp>(other))
      return false;
  int64_t readers = others.size() + 1, inputs = countInputBytes(producer);
  int64_t result = countBytes(producer.getResult(0).getType());
  return readers * inputs < inputs + result + (readers - 1) * result;
}

/// Returns whether after `move` an amax still has an input, and every dimension is one of an input or
/// of a stored result, which determines its size.
bool coversDims(const ElementRegion &region, unsigned dropped, Move &move) {
  // A tensor computed from indices alone, such as an identity matrix, has no inputs to take over.
  if (region.inputs.size() == 1 && move.producer.getNumDpsInputs() == 0)
    return false;
  SmallVector<AffineMap> maps(region.maps);
  maps.erase(maps.begin() + dropped);
  for (OpOperand *input : move.producer.getDpsInputOperands())
    maps.push_back(move.producer.getMatchingIndexingMap(input).compose(move.loops));
  if (!move.stored.empty())
    return true;
  return llvm::all_of(llvm::seq(region.numDims), [&](unsigned d) {
    return llvm::any_of(maps, [&](AffineMap map) {
      return llvm::is_contained(map.getResults(), getAffineDimExpr(d, map.getContext()));
    });
  });
}

class ProducerFuser {
public:
  explicit ProducerFuser(RewriterBase &rewriter) : rewriter(rewriter) {}

  void fuseInto(Operation *op) {
    op = fuseSumsOfInputs(op);
    // Fuse producers with one reader first, which may leave the others with fewer readers.
    while (true) {
      Operation *fused = fuseOne(op, /*withOtherReaders=*/false);
      if (!fused)
        fused = fuseOne(op, /*withOtherReaders=*/true);
      if (!fused)
        return;
      op = fuseSumsOfInputs(fused);
    }
  }

  std::optional<Move> findMove(Operation *op, unsigned input, bool withOtherReaders,
                               detail::Reason *why = nullptr);

private:
  Operation *fuseSumsOfInputs(Operation *op);
  Operation *fuseOne(Operation *op, bool withOtherReaders);
  bool canStore(Operation *op, Move &move);
  Operation *apply(Operation *op, unsigned input, const Move &move, Operation *place);

  RewriterBase &rewriter;
};

/// Fuses sums over tensors that the region reads anyway.
Operation *ProducerFuser::fuseSumsOfInputs(Operation *op) {
  for (unsigned i = 0; i < ElementRegion::of(op)->inputs.size();) {
    ElementRegion region = *ElementRegion::of(op);
    Operation *fused = detail::fuseSums(rewriter, op, region.inputs[i], region.maps[i],
                                        [&](detail::RegionFuser &fuser) { return fuser.getArgument(i); });
    i = fused == op ? i + 1 : i;
    op = fused;
  }
  return op;
}

/// Adds the results that others read to `move.stored`; returns false if one of them is not a
/// permutation of the dimensions and so cannot be an extra result.
bool ProducerFuser::canStore(Operation *op, Move &move) {
  for (OpResult result : move.producer->getResults()) {
    if (llvm::all_of(result.getUsers(), [&](Operation *user) { return user == op; }))
      continue;
    AffineMap map = move.producer.getIndexingMapMatchingResult(result).compose(move.loops);
    if (!map.isPermutation())
      return false;
    move.stored.push_back(result.getResultNumber());
  }
  return true;
}

std::optional<Move> ProducerFuser::findMove(Operation *op, unsigned input, bool withOtherReaders,
                                            detail::Reason *why) {
  auto refuse = [&](detail::Reason reason) { return detail::decline(why, reason), std::nullopt; };
  ElementRegion region = *ElementRegion::of(op);
  Value tensor = region.inputs[input];
  Move move{detail::getElementwise(tensor.getDefiningOp()), {}, {}};
  if (!move.producer)
    return refuse("the code that computes the tensor is more than arithmetic on single elements");
  if (move.producer->getBlock() != op->getBlock())
    return refuse("the tensor is computed outside of the loop or branch");
  // Only one operand of `op` may be a result of the producer, since one operand is replaced at a time.
  if (llvm::count_if(region.inputs, [&](Value v) { return v.getDefiningOp() == move.producer; }) != 1 ||
      llvm::count(op->getOperands(), tensor) != 1)
    return refuse("it reads several results of the operation that computes the tensor");
  unsigned number = cast<OpResult>(tensor).getResultNumber();
  AffineMap map = region.maps[input];
  move.loops = detail::findLoops(move.producer, *move.producer.getDpsInitOperand(number), map);
  if (!move.loops)
    return refuse("the tensor is not written once per element, in the order of a permutation");
  if (detail::readsTooMuch(op, move.producer, move.loops, tensor))
    return refuse(detail::kTooManyInputs);
  // If the result is broadcast, the body would run more often than before.
  if (!map.isPermutation() && !detail::isCheap(move.producer))
    return refuse("the tensor is broadcast, and its code would run more often");
  llvm::SetVector<Operation *> others = findOtherReaders(move.producer, op);
  if (others.empty() != !withOtherReaders)
    return std::nullopt; // the other round's
  move.recompute = !others.empty() && isWorthRecomputing(move.producer, others);
  if (!move.recompute && !canStore(op, move))
    return refuse("others read a result that the fused operation cannot write in its order");
  if (isa<AmaxOp>(op) && !coversDims(region, input, move))
    return refuse("the amax would have no input that tells its size");
  return move;
}

Operation *ProducerFuser::fuseOne(Operation *op, bool withOtherReaders) {
  for (unsigned i = 0, e = ElementRegion::of(op)->inputs.size(); i < e; ++i) {
    std::optional<Move> move = findMove(op, i, withOtherReaders);
    if (!move)
      continue;
    Operation *place = move->recompute ? op : detail::findMeetingPoint(rewriter, move->producer, op);
    if (!place)
      continue;
    if (Operation *fused = apply(op, i, *move, place))
      return fused;
  }
  return nullptr;
}

Operation *ProducerFuser::apply(Operation *op, unsigned input, const Move &move, Operation *place) {
  linalg::GenericOp producer = move.producer;
  auto result = cast<OpResult>(ElementRegion::of(op)->inputs[input]);
  detail::RegionFuser fuser(rewriter, op);
  IRMapping mapping =
      fuser.inlineCode(producer, move.loops, /*known=*/DenseMap<Value, Value>(), /*atEnd=*/false);
  auto yielded = [&](unsigned number) {
    return mapping.lookupOrDefault(producer.getBody()->getTerminator()->getOperand(number));
  };
  fuser.replaceInput(input, yielded(result.getResultNumber()));
  for (unsigned number : move.stored)
    fuser.addExtra(yielded(number),
                   producer.getMatchingIndexingMap(producer.getDpsInitOperand(number)).compose(move.loops),
                   producer.getDpsInits()[number]);
  Operation *fused = fuser.rebuild(place);
  rewriter.replaceAllUsesWith(op->getResults(), fused->getResults().drop_back(move.stored.size()));
  for (auto [number, extra] : llvm::zip_equal(move.stored, fused->getResults().take_back(move.stored.size())))
    rewriter.replaceAllUsesWith(producer.getResult(number), extra);
  rewriter.eraseOp(op);
  if (!move.recompute)
    rewriter.eraseOp(producer);
  return fused;
}

class FuseProducers : public impl::FuseProducersBase<FuseProducers> {
public:
  void runOnOperation() final {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<AmaxOp, QuantizeOp, QuantizeBlocksOp>(op) && op->getNumResults() != 0)
        ops.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (Operation *op : ops)
      ProducerFuser(rewriter).fuseInto(op);
  }
};

} // namespace

detail::Reason detail::explainProducer(linalg::GenericOp producer, OpResult result, Operation *cast) {
  ElementRegion region = *ElementRegion::of(cast);
  auto input = llvm::find(region.inputs, result);
  if (input == region.inputs.end())
    return "it is no operand of the cast's elements";
  bool withOtherReaders = !findOtherReaders(producer, cast).empty();
  IRRewriter rewriter(cast->getContext());
  Reason why;
  std::optional<Move> move =
      ProducerFuser(rewriter).findMove(cast, input - region.inputs.begin(), withOtherReaders, &why);
  if (!move || move->recompute)
    return why;
  return canMeet(producer, cast, &why) ? "" : why;
}

} // namespace fp8
