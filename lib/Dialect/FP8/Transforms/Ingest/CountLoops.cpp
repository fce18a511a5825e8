// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns an scf.while that counts into an scf.for. JAX's counters are tensors of one element, compared
// and increased by linalg operations: upstream's upliftWhileToForLoop() does not see through these.

#include "OneElement.h"
#include "fp8/Analysis/IntegerRanges.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace fp8 {
#define GEN_PASS_DEF_COUNTLOOPS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

namespace {
/// A loop over `counter` = first, first + step, … while it is below `end` (up to it, if `inclusive`).
struct Count {
  unsigned counter;       ///< number of the value that the loop carries
  Value first, end, step; ///< integers or tensors of one, known before the loop
  bool inclusive = false, isUnsigned = false;
};

class CountMatcher {
public:
  explicit CountMatcher(scf::WhileOp loop) : loop(loop) {}
  std::optional<Count> match();

private:
  bool handsOnArguments();
  Value find(Value value);
  bool isKnownBefore(Value value) {
    return value && value.getParentRegion()->isProperAncestor(&loop.getBefore());
  }
  std::optional<Count> matchComparison(arith::CmpIPredicate predicate, Value counter, Value bound);
  Value matchStep(unsigned counter);
  bool stopsBeforeWrapping(Count &count);

  scf::WhileOp loop;
};
} // namespace

/// Whether the first half of the loop has no effect and computes nothing for the second.
bool CountMatcher::handsOnArguments() {
  Block *before = loop.getBeforeBody();
  return llvm::all_of(before->without_terminator(), [](Operation &op) { return isPure(&op); }) &&
         llvm::all_of(loop.getConditionOp().getArgs(), [&](Value value) {
           return isKnownBefore(value) || (isa<BlockArgument>(value) && value.getParentBlock() == before);
         });
}

/// Returns a value that equals `value`: one known before the loop, an argument of the first half, or
/// the result of the operation that computes it.
Value CountMatcher::find(Value value) {
  while (!isKnownBefore(value)) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (argument && argument.getOwner() == loop.getAfterBody()) {
      value = loop.getConditionOp().getArgs()[argument.getArgNumber()];
    } else if (argument && argument.getOwner() == loop.getBeforeBody()) {
      unsigned number = argument.getArgNumber();
      auto next = dyn_cast<BlockArgument>(loop.getYieldOp().getOperand(number));
      bool isInvariant = next && next.getOwner() == loop.getAfterBody() &&
                         loop.getConditionOp().getArgs()[next.getArgNumber()] == argument;
      if (!isInvariant)
        return value;
      value = loop.getInits()[number];
    } else if (Value source = getElementSource(value)) {
      value = source;
    } else {
      return value;
    }
  }
  return value;
}

std::optional<Count> CountMatcher::matchComparison(arith::CmpIPredicate predicate, Value counter,
                                                   Value bound) {
  using P = arith::CmpIPredicate;
  auto argument = dyn_cast<BlockArgument>(counter);
  if (!argument || argument.getOwner() != loop.getBeforeBody() || !isKnownBefore(bound))
    return std::nullopt;
  Value first = loop.getInits()[argument.getArgNumber()];
  Count count{argument.getArgNumber(), first, bound, matchStep(argument.getArgNumber())};
  if (!holdsOneInteger(first.getType()) || !holdsOneInteger(bound.getType()) || !isKnownBefore(count.step))
    return std::nullopt;
  count.inclusive = predicate == P::sle || predicate == P::ule;
  count.isUnsigned = predicate == P::ult || predicate == P::ule;
  IntegerRanges ranges(loop);
  if (count.isUnsigned && !ranges.get(first).smin().isNegative() && !ranges.get(bound).smin().isNegative())
    count.isUnsigned = false;
  bool isBelow = predicate == P::slt || predicate == P::sle || predicate == P::ult || predicate == P::ule;
  bool meetsEnd = predicate == P::ne &&
                  ranges.get(count.step) ==
                      ConstantIntRanges::constant(APInt(ranges.get(count.step).smin().getBitWidth(), 1)) &&
                  ranges.get(first).smax().sle(ranges.get(bound).smin());
  return isBelow || meetsEnd ? std::optional(count) : std::nullopt;
}

