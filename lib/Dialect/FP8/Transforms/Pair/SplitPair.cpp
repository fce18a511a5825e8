// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Splits a joined function into forward and backward. Forward values that backward reads are
// residuals, or backward recomputes them from residuals: the choice with the fewest bytes.

#include "fp8/Analysis/CheapestCut.h"
#include "fp8/Dialect/FP8/IR/CastParts.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "fp8/Dialect/FP8/Transforms/Pair.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_SPLITPAIR
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

//===----------------------------------------------------------------------===//
// Repeating in backward
//===----------------------------------------------------------------------===//

/// Whether backward may compute `op` again: movements, FP8 casts, and the amax and scale of a cast.
bool isRepeatable(Operation *op) {
  if (auto quantize = dyn_cast<QuantizeOp>(op))
    return quantize.getProducer().empty();
  if (auto quantize = dyn_cast<QuantizeBlocksOp>(op))
    return quantize.getProducer().empty();
  return isa<AmaxOp, ComputeScaleOp>(op) || isMovement(op);
}

/// Whether `value` is an amax that its cast records: forward does that, once.
bool isRecordedAmax(OpResult value) {
  auto quantize = dyn_cast<QuantizeOp>(value.getOwner());
  return quantize && quantize.getRecordAmax() && value == quantize->getResults().back();
}

/// The size that dynamic dimensions count as when residuals are chosen.
constexpr int64_t kNominalSize = 1024;

/// The cost of handing `value` over, in bytes; more than any other for a value that cannot be stored.
int64_t getCost(Value value) {
  Type type = value.getType();
  if (type.isIndex())
    return sizeof(int64_t);
  if (auto shaped = dyn_cast<RankedTensorType>(type); shaped && !shaped.hasStaticShape()) {
    SmallVector<int64_t> shape(shaped.getShape());
    llvm::replace(shape, ShapedType::kDynamic, kNominalSize);
    type = shaped.clone(shape);
  }
  return std::max<int64_t>(1, getStoredBytes(type).value_or(int64_t(1) << 60));
}

/// A copy of `op`; a quantize records nothing, and its amax has no copy.
SmallVector<Value> repeat(OpBuilder &builder, Operation *op, IRMapping &operands) {
  Operation *copy = builder.clone(*op, operands);
  auto quantize = dyn_cast<QuantizeOp>(copy);
  if (!quantize || !quantize.getRecordAmax())
    return SmallVector<Value>(copy->getResults());
  SmallVector<Value> outs(quantize.getOuts().drop_back());
  QuantizeParts parts(quantize, quantize.getInputs(), outs);
  parts.recordAmax = false;
  auto narrow = parts.create(builder, copy->getLoc());
  copy->erase();
  return SmallVector<Value>(narrow->getResults());
}

//===----------------------------------------------------------------------===//
// Splitting
//===----------------------------------------------------------------------===//

class Splitter {
public:
  explicit Splitter(JoinedPair &pair)
      : pair(pair), forward(pair.getFunction()), backward(pair.getBackward()), body(forward.front()),
        builder(forward.getContext()), numForwardResults(pair.getNumForwardResults()),
        updatesState(forward.getNumResults() > numForwardResults + backward.getNumResults()) {}

  void run();

private:
  void chooseResiduals();
  void moveBackward();
  void handOverResiduals();
  void markReturned(Value residual, unsigned result);
  void handOverState();
  void returnState(func::FuncOp function);
  void separate();
  void localize(Operation *op);
  Value materialize(Value value);

  JoinedPair &pair;
  func::FuncOp forward, backward;
  Block &body; ///< of both, later of forward alone
  OpBuilder builder;
  unsigned numForwardResults;
  bool updatesState;
  SmallVector<Value> residuals;
  IRMapping available; ///< values of forward, in backward
};

} // namespace

void Splitter::chooseResiduals() {
  llvm::SetVector<Value> needed;
  for (Operation *op = pair.getEndForward()->getNextNode(); op; op = op->getNextNode()) {
    ValueRange handed = op->getOperands();
    bool isEnd = op == body.getTerminator();
    for (Value value : isEnd ? SmallVector<Value>(handed.drop_front(numForwardResults)) : getReadValues(op))
      if (pair.isForward(value))
        needed.insert(value);
  }
  auto canRepeat = [&](OpResult value) {
    return value.getOwner()->getBlock() == &body && isRepeatable(value.getOwner()) && !isRecordedAmax(value);
  };
  residuals = findCheapestCut(needed.getArrayRef(), canRepeat, getCost);
  // Arguments first, then in program order.
  llvm::sort(residuals, [](Value a, Value b) {
    auto first = dyn_cast<BlockArgument>(a), second = dyn_cast<BlockArgument>(b);
    if (first || second)
      return first && (!second || first.getArgNumber() < second.getArgNumber());
    auto one = cast<OpResult>(a), other = cast<OpResult>(b);
    return one.getOwner() == other.getOwner() ? one.getResultNumber() < other.getResultNumber()
                                              : one.getOwner()->isBeforeInBlock(other.getOwner());
  });
}

