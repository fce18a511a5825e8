// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fuses readers of a matmul's results into its epilogue: elementwise code, sums over rows, then one
// quantize, and the amaxes that scales are computed from. Each fused reader saves a read of a result,
// and nothing is computed twice.

#include "RegionFusion.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_FUSEEPILOGUES
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

class EpilogueFuser {
public:
  explicit EpilogueFuser(RewriterBase &rewriter) : rewriter(rewriter) {}

  void fuseInto(Operation *op) {
    if (!ElementRegion::of(op)->amaxes.empty())
      return; // the matmul was fused with a cast or an amax before
    while (Operation *fused = fuseElementwise(op))
      op = fused;
    op = fuseSums(op);
    op = makeFirstResultUsed(op);
    op = fuseQuantize(op);
    while (Operation *fused = fuseAmax(op))
      op = fused;
  }

  /// Why `reader` of value `value` is left in memory.
  detail::Reason explain(Operation *op, unsigned value, Operation *reader);

private:
  static AffineMap identityOf(Operation *op) {
    return AffineMap::getMultiDimIdentityMap(ElementRegion::of(op)->numDims, op->getContext());
  }
  /// The result that stores value `i` of the yield; 0 is the first result.
  static OpResult getStored(Operation *op, unsigned i) {
    return op->getResult(i == 0 ? 0 : ElementRegion::of(op)->firstExtra() + i - 1);
  }
  /// The map of the result that stores value `i`.
  static AffineMap getMap(Operation *op, unsigned i) {
    return i == 0 ? identityOf(op) : ElementRegion::of(op)->extraMaps()[i - 1];
  }
  /// The readers of value `i` in the same block, in the order of the program.
  static SmallVector<Operation *> findReaders(Operation *op, unsigned i) {
    llvm::SetVector<Operation *> users;
    for (Operation *user : getStored(op, i).getUsers())
      if (user->getBlock() == op->getBlock())
        users.insert(user);
    SmallVector<Operation *> readers = users.takeVector();
    llvm::sort(readers, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    return readers;
  }

  AffineMap findLoops(Operation *op, unsigned value, linalg::GenericOp reader, detail::Reason *why = nullptr);
  bool isWorthwhile(Operation *op, unsigned value, linalg::GenericOp reader);
  Operation *fuseElementwise(Operation *op);
  Operation *apply(Operation *op, unsigned value, linalg::GenericOp reader, AffineMap loops,
                   Operation *place);
  Operation *fuseSums(Operation *op);
  bool canBeFirst(Operation *op, unsigned value);
  bool canCast(Operation *op, unsigned value, QuantizeOp quantize, detail::Reason *why = nullptr);
  Operation *exchangeFirst(Operation *op, unsigned value);
  Operation *makeFirstResultUsed(Operation *op);
  Operation *fuseQuantize(Operation *op);
  Operation *apply(Operation *op, QuantizeOp reader, Operation *place);
  Operation *fuseAmax(Operation *op);
  Operation *apply(Operation *op, unsigned value, AmaxOp reader, Operation *place);

  RewriterBase &rewriter;
};

/// Returns the map from dimensions of the result to loops of `reader`, or null if `reader` cannot be
/// fused. It must read value `value` with one map. A reader of the first result replaces that result,
/// and must write its own with the same map.
AffineMap EpilogueFuser::findLoops(Operation *op, unsigned value, linalg::GenericOp reader,
                                   detail::Reason *why) {
  auto refuse = [&](detail::Reason reason) { return detail::decline(why, reason), AffineMap(); };
  Value tensor = getStored(op, value);
  AffineMap identity = identityOf(op), loops;
  for (OpOperand *input : reader.getDpsInputOperands()) {
    if (input->get() != tensor)
      continue;
    AffineMap found = detail::findLoops(reader, *input, getMap(op, value));
    if (!found || (loops && loops != found))
      return refuse("it does not read each element once, in the order of a permutation");
    loops = found;
  }
  // Other values that are read with the map of their result are in the region as well.
  for (unsigned i = 0; i <= ElementRegion::of(op)->numExtras(); ++i)
    for (OpOperand *input : reader.getDpsInputOperands())
      if (loops && i != value && input->get() == getStored(op, i) &&
          (isSummed(getMap(op, i)) || reader.getMatchingIndexingMap(input).compose(loops) != getMap(op, i)))
        return refuse("it reads another result of the matmul at other indices");
  auto mapOf = [&](OpOperand &out) { return reader.getMatchingIndexingMap(&out).compose(loops); };
  if (!loops ||
      !llvm::all_of(reader.getDpsInitsMutable(), [&](OpOperand &out) { return mapOf(out).isPermutation(); }))
    return refuse("it does not write each element once, in the order of a permutation");
  if (value != 0)
    return loops;
  // With `accumulate` the type of the first result must not change.
  Type element = getElementTypeOrSelf(reader.getResult(0));
  bool allowed = MatmulResults::of(op)->accumulate ? element == getElementTypeOrSelf(tensor)
                                                   : element.isF32() || element.isBF16() || element.isF16();
  if (!allowed)
    return refuse("its result has a type that the matmul cannot write");
  return mapOf(*reader.getDpsInitOperand(0)) == identity
             ? loops
             : refuse("it writes its result in another order than the matmul");
}

/// Returns whether to fuse `reader`. A reader of an extra result is better fused with the other readers
/// of that result, perhaps in a region on rows, unless its result is cast directly: the amax of the cast
/// would read the extra result again. If the scale is known, the cast can take in the reader instead,
/// and fusing it here only saves traffic if nothing else keeps the extra result.
bool EpilogueFuser::isWorthwhile(Operation *op, unsigned value, linalg::GenericOp reader) {
  if (value == 0)
    return true;
  bool replaces =
      llvm::all_of(getStored(op, value).getUsers(), [&](Operation *user) { return user == reader; });
  return llvm::any_of(reader->getUsers(), llvm::IsaPred<AmaxOp>) ||
         (replaces && llvm::all_of(reader->getUsers(), llvm::IsaPred<QuantizeOp>));
}

Operation *EpilogueFuser::fuseElementwise(Operation *op) {
  for (unsigned value = 0; value <= ElementRegion::of(op)->numExtras(); ++value) {
    if (isSummed(getMap(op, value)))
      continue;
    for (Operation *user : findReaders(op, value)) {
      linalg::GenericOp reader = detail::getElementwise(user);
      AffineMap loops = reader ? findLoops(op, value, reader) : AffineMap();
      if (!loops || detail::readsTooMuch(op, reader, loops, getStored(op, value)) ||
          !isWorthwhile(op, value, reader))
        continue;
      if (Operation *place = detail::findMeetingPoint(rewriter, op, reader))
        return apply(op, value, reader, loops, place);
    }
  }
  return nullptr;
}

Operation *EpilogueFuser::apply(Operation *op, unsigned value, linalg::GenericOp reader, AffineMap loops,
                                Operation *place) {
  ElementRegion region = *ElementRegion::of(op);
  unsigned oldExtras = region.numExtras();
  Value first = op->getResult(0), init = region.outs.front();
  bool isStored = !llvm::all_of(first.getUsers(), [&](Operation *user) { return user == reader; });
  detail::RegionFuser fuser(rewriter, op);
  Value before = fuser.getElement();
  DenseMap<Value, Value> known{{first, before}};
  for (unsigned i = 0; i < oldExtras; ++i)
    known[getStored(op, 1 + i)] = fuser.getExtra(i);
  IRMapping mapping = fuser.inlineCode(reader, loops, known, /*atEnd=*/true);
  SmallVector<Value> yielded = llvm::map_to_vector(reader.getBody()->getTerminator()->getOperands(),
                                                   [&](Value v) { return mapping.lookupOrDefault(v); });
  // The result of a reader of the first result replaces it.
  unsigned replaced = value == 0 ? 1 : 0;
  if (replaced)
    fuser.setElement(yielded[0]);
  for (unsigned i = replaced; i < yielded.size(); ++i)
    fuser.addExtra(yielded[i], reader.getMatchingIndexingMap(reader.getDpsInitOperand(i)).compose(loops),
                   reader.getDpsInits()[i]);
  if (replaced && isStored)
    fuser.addExtra(before, identityOf(op), init);
  bool keepsInit = !replaced || MatmulResults::of(op)->accumulate;
  Operation *fused = fuser.rebuild(place, keepsInit ? init : reader.getDpsInits().front());

  ResultRange results = fused->getResults();
  rewriter.replaceAllUsesWith(reader->getResults().take_front(replaced), results.take_front(replaced));
  rewriter.replaceAllUsesWith(op->getResults().drop_front(), results.slice(1, oldExtras));
  rewriter.replaceAllUsesWith(reader->getResults().drop_front(replaced),
                              results.slice(1 + oldExtras, yielded.size() - replaced));
  rewriter.eraseOp(reader);
  if (!replaced)
    rewriter.replaceAllUsesWith(first, results.front());
  else if (isStored)
    rewriter.replaceAllUsesWith(first, results.back());
  rewriter.eraseOp(op);
  return fused;
}

/// Fuses sums over the result and over extra results.
Operation *EpilogueFuser::fuseSums(Operation *op) {
  for (unsigned i = 0; i <= ElementRegion::of(op)->numExtras();) {
    auto elementOf = [&](detail::RegionFuser &fuser) {
      return i == 0 ? fuser.getElement() : fuser.getExtra(i - 1);
    };
    Operation *fused = isSummed(getMap(op, i))
                           ? op
                           : detail::fuseSums(rewriter, op, getStored(op, i), getMap(op, i), elementOf);
    i = fused == op ? i + 1 : i;
    op = fused;
  }
  return op;
}

/// Returns whether value `value` is the first result or could be.
bool EpilogueFuser::canBeFirst(Operation *op, unsigned value) {
  Type element = getElementTypeOrSelf(getStored(op, value));
  return value == 0 || (!MatmulResults::of(op)->accumulate && getMap(op, value) == identityOf(op) &&
                        (element.isF32() || element.isBF16() || element.isF16()));
}

/// Exchanges value `value` and the first result. Returns the operation that replaces `op`.
Operation *EpilogueFuser::exchangeFirst(Operation *op, unsigned value) {
  if (value == 0)
    return op;
  detail::RegionFuser fuser(rewriter, op);
  Value out = fuser.exchangeFirst(value - 1);
  Operation *exchanged = fuser.rebuild(op, out);
  SmallVector<Value> results(exchanged->getResults());
  std::swap(results.front(), results[value]);
  rewriter.replaceOp(op, results);
  return exchanged;
}

/// If nothing reads the first result, which cannot be dropped, exchanges it with one that is read.
Operation *EpilogueFuser::makeFirstResultUsed(Operation *op) {
  if (!op->getResult(0).use_empty())
    return op;
  for (unsigned value = 1; value <= ElementRegion::of(op)->numExtras(); ++value)
    if (canBeFirst(op, value) && !getStored(op, value).use_empty())
      return exchangeFirst(op, value);
  return op;
}

/// Returns whether the matmul may write `quantize` of value `value` as its FP8 result.
bool EpilogueFuser::canCast(Operation *op, unsigned value, QuantizeOp quantize, detail::Reason *why) {
  if (MatmulResults::of(op)->accumulate)
    return detail::decline(why, "the matmul adds to what its result held before");
  if (MatmulResults::of(op)->outScale)
    return detail::decline(why, "the matmul has an FP8 result already");
  if (!canBeFirst(op, value))
    return detail::decline(why, "the cast is of a value that the matmul cannot write as its first result");
  if (!quantize.getProducer().empty())
    return detail::decline(why, "the cast has code of its own");
  if (quantize.getTransposition())
    return detail::decline(why, "the cast writes a transposed copy as well");
  return !quantize.getRandom() || detail::decline(why, "epilogues round to nearest, and the cast does not");
}

/// Fuses the first quantize whose scale is computed before the matmul, which gives the matmul an FP8
/// result. Returns the operation that replaces `op`.
Operation *EpilogueFuser::fuseQuantize(Operation *op) {
  for (unsigned value = 0; value <= ElementRegion::of(op)->numExtras(); ++value) {
    for (Operation *user : findReaders(op, value)) {
      auto quantize = dyn_cast<QuantizeOp>(user);
      if (!quantize || !canCast(op, value, quantize))
        continue;
      if (Operation *place = detail::findMeetingPoint(rewriter, op, quantize)) {
        Operation *exchanged = exchangeFirst(op, value);
        return apply(exchanged, quantize, place == op ? exchanged : place);
      }
    }
  }
  return op;
}

Operation *EpilogueFuser::apply(Operation *op, QuantizeOp reader, Operation *place) {
  unsigned oldExtras = ElementRegion::of(op)->numExtras();
  bool isStored = !op->getResult(0).hasOneUse();
  detail::RegionFuser fuser(rewriter, op);
  if (isStored)
    fuser.addExtra(fuser.getElement(), identityOf(op), ElementRegion::of(op)->outs.front());
  ArrayAttr maps = fuser.finishBody();
  rewriter.setInsertionPoint(place);
  // An FP8 result always has its amax.
  SmallVector<Value> outs(reader.getOuts());
  if (!reader.getRecordAmax())
    outs.push_back(tensor::EmptyOp::create(rewriter, op->getLoc(), ArrayRef<int64_t>(), rewriter.getF32Type())
                       .getResult());
  llvm::append_range(outs, fuser.getExtraOuts());
  Operation *fused =
      rebuildMatmul(rewriter, op, fuser.getInputs(), reader.getScale(), /*recordAmax=*/{}, outs, maps);

  ResultRange results = fused->getResults();
  rewriter.replaceAllUsesWith(reader->getResults(), results.take_front(reader->getNumResults()));
  rewriter.replaceAllUsesWith(op->getResults().drop_front(), results.slice(3, oldExtras));
  rewriter.eraseOp(reader);
  if (isStored)
    rewriter.replaceAllUsesWith(op->getResult(0), results.back());
  rewriter.eraseOp(op);
  return fused;
}

/// Fuses amaxes of stored values.
Operation *EpilogueFuser::fuseAmax(Operation *op) {
  for (unsigned value = 0; value <= ElementRegion::of(op)->numExtras(); ++value) {
    if (isSummed(getMap(op, value)) || getElementTypeOrSelf(getStored(op, value)).isF64())
      continue;
    for (Operation *user : findReaders(op, value)) {
      auto amax = dyn_cast<AmaxOp>(user);
      if (!amax || !amax.getProducer().empty())
        continue;
      if (Operation *place = detail::findMeetingPoint(rewriter, op, amax))
        return apply(op, value, amax, place);
    }
  }
  return nullptr;
}

Operation *EpilogueFuser::apply(Operation *op, unsigned value, AmaxOp reader, Operation *place) {
  ElementRegion region = *ElementRegion::of(op);
  Value outScale = MatmulResults::of(op)->outScale;
  SmallVector<int64_t> amaxes = region.amaxes;
  size_t number = llvm::lower_bound(amaxes, value) - amaxes.begin();
  size_t position = region.firstExtra() - amaxes.size() + number; // of the new amax among the results
  amaxes.insert(amaxes.begin() + number, value);
  SmallVector<Value> outs(region.outs);
  outs.insert(outs.begin() + position, reader.getOuts().front());
  rewriter.setInsertionPoint(place);
  ArrayAttr maps = region.maps.empty() ? ArrayAttr() : rewriter.getAffineMapArrayAttr(region.maps);
  Operation *fused = rebuildMatmul(rewriter, op, region.inputs, outScale,
                                   ArrayRef(amaxes).drop_front(outScale ? 1 : 0), outs, maps);
  SmallVector<Value> results(fused->getResults());
  rewriter.replaceAllUsesWith(reader->getResults(), results[position]);
  rewriter.eraseOp(reader);
  results.erase(results.begin() + position);
  rewriter.replaceOp(op, results);
  return fused;
}

/// Returns whether `value` is computed from a result of `op`, in the same block.
static bool isComputedFrom(Value value, Operation *op) {
  Operation *source = value.getDefiningOp();
  bool comesAfter = source && source->getBlock() == op->getBlock() && op->isBeforeInBlock(source);
  auto leadsThere = [&](Value operand) { return isComputedFrom(operand, op); };
  return source == op || (comesAfter && llvm::any_of(source->getOperands(), leadsThere));
}

detail::Reason EpilogueFuser::explain(Operation *op, unsigned value, Operation *reader) {
  detail::Reason why;
  if (isSummed(getMap(op, value)))
    return "the result is a sum, which is complete only after the matmul";
  if (auto quantize = dyn_cast<QuantizeOp>(reader))
    return isComputedFrom(quantize.getScale(), op) ? "its scale is computed from what the matmul writes"
           : canCast(op, value, quantize, &why) && detail::canMeet(op, quantize, &why) ? ""
                                                                                       : why;
  if (!ElementRegion::of(op)->amaxes.empty())
    return "the epilogue ends with a cast or an amax";
  auto generic = dyn_cast<linalg::GenericOp>(reader);
  if (generic && generic.getNumReductionLoops() != 0)
    return detail::canFuseSum(op, reader, getStored(op, value), getMap(op, value), &why) ? "" : why;
  if (!generic || !detail::getElementwise(generic))
    return "its code is more than arithmetic on scalars";
  AffineMap loops = findLoops(op, value, generic, &why);
  if (!loops)
    return why;
  if (detail::readsTooMuch(op, generic, loops, getStored(op, value)))
    return detail::kTooManyInputs;
  if (!isWorthwhile(op, value, generic))
    return "others read the result too, so that fusing it here saves no traffic";
  return detail::canMeet(op, generic, &why) ? "" : why;
}

/// Returns whether `op` is a matmul that can have an epilogue: not one in f64, nor one that resumes sums.
bool hasEpilogue(Operation *op) {
  if (auto matmul = dyn_cast<MatmulOp>(op); matmul && matmul.getResume())
    return false;
  return MatmulResults::of(op) && op->getNumResults() != 0 &&
         llvm::none_of(op->getOperandTypes(), [](Type type) { return getElementTypeOrSelf(type).isF64(); });
}

class FuseEpilogues : public impl::FuseEpiloguesBase<FuseEpilogues> {
public:
  void runOnOperation() final {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (hasEpilogue(op))
        ops.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (Operation *op : ops)
      EpilogueFuser(rewriter).fuseInto(op);
  }
};

} // namespace

detail::Reason detail::explainEpilogue(Operation *matmul, OpResult result, Operation *reader) {
  if (!hasEpilogue(matmul))
    return "matmuls in f64, and those that resume sums, have no epilogue";
  if (isa<AmaxOp, QuantizeBlocksOp>(reader))
    return "it has code of its own, or needs whole rows or blocks";
  ElementRegion region = *ElementRegion::of(matmul);
  unsigned number = result.getResultNumber();
  IRRewriter rewriter(matmul->getContext());
  return EpilogueFuser(rewriter).explain(matmul, number == 0 ? 0 : number - region.firstExtra() + 1, reader);
}

} // namespace fp8