/// Returns the value that every iteration adds to the counter; null if the next value is no such sum.
Value CountMatcher::matchStep(unsigned counter) {
  Value next = find(loop.getYieldOp().getOperand(counter)), argument = loop.getBeforeArguments()[counter];
  auto add = next.getDefiningOp<arith::AddIOp>();
  if (!add)
    return Value();
  Value left = find(add.getLhs()), right = find(add.getRhs());
  if (left != argument)
    std::swap(left, right);
  return left == argument && isKnownBefore(right) && holdsOneInteger(right.getType()) ? right : Value();
}

/// Returns whether the counter reaches its last value without wrapping around: the step is positive, and
/// the last value fits into the counter's type.
bool CountMatcher::stopsBeforeWrapping(Count &count) {
  IntegerRanges ranges(loop);
  ConstantIntRanges step = ranges.get(count.step), end = ranges.get(count.end);
  unsigned width = step.smin().getBitWidth();
  if (!step.smin().isStrictlyPositive())
    return false;
  if (count.isUnsigned && width == 64) // an index is signed
    return false;
  // An upper bound of the counter's last value, in a width that does not wrap.
  auto widen = [&](const APInt &value) {
    return count.isUnsigned ? value.zext(2 * width) : value.sext(2 * width);
  };
  APInt last = widen(count.isUnsigned ? end.umax() : end.smax()) + widen(step.smax());
  if (!count.inclusive)
    --last;
  return last.sle(widen(count.isUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width)));
}

