// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Readers of a product's result move into its epilogue: elementwise code, sums over rows, and
// at last the quantize, or the amax that its scale is computed from. Every one saves a read of the result,
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
    while (Operation *fused = fuseElementwise(op))
      op = fused;
    op = fuseSums(op);
    op = bringReadFirst(op);
    if (!fuseQuantize(op))
      fuseAmax(op);
  }

private:
  static AffineMap identityOf(Operation *op) {
    return AffineMap::getMultiDimIdentityMap(ElementRegion::of(op)->numDims, op->getContext());
  }
  /// Readers of the first result in the same block, in the order of the program.
  static SmallVector<Operation *> findReaders(Operation *op) {
    llvm::SetVector<Operation *> users;
    for (Operation *user : op->getResult(0).getUsers())
      if (user->getBlock() == op->getBlock())
        users.insert(user);
    SmallVector<Operation *> readers = users.takeVector();
    llvm::sort(readers, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    return readers;
  }
  /// Its result is the sum, in a type that regions compute in.
  static bool isFresh(Operation *op) {
    ProductResults results = *ProductResults::of(op);
    return !results.outScale && !results.recordAmax;
  }

  AffineMap findLoops(Operation *op, linalg::GenericOp reader);
  Operation *fuseElementwise(Operation *op);
  Operation *apply(Operation *op, linalg::GenericOp reader, AffineMap loops, Operation *place);
  Operation *fuseSums(Operation *op);
  Operation *bringReadFirst(Operation *op);
  bool fuseQuantize(Operation *op);
  void apply(Operation *op, QuantizeOp reader, Operation *place);
  void fuseAmax(Operation *op);
  void apply(Operation *op, AmaxOp reader, Operation *place);

  RewriterBase &rewriter;
};

/// From dimensions of the result to loops of `reader`, if it reads all of the result in one way,
/// and writes its own first result like it.
AffineMap EpilogueFuser::findLoops(Operation *op, linalg::GenericOp reader) {
  Value result = op->getResult(0);
  AffineMap identity = identityOf(op), loops;
  for (OpOperand *input : reader.getDpsInputOperands()) {
    if (input->get() != result)
      continue;
    AffineMap found = detail::findLoops(reader, *input, identity);
    if (!found || (loops && loops != found))
      return {};
    loops = found;
  }
  // Results that were stored on the way here are known too, where they are read as written.
  ElementRegion region = *ElementRegion::of(op);
  for (OpOperand *input : reader.getDpsInputOperands()) {
    auto extra = dyn_cast<OpResult>(input->get());
    if (!loops || !extra || extra.getOwner() != op || extra == result)
      continue;
    AffineMap map = reader.getMatchingIndexingMap(input).compose(loops);
    if (isSummed(map) || map != region.extraMaps()[extra.getResultNumber() - region.firstExtra()])
      return {};
  }
  auto mapOf = [&](OpOperand &out) { return reader.getMatchingIndexingMap(&out).compose(loops); };
  if (!loops || mapOf(*reader.getDpsInitOperand(0)) != identity ||
      !llvm::all_of(reader.getDpsInitsMutable(), [&](OpOperand &out) { return mapOf(out).isPermutation(); }))
    return {};
  // The result is added to: it must stay what it is.
  Type element = getElementTypeOrSelf(reader.getResult(0));
  bool allowed = ProductResults::of(op)->accumulate ? element == getElementTypeOrSelf(result)
                                                    : element.isF32() || element.isBF16() || element.isF16();
  return allowed ? loops : AffineMap();
}

Operation *EpilogueFuser::fuseElementwise(Operation *op) {
  if (!isFresh(op))
    return nullptr;
  for (Operation *user : findReaders(op)) {
    linalg::GenericOp reader = detail::getElementwise(user);
    AffineMap loops = reader ? findLoops(op, reader) : AffineMap();
    if (!loops || detail::readsTooMuch(op, reader, loops, op->getResult(0)))
      continue;
    if (Operation *place = detail::findMeetingPoint(rewriter, op, reader))
      return apply(op, reader, loops, place);
  }
  return nullptr;
}

Operation *EpilogueFuser::apply(Operation *op, linalg::GenericOp reader, AffineMap loops, Operation *place) {
  Value result = op->getResult(0);
  unsigned oldExtras = ElementRegion::of(op)->numExtras();
  bool isStored = !llvm::all_of(result.getUsers(), [&](Operation *user) { return user == reader; });
  detail::RegionFuser fuser(rewriter, op);
  Value before = fuser.getElement();
  DenseMap<Value, Value> known{{result, before}};
  for (unsigned i = 0; i < oldExtras; ++i)
    known[op->getResult(1 + i)] = fuser.getExtra(i);
  IRMapping mapping = fuser.inlineCode(reader, loops, known, /*atEnd=*/true);
  SmallVector<Value> yielded = llvm::map_to_vector(reader.getBody()->getTerminator()->getOperands(),
                                                   [&](Value v) { return mapping.lookupOrDefault(v); });
  fuser.setElement(yielded[0]);
  for (unsigned i = 1; i < yielded.size(); ++i)
    fuser.addExtra(yielded[i], reader.getMatchingIndexingMap(reader.getDpsInitOperand(i)).compose(loops),
                   reader.getDpsInits()[i]);
  Value init = ElementRegion::of(op)->outs.front();
  if (isStored)
    fuser.addExtra(before, identityOf(op), init);
  Operation *fused =
      fuser.rebuild(place, ProductResults::of(op)->accumulate ? init : reader.getDpsInits().front());

  ResultRange results = fused->getResults();
  rewriter.replaceAllUsesWith(reader->getResults().take_front(), results.take_front());
  rewriter.replaceAllUsesWith(op->getResults().drop_front(), results.slice(1, oldExtras));
  rewriter.replaceAllUsesWith(reader->getResults().drop_front(),
                              results.slice(1 + oldExtras, yielded.size() - 1));
  rewriter.eraseOp(reader);
  if (isStored)
    rewriter.replaceAllUsesWith(result, results.back());
  rewriter.eraseOp(op);
  return fused;
}

