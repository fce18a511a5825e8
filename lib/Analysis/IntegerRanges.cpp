// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Computes the range of a value from those of its operands. The range of an unknown value is that of
// its type.

#include "fp8/Analysis/IntegerRanges.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;
using namespace fp8;

/// Limits on the depth of the recursion and on the number of steps.
static constexpr unsigned kMaxDepth = 200;
static constexpr unsigned kMaxSteps = 10'000;

static ConstantIntRanges getFullRange(Value value) {
  return ConstantIntRanges::maxRange(ConstantIntRanges::getStorageBitwidth(value.getType()));
}

static bool isEmpty(const ConstantIntRanges &range) {
  return range.smin().sgt(range.smax()) || range.umin().ugt(range.umax());
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

IntegerRanges::IntegerRanges(Operation *at) {
  // From the outside in, because inner conditions may narrow values further.
  SmallVector<Operation *> chain{at};
  while (Operation *parent = chain.back()->getParentOp())
    chain.push_back(parent);
  auto body = at->getParentOfType<linalg::LinalgOp>();
  for (Operation *op : llvm::drop_begin(llvm::reverse(chain))) {
    if (auto branch = dyn_cast<scf::IfOp>(op->getParentOp()))
      assume(branch.getCondition(), op->getBlock() == branch.thenBlock());
    // All assertions in a linalg body hold for all elements before the operation runs. (For an
    // operation in a body, blocks outside of the body are not searched.)
    bool inBody = body && op->getParentOp() == body;
    if (inBody || op == at)
      for (auto assertion : op->getBlock()->getOps<cf::AssertOp>())
        if (inBody || assertion->isBeforeInBlock(op))
          assume(assertion.getArg(), true);
  }
}

arith::CmpIPredicate fp8::swapOperands(arith::CmpIPredicate predicate) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::slt:
    return P::sgt;
  case P::sle:
    return P::sge;
  case P::sgt:
    return P::slt;
  case P::sge:
    return P::sle;
  case P::ult:
    return P::ugt;
  case P::ule:
    return P::uge;
  case P::ugt:
    return P::ult;
  case P::uge:
    return P::ule;
  case P::eq:
  case P::ne:
    return predicate;
  }
  llvm_unreachable("all predicates are above");
}

/// Returns the range of values that satisfy `predicate` for some value of `bound`; the full range if
/// there is none, because then the code never runs.
static ConstantIntRanges getSatisfying(arith::CmpIPredicate predicate, const ConstantIntRanges &bound) {
  using P = arith::CmpIPredicate;
  unsigned width = bound.smin().getBitWidth();
  APInt least = APInt::getSignedMinValue(width), most = APInt::getSignedMaxValue(width), zero(width, 0),
        all = APInt::getMaxValue(width);
  ConstantIntRanges any = ConstantIntRanges::maxRange(width);
  switch (predicate) {
  case P::eq:
    return bound;
  case P::ne:
    return any;
  case P::slt:
    return bound.smax() == least ? any : ConstantIntRanges::fromSigned(least, bound.smax() - 1);
  case P::sle:
    return ConstantIntRanges::fromSigned(least, bound.smax());
  case P::sgt:
    return bound.smin() == most ? any : ConstantIntRanges::fromSigned(bound.smin() + 1, most);
  case P::sge:
    return ConstantIntRanges::fromSigned(bound.smin(), most);
  case P::ult:
    return bound.umax() == zero ? any : ConstantIntRanges::fromUnsigned(zero, bound.umax() - 1);
  case P::ule:
    return ConstantIntRanges::fromUnsigned(zero, bound.umax());
  case P::ugt:
    return bound.umin() == all ? any : ConstantIntRanges::fromUnsigned(bound.umin() + 1, all);
  case P::uge:
    return ConstantIntRanges::fromUnsigned(bound.umin(), all);
  }
  llvm_unreachable("all predicates are above");
}