std::optional<Count> CountMatcher::match() {
  if (!handsOnArguments())
    return std::nullopt;
  auto compare = find(loop.getConditionOp().getCondition()).getDefiningOp<arith::CmpIOp>();
  if (!compare || isKnownBefore(compare))
    return std::nullopt;
  Value left = find(compare.getLhs()), right = find(compare.getRhs());
  std::optional<Count> count = matchComparison(compare.getPredicate(), left, right);
  if (!count)
    count = matchComparison(swapOperands(compare.getPredicate()), right, left);
  return count && stopsBeforeWrapping(*count) ? count : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

namespace {
class LoopCounter {
public:
  LoopCounter(RewriterBase &rewriter, scf::WhileOp loop, const Count &count)
      : rewriter(rewriter), loop(loop), count(count) {}
  scf::ForOp rewrite();

private:
  Value getIndex(Value value);
  Value getCounter(Value index, Type type);
  bool isCarried(unsigned number);

  RewriterBase &rewriter;
  scf::WhileOp loop;
  const Count &count;
};
} // namespace

/// Converts an integer that is known before the loop to an index, at the insertion point.
Value LoopCounter::getIndex(Value value) {
  Location loc = loop.getLoc();
  value = extractOne(rewriter, loc, value);
  if (value.getType().isIndex())
    return value;
  if (count.isUnsigned)
    return rewriter.createOrFold<arith::IndexCastUIOp>(loc, rewriter.getIndexType(), value);
  return rewriter.createOrFold<arith::IndexCastOp>(loc, rewriter.getIndexType(), value);
}

/// Converts the index of the loop to the counter's type in the program.
Value LoopCounter::getCounter(Value index, Type type) {
  Location loc = loop.getLoc();
  Type element = getElementTypeOrSelf(type);
  if (!element.isIndex())
    index = count.isUnsigned ? arith::IndexCastUIOp::create(rewriter, loc, element, index).getResult()
                             : arith::IndexCastOp::create(rewriter, loc, element, index).getResult();
  return isa<TensorType>(type) ? tensor::FromElementsOp::create(rewriter, loc, type, index) : index;
}

/// Returns whether the new loop carries value `number`: of the counter only if its last value is read after
/// the loop.
bool LoopCounter::isCarried(unsigned number) {
  Value argument = loop.getBeforeArguments()[number];
  return number != count.counter ||
         llvm::any_of(llvm::zip(loop.getConditionOp().getArgs(), loop.getResults()), [&](auto pair) {
           return std::get<0>(pair) == argument && !std::get<1>(pair).use_empty();
         });
}

scf::ForOp LoopCounter::rewrite() {
  Location loc = loop.getLoc();
  rewriter.setInsertionPoint(loop);
  Value first = getIndex(count.first), end = getIndex(count.end), step = getIndex(count.step);
  if (count.inclusive)
    end = rewriter.createOrFold<arith::AddIOp>(loc, end, arith::ConstantIndexOp::create(rewriter, loc, 1));
  SmallVector<unsigned> carried;
  SmallVector<Value> inits;
  for (unsigned number = 0; number < loop.getInits().size(); ++number)
    if (isCarried(number)) {
      carried.push_back(number);
      inits.push_back(loop.getInits()[number]);
    }
  auto counted = scf::ForOp::create(rewriter, loc, first, end, step, inits,
                                    [](OpBuilder &, Location, Value, ValueRange) {});
  counted->setDiscardableAttrs(loop->getDiscardableAttrDictionary());

  rewriter.setInsertionPointToStart(counted.getBody());
  SmallVector<Value> inBody(loop.getInits().size()), afterLoop(loop.getInits().size());
  for (auto [place, number] : llvm::enumerate(carried)) {
    inBody[number] = counted.getRegionIterArg(place);
    afterLoop[number] = counted.getResult(place);
  }
  inBody[count.counter] =
      getCounter(counted.getInductionVar(), loop.getBeforeArguments()[count.counter].getType());

  // Values that the first half passes on are its arguments or known before the loop.
  SmallVector<Value> arguments, results;
  for (Value value : loop.getConditionOp().getArgs()) {
    auto argument = dyn_cast<BlockArgument>(value);
    bool isOwn = argument && argument.getOwner() == loop.getBeforeBody();
    arguments.push_back(isOwn ? inBody[argument.getArgNumber()] : value);
    results.push_back(isOwn ? afterLoop[argument.getArgNumber()] : value);
  }
  SmallVector<Value> next;
  for (unsigned number : carried)
    next.push_back(loop.getYieldOp().getOperand(number));
  rewriter.setInsertionPoint(loop.getYieldOp());
  rewriter.replaceOpWithNewOp<scf::YieldOp>(loop.getYieldOp(), next);
  rewriter.inlineBlockBefore(loop.getAfterBody(), counted.getBody(), counted.getBody()->end(), arguments);
  for (auto [old, result] : llvm::zip_equal(loop.getResults(), results))
    if (result)
      rewriter.replaceAllUsesWith(old, result);
  rewriter.eraseOp(loop);
  return counted;
}

/// Computes integers without tensors that the body of `loop` extracts from tensors of one element.
static void computeAsIntegers(RewriterBase &rewriter, scf::ForOp loop) {
  SmallVector<tensor::ExtractOp> reads;
  loop.getBody()->walk([&](tensor::ExtractOp op) {
    if (holdsOneInteger(op.getTensor().getType()))
      reads.push_back(op);
  });
  for (tensor::ExtractOp op : reads) {
    rewriter.setInsertionPoint(op);
    if (Value element = cloneElement(rewriter, op.getTensor()))
      rewriter.replaceOp(op, element);
  }
}

namespace {

struct CountLoops : fp8::impl::CountLoopsBase<CountLoops> {
  void runOnOperation() final {
    SmallVector<scf::WhileOp> loops; // inner ones first
    getOperation()->walk([&](scf::WhileOp loop) { loops.push_back(loop); });
    IRRewriter rewriter(&getContext());
    for (scf::WhileOp loop : loops)
      if (std::optional<Count> count = CountMatcher(loop).match())
        computeAsIntegers(rewriter, LoopCounter(rewriter, loop, *count).rewrite());
  }
};

} // namespace