/// Sums over the result, and over what was stored on the way to it.
Operation *EpilogueFuser::fuseSums(Operation *op) {
  for (unsigned i = 0; i <= ElementRegion::of(op)->numExtras();) {
    ElementRegion region = *ElementRegion::of(op);
    unsigned number = i == 0 ? 0 : region.firstExtra() + i - 1;
    AffineMap map = i == 0 ? identityOf(op) : region.extraMaps()[i - 1];
    Operation *fused =
        isSummed(map)
            ? op
            : detail::fuseSums(rewriter, op, op->getResult(number), map, [&](detail::RegionFuser &fuser) {
                return i == 0 ? fuser.getElement() : fuser.getExtra(i - 1);
              });
    i = fused == op ? i + 1 : i;
    op = fused;
  }
  return op;
}

/// Whether a quantize or an amax without code of its own reads all of `value` in its block.
static bool isCast(Value value) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (user->getBlock() != value.getParentBlock() || user->hasAttr("block"))
      return false;
    auto quantize = dyn_cast<QuantizeOp>(user);
    auto amax = dyn_cast<AmaxOp>(user);
    return (quantize && quantize.getProducer().empty() && !quantize.getTransposition()) ||
           (amax && amax.getProducer().empty());
  });
}

/// A result that is stored on the way may be the one that is cast, or the only one that is read:
/// then it is the first result, and the amax its own. Returns what `op` has become.
Operation *EpilogueFuser::bringReadFirst(Operation *op) {
  ElementRegion region = *ElementRegion::of(op);
  Value first = op->getResult(0);
  if (!isFresh(op) || ProductResults::of(op)->accumulate || isCast(first))
    return op;
  for (auto [i, map] : llvm::enumerate(region.extraMaps())) {
    Type element = getElementTypeOrSelf(region.extras()[i]);
    bool canBeFirst = element.isF32() || element.isBF16() || element.isF16();
    Value stored = op->getResult(1 + i);
    bool isRead = isCast(stored) || (first.use_empty() && !stored.use_empty());
    if (map != identityOf(op) || !canBeFirst || !isRead)
      continue;
    detail::RegionFuser fuser(rewriter, op);
    Value out = fuser.exchangeFirst(i);
    Operation *exchanged = fuser.rebuild(op, out);
    SmallVector<Value> results(exchanged->getResults());
    std::swap(results.front(), results[1 + i]);
    rewriter.replaceOp(op, results);
    return exchanged;
  }
  return op;
}

/// The first quantize of the result whose scale is known in time gives the product an FP8 result.
bool EpilogueFuser::fuseQuantize(Operation *op) {
  if (!isFresh(op) || ProductResults::of(op)->accumulate)
    return false;
  for (Operation *user : findReaders(op)) {
    auto quantize = dyn_cast<QuantizeOp>(user);
    if (!quantize || !quantize.getProducer().empty() || quantize.getBlockAttr() ||
        quantize.getTransposition())
      continue;
    if (Operation *place = detail::findMeetingPoint(rewriter, op, quantize)) {
      apply(op, quantize, place);
      return true;
    }
  }
  return false;
}

void EpilogueFuser::apply(Operation *op, QuantizeOp reader, Operation *place) {
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
      rebuildProduct(rewriter, op, fuser.getInputs(), reader.getScale(), /*recordAmax=*/false, outs, maps);

  ResultRange results = fused->getResults();
  rewriter.replaceAllUsesWith(reader->getResults(), results.take_front(reader->getNumResults()));
  rewriter.replaceAllUsesWith(op->getResults().drop_front(), results.slice(3, oldExtras));
  rewriter.eraseOp(reader);
  if (isStored)
    rewriter.replaceAllUsesWith(op->getResult(0), results.back());
  rewriter.eraseOp(op);
}

/// The amax of the result is taken while it is written.
void EpilogueFuser::fuseAmax(Operation *op) {
  for (Operation *user : findReaders(op)) {
    auto amax = dyn_cast<AmaxOp>(user);
    if (!amax || !amax.getProducer().empty() || amax.getBlockAttr())
      continue;
    if (Operation *place = detail::findMeetingPoint(rewriter, op, amax))
      return apply(op, amax, place);
  }
}

void EpilogueFuser::apply(Operation *op, AmaxOp reader, Operation *place) {
  ElementRegion region = *ElementRegion::of(op);
  rewriter.setInsertionPoint(place);
  SmallVector<Value> outs(region.outs);
  outs.insert(outs.begin() + 1, reader.getOuts().front());
  ArrayAttr maps = region.maps.empty() ? ArrayAttr() : rewriter.getAffineMapArrayAttr(region.maps);
  Operation *fused =
      rebuildProduct(rewriter, op, region.inputs, /*outScale=*/Value(), /*recordAmax=*/true, outs, maps);
  ResultRange results = fused->getResults();
  rewriter.replaceAllUsesWith(reader->getResults(), results.slice(1, 1));
  rewriter.eraseOp(reader);
  rewriter.replaceAllUsesWith(op->getResults().take_front(), results.take_front());
  rewriter.replaceAllUsesWith(op->getResults().drop_front(), results.drop_front(2));
  rewriter.eraseOp(op);
}

/// Products whose sums are f32.
bool hasEpilogue(Operation *op) {
  return ProductResults::of(op) && op->getNumResults() != 0 &&
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
} // namespace fp8