void IntegerRanges::assume(arith::CmpIPredicate predicate, Value value, Value bound) {
  ConstantIntRanges narrowed = get(value).intersection(getSatisfying(predicate, get(bound)));
  if (isEmpty(narrowed))
    return;
  assumed.insert_or_assign(value, narrowed);
  known.clear(); // known ranges may depend on this value
}

void IntegerRanges::assume(Value condition, bool holds) {
  Operation *op = condition.getDefiningOp();
  if (isa_and_nonnull<arith::AndIOp>(op) ? holds : isa_and_nonnull<arith::OrIOp>(op) && !holds) {
    assume(op->getOperand(0), holds);
    assume(op->getOperand(1), holds);
  }
  auto comparison = dyn_cast_or_null<arith::CmpIOp>(op);
  if (!comparison)
    return;
  arith::CmpIPredicate predicate = comparison.getPredicate();
  predicate = holds ? predicate : arith::invertPredicate(predicate);
  assume(predicate, comparison.getLhs(), comparison.getRhs());
  assume(swapOperands(predicate), comparison.getRhs(), comparison.getLhs());
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

ConstantIntRanges IntegerRanges::get(OpFoldResult value) {
  if (auto attribute = dyn_cast<Attribute>(value))
    return ConstantIntRanges::constant(cast<IntegerAttr>(attribute).getValue());
  return get(cast<Value>(value));
}

ConstantIntRanges IntegerRanges::get(Value value) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  if (depth == kMaxDepth || steps == kMaxSteps)
    return getFullRange(value);
  ++depth;
  ++steps;
  ConstantIntRanges range = compute(value);
  --depth;
  if (auto found = assumed.find(value); found != assumed.end())
    if (ConstantIntRanges both = range.intersection(found->second); !isEmpty(both))
      range = both;
  known.insert_or_assign(value, range);
  return range;
}

ConstantIntRanges IntegerRanges::compute(Value value) {
  if (!getElementTypeOrSelf(value.getType()).isIntOrIndex())
    return getFullRange(value);
  if (auto argument = dyn_cast<BlockArgument>(value))
    return computeArgument(argument);
  return computeResult(cast<OpResult>(value));
}

ConstantIntRanges IntegerRanges::join(ValueRange values) {
  ConstantIntRanges range = get(values.front());
  for (Value value : values.drop_front())
    range = range.rangeUnion(get(value));
  return range;
}

ConstantIntRanges IntegerRanges::computeResult(OpResult result) {
  Operation *op = result.getOwner();
  unsigned number = result.getResultNumber();
  if (auto inferable = dyn_cast<InferIntRangeInterface>(op)) {
    SmallVector<ConstantIntRanges> operands;
    for (Value operand : op->getOperands())
      operands.push_back(get(operand));
    ConstantIntRanges range = getFullRange(result);
    inferable.inferResultRanges(operands, [&](Value value, const ConstantIntRanges &found) {
      if (value == result)
        range = found;
    });
    return range;
  }
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return computeElements(linalgOp, number);
  if (auto index = dyn_cast<linalg::IndexOp>(op)) {
    auto parent = cast<linalg::LinalgOp>(op->getParentOp());
    int64_t size = parent.getStaticLoopRanges()[index.getDim()];
    APInt last(64, ShapedType::isDynamic(size) ? INT64_MAX : std::max<int64_t>(size, 1) - 1);
    return ConstantIntRanges::fromSigned(APInt(64, 0), last);
  }
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return join({branch.thenYield().getOperand(number), branch.elseYield().getOperand(number)});
  if (auto extract = dyn_cast<tensor::ExtractOp>(op))
    return get(extract.getTensor());
  if (isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::ReshapeOp,
          tensor::ExtractSliceOp, tensor::SplatOp>(op))
    return get(op->getOperand(0));
  if (isa<tensor::InsertSliceOp, tensor::InsertOp>(op))
    return join(op->getOperands().take_front(2));
  if (isa<tensor::FromElementsOp, tensor::ConcatOp>(op) && op->getNumOperands() != 0)
    return join(op->getOperands());
  return getFullRange(result);
}