/// Gives backward its body, with the user's arguments and results as they were.
void Splitter::moveBackward() {
  Block *entry = &backward.front();
  while (!entry->empty()) // it returned poison
    entry->back().erase();
  llvm::BitVector old(backward.getNumArguments());
  for (unsigned i = 0; i < backward.getNumArguments(); ++i)
    old[i] = bool(backward.getArgAttr(i, kResidualAttrName));
  (void)backward.eraseArguments(old);
  for (auto [own, handed] : llvm::zip(backward.getArguments(), pair.getEndForward().getResults()))
    handed.replaceAllUsesWith(own);

  Operation *end = body.getTerminator();
  entry->getOperations().splice(entry->end(), body.getOperations(),
                                std::next(pair.getEndForward()->getIterator()), end->getIterator());
  builder.setInsertionPointToEnd(entry);
  func::ReturnOp::create(builder, end->getLoc(), end->getOperands().drop_front(numForwardResults));
  end->eraseOperands(numForwardResults, end->getNumOperands() - numForwardResults);
  llvm::BitVector results(forward.getNumResults());
  results.set(numForwardResults, forward.getNumResults());
  (void)forward.eraseResults(results);
}

/// Marks a residual that is an unchanged argument: it needs no copy if nothing is computed in its memory.
void Splitter::markReturned(Value residual, unsigned result) {
  auto argument = dyn_cast<BlockArgument>(residual);
  if (!argument || !isa<RankedTensorType>(argument.getType()))
    return;
  unsigned i = argument.getArgNumber();
  if (!forward.getArgAttr(i, kCarriedAttrName) && !forward.getArgAttr(i, kStateAttrName))
    forward.setArgAttr(i, kReturnedAttrName, builder.getI32IntegerAttr(result));
}

/// Residuals are the last results of forward and the first arguments of backward. Sizes
/// cross as i64.
void Splitter::handOverResiduals() {
  DictionaryAttr mark =
      builder.getDictionaryAttr(builder.getNamedAttr(kResidualAttrName, builder.getUnitAttr()));
  Operation *end = body.getTerminator();
  for (auto [i, value] : llvm::enumerate(residuals)) {
    bool isSize = value.getType().isIndex();
    builder.setInsertionPoint(end);
    markReturned(value, numForwardResults + i);
    Value given =
        isSize ? arith::IndexCastOp::create(builder, value.getLoc(), builder.getI64Type(), value) : value;
    (void)forward.insertResult(numForwardResults + i, given.getType(), mark);
    end->insertOperands(numForwardResults + i, given);
    (void)backward.insertArgument(i, given.getType(), mark, value.getLoc());
    Value taken = backward.getArgument(i);
    builder.setInsertionPointToStart(&backward.front());
    if (isSize)
      taken = arith::IndexCastOp::create(builder, value.getLoc(), value.getType(), taken);
    available.map(value, taken);
  }
}

/// The state is the last arguments of both and, where it is updated, the last results.
void Splitter::handOverState() {
  EndForwardOp marker = pair.getEndForward();
  unsigned count = marker->getNumResults() - pair.getNumBackwardArguments();
  for (auto [argument, handed] :
       llvm::zip_equal(forward.getArguments().take_back(count), marker.getResults().take_back(count))) {
    Attribute name = forward.getArgAttr(argument.getArgNumber(), kStateAttrName);
    DictionaryAttr attrs = builder.getDictionaryAttr(builder.getNamedAttr(kStateAttrName, name));
    (void)backward.insertArgument(backward.getNumArguments(), handed.getType(), attrs, argument.getLoc());
    handed.replaceAllUsesWith(backward.getArguments().back());
  }
  if (updatesState) {
    Operation *end = body.getTerminator();
    end->insertOperands(end->getNumOperands(), marker.getGiven().take_back(count));
    returnState(forward);
    returnState(backward);
  }
  forward->setAttr(kBackwardAttrName, FlatSymbolRefAttr::get(backward));
  marker.erase();
}

/// Declares the state among the results of `function`.
void Splitter::returnState(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments()) {
    unsigned i = argument.getArgNumber();
    Attribute name = function.getArgAttr(i, kStateAttrName);
    if (!name)
      continue;
    function.setArgAttr(i, kCarriedAttrName, builder.getI32IntegerAttr(function.getNumResults()));
    (void)function.insertResult(function.getNumResults(), argument.getType(),
                                builder.getDictionaryAttr(builder.getNamedAttr(kStateAttrName, name)));
  }
}

/// Returns `value` of forward in backward: the residual, or a recomputation where the builder stands.
Value Splitter::materialize(Value value) {
  if (value.getParentBlock() != &body || available.contains(value))
    return available.lookupOrDefault(value);
  Operation *op = value.getDefiningOp();
  IRMapping operands;
  for (Value read : getReadValues(op))
    operands.map(read, materialize(read));
  for (auto [result, copy] : llvm::zip(op->getResults(), repeat(builder, op, operands)))
    if (!available.contains(result)) // some may be residuals
      available.map(result, copy);
  return available.lookup(value);
}

/// Makes `op` of backward read only values of backward.
void Splitter::localize(Operation *op) {
  builder.setInsertionPoint(op);
  op->walk([&](Operation *inner) {
    for (OpOperand &operand : inner->getOpOperands())
      if (operand.get().getParentBlock() == &body)
        operand.set(materialize(operand.get()));
  });
}

void Splitter::separate() {
  SmallVector<Operation *> ops = llvm::map_to_vector(backward.front(), [](Operation &op) { return &op; });
  for (Operation *op : ops)
    localize(op);
  // Forward needs no operation that only backward read, or operations repeated there.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isRepeatable(&op) && isOpTriviallyDead(&op))
      op.erase();
}

void Splitter::run() {
  chooseResiduals();
  moveBackward();
  handOverResiduals();
  handOverState();
  separate();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

class SplitPair : public impl::SplitPairBase<SplitPair> {
public:
  void runOnOperation() final {
    if (failed(verifyJoinedPairs(getOperation())))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (std::optional<JoinedPair> pair = JoinedPair::find(function))
        Splitter(*pair).run();
  }
};

} // namespace
} // namespace fp8