ConstantIntRanges IntegerRanges::computeArgument(BlockArgument argument) {
  Operation *parent = argument.getOwner()->getParentOp();
  // An accumulator has no known range, except the one that computeElements() assumes.
  if (auto op = dyn_cast<linalg::LinalgOp>(parent))
    if (OpOperand *operand = op.getMatchingOpOperand(argument); !op.isDpsInit(operand))
      return get(operand->get());
  if (auto loop = dyn_cast<LoopLikeOpInterface>(parent))
    if (std::optional<ConstantIntRanges> range = computeLoopIndex(loop, argument))
      return *range;
  return getFullRange(argument);
}

/// Returns the range of an induction variable: from the lower bound to below the upper bound.
std::optional<ConstantIntRanges> IntegerRanges::computeLoopIndex(LoopLikeOpInterface loop,
                                                                 BlockArgument argument) {
  if (auto loopOp = dyn_cast<scf::ForOp>(loop.getOperation()); loopOp && loopOp.getUnsignedCmp())
    return std::nullopt;
  std::optional<SmallVector<Value>> indices = loop.getLoopInductionVars();
  std::optional<SmallVector<OpFoldResult>> lower = loop.getLoopLowerBounds(),
                                           upper = loop.getLoopUpperBounds();
  if (!indices || !lower || !upper)
    return std::nullopt;
  for (auto [index, first, end] : llvm::zip_equal(*indices, *lower, *upper)) {
    APInt least = get(first).smin(), most = get(end).smax();
    if (index == argument && least.slt(most))
      return ConstantIntRanges::fromSigned(least, most - 1);
  }
  return std::nullopt;
}

/// Returns the range of all elements of a linalg result: those that the body yields, and the initial
/// ones, which remain if a reduction is over no elements.
ConstantIntRanges IntegerRanges::computeElements(linalg::LinalgOp op, unsigned result) {
  OpOperand *init = op.getDpsInitOperand(result);
  BlockArgument soFar = op.getMatchingBlockArgument(init);
  Value yielded = op.getBlock()->getTerminator()->getOperand(result);
  if (soFar.use_empty() && op.getNumReductionLoops() == 0 && op.getMatchingIndexingMap(init).isPermutation())
    return get(yielded); // each element once
  // By induction, with two guesses of the range of the accumulator.
  ConstantIntRanges guess = get(init->get());
  llvm::scope_exit forget([&] {
    assumed.erase(soFar);
    known.clear();
  });
  for (int attempt = 0; attempt < 2; ++attempt) {
    assumed.insert_or_assign(soFar, guess);
    known.clear();
    ConstantIntRanges next = guess.rangeUnion(get(yielded));
    if (next == guess)
      return guess;
    guess = next;
  }
  return getFullRange(init->get());
}

//===----------------------------------------------------------------------===//
// Questions
//===----------------------------------------------------------------------===//

bool IntegerRanges::isInside(OpFoldResult index, OpFoldResult size) {
  ConstantIntRanges range = get(index);
  return range.smin().isNonNegative() && range.smax().slt(get(size).smin());
}

bool IntegerRanges::isInside(OpFoldResult first, OpFoldResult count, OpFoldResult stride, OpFoldResult size) {
  ConstantIntRanges start = get(first), length = get(count), step = get(stride);
  if (start.smin().isNegative() || length.smin().isNegative() || step.smin().isNegative())
    return false;
  // Compute the end of the last element in twice the width, so that nothing overflows.
  auto widen = [](const APInt &value) { return value.sext(2 * value.getBitWidth()); };
  APInt end = widen(start.smax()) + (widen(length.smax()) - 1) * widen(step.smax()) + 1;
  return end.sle(widen(get(size).smin()));
}
