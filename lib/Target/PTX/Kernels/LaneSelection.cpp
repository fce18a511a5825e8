// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions that select one of all elements by comparisons, such as the greatest value and its place.
//
// An iteration keeps what it has, or takes its element. The decisions are computed for every way in which two
// elements can compare: less, equal, greater, one of them or both NaN. They are a selection if some order of
// all elements gives the same decisions; only of equal ones the first or the last may be wanted, or the
// one with the lower or higher place. Lanes then start with the initial values, also carry the iteration of
// what they keep, and in the end decide between two elements as if the earlier iteration had come first.

#include "LaneReduction.h"
#include "LaneTeam.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace fp8;

/// Operations of decisions to compute, beyond which they count as too complex: those of jax.numpy.argmax are
/// 200 for all ways to compare.
static constexpr unsigned kMostSteps = 5000;

namespace {
/// How two numbers compare.
enum class Order { Less, Equal, Greater, NaN };

/// How what is kept and an element compare; NaN is told apart by which of them is one.
struct Case {
  Order values;
  bool isKeptNaN = false, isNextNaN = false;
  Order places = Order::Less;
};

/// One selected number: kept if `decision` is `keptIf`, else `next` is taken.
struct Choice {
  Value before, next, decision, after;
  bool keptIf;
};

/// The one of several equal elements that a selection takes.
enum class Tie { First, Last, LowerPlace, HigherPlace };
} // namespace

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

namespace {
/// Computes the decisions of a choice for a case.
class Decider {
public:
  explicit Decider(const Choice &value) : value(value) {}
  /// Decisions are about this place from now on; null stands for none.
  void setPlace(const Choice *of) { place = of, arePlacesSigned.reset(); }
  /// Returns the value of a condition; nothing if it is more than comparisons of the choices.
  std::optional<bool> decide(Value condition, const Case &of);
  /// Returns whether what is kept stays; nothing as in decide().
  std::optional<bool> isKept(const Choice &choice, const Case &of) {
    std::optional<bool> decision = decide(choice.decision, of);
    return decision ? std::optional(*decision == choice.keptIf) : std::nullopt;
  }
  /// The operations of all decisions that were asked for.
  llvm::SmallPtrSet<Operation *, 16> operations;

private:
  std::optional<Order> compare(Value lhs, Value rhs, const Case &of) const;
  bool hasOneSign(arith::CmpIOp op);

  const Choice &value;
  const Choice *place = nullptr;
  std::optional<bool> areValuesSigned, arePlacesSigned;
  unsigned steps = 0;
};
} // namespace

static Order reverse(Order order) {
  return order == Order::Less ? Order::Greater : order == Order::Greater ? Order::Less : order;
}

/// Returns how both sides of a comparison compare.
std::optional<Order> Decider::compare(Value lhs, Value rhs, const Case &of) const {
  auto isOf = [](const Choice &choice, Value side) { return side == choice.before || side == choice.next; };
  if (isOf(value, lhs) && isOf(value, rhs)) {
    if (lhs == rhs)
      return (lhs == value.before ? of.isKeptNaN : of.isNextNaN) ? Order::NaN : Order::Equal;
    return lhs == value.before ? of.values : reverse(of.values);
  }
  if (place && isOf(*place, lhs) && isOf(*place, rhs)) {
    if (lhs == rhs)
      return Order::Equal;
    return lhs == place->before ? of.places : reverse(of.places);
  }
  return std::nullopt;
}

/// Returns whether all comparisons of the same numbers take them as signed, or as unsigned.
bool Decider::hasOneSign(arith::CmpIOp op) {
  using arith::CmpIPredicate;
  if (llvm::is_contained({CmpIPredicate::eq, CmpIPredicate::ne}, op.getPredicate()))
    return true;
  bool isSigned = llvm::is_contained(
      {CmpIPredicate::slt, CmpIPredicate::sle, CmpIPredicate::sgt, CmpIPredicate::sge}, op.getPredicate());
  bool ofValues = op.getLhs() == value.before || op.getLhs() == value.next;
  std::optional<bool> &known = ofValues ? areValuesSigned : arePlacesSigned;
  if (!known)
    known = isSigned;
  return *known == isSigned;
}

static bool holds(arith::CmpFPredicate predicate, Order order) {
  APFloat one(1.0), two(2.0);
  APFloat lhs = order == Order::NaN       ? APFloat::getNaN(one.getSemantics())
                : order == Order::Greater ? two
                                          : one;
  return arith::applyCmpPredicate(predicate, lhs, order == Order::Less ? two : one);
}

static bool holds(arith::CmpIPredicate predicate, Order order) {
  APInt one(8, 1), two(8, 2); // whatever sign the predicate has
  return arith::applyCmpPredicate(predicate, order == Order::Greater ? two : one,
                                  order == Order::Less ? two : one);
}

std::optional<bool> Decider::decide(Value condition, const Case &of) {
  if (++steps > kMostSteps)
    return std::nullopt;
  APInt constant;
  if (matchPattern(condition, m_ConstantInt(&constant)))
    return constant.getBoolValue();
  Operation *op = condition.getDefiningOp();
  if (!op)
    return std::nullopt;
  operations.insert(op);
  if (auto floats = dyn_cast<arith::CmpFOp>(op)) {
    std::optional<Order> order = compare(floats.getLhs(), floats.getRhs(), of);
    return order ? std::optional(holds(floats.getPredicate(), *order)) : std::nullopt;
  }
  if (auto integers = dyn_cast<arith::CmpIOp>(op)) {
    std::optional<Order> order = compare(integers.getLhs(), integers.getRhs(), of);
    if (!order || !hasOneSign(integers))
      return std::nullopt;
    return holds(integers.getPredicate(), *order);
  }
  if (!isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::SelectOp>(op) ||
      !condition.getType().isInteger(1))
    return std::nullopt;
  SmallVector<bool> operands;
  for (Value operand : op->getOperands()) {
    std::optional<bool> decision = decide(operand, of);
    if (!decision)
      return std::nullopt;
    operands.push_back(*decision);
  }
  if (isa<arith::SelectOp>(op))
    return operands[0] ? operands[1] : operands[2];
  return isa<arith::AndIOp>(op)  ? operands[0] && operands[1]
         : isa<arith::OrIOp>(op) ? operands[0] || operands[1]
                                 : operands[0] != operands[1];
}

//===----------------------------------------------------------------------===//
// Whether the decisions are a selection
//===----------------------------------------------------------------------===//

/// The ways in which two values can compare.
static SmallVector<Case> listCases(bool areFloats) {
  SmallVector<Case> cases{{Order::Less}, {Order::Greater}, {Order::Equal}};
  if (areFloats)
    cases.append({{Order::NaN, true, false}, {Order::NaN, false, true}, {Order::NaN, true, true}});
  return cases;
}

static bool isTie(const Case &of) { return of.values == Order::Equal || (of.isKeptNaN && of.isNextNaN); }

/// Returns whether `value` alone is a selection, of the greatest or least number. NaN may be beyond all
/// numbers, or before all of them, or stay if the initial value is NaN and else never be taken.
static bool isOrder(Decider &decider, const Choice &value, ArrayRef<Case> cases) {
  SmallVector<bool> kept;
  for (const Case &of : cases) {
    std::optional<bool> decision = decider.isKept(value, of);
    if (!decision)
      return false;
    kept.push_back(*decision);
  }
  bool areNumbersOrdered = kept[0] != kept[1];
  return areNumbersOrdered && (cases.size() == 3 || kept[3] || kept[4]);
}

/// Returns which of equal elements a choice takes; nothing if it depends on more.
static std::optional<Tie> findTie(Decider &decider, const Choice &choice, Case of, bool isPlace) {
  SmallVector<bool> kept;
  for (Order places : {Order::Less, Order::Equal, Order::Greater}) {
    of.places = places;
    std::optional<bool> decision = decider.isKept(choice, of);
    if (!decision)
      return std::nullopt;
    kept.push_back(*decision);
  }
  if (kept[0] != kept[2]) // equal places are the same either way
    return isPlace ? std::optional(kept[0] ? Tie::LowerPlace : Tie::HigherPlace) : std::nullopt;
  if (kept[0] != kept[1])
    return std::nullopt;
  return kept[0] ? Tie::First : Tie::Last;
}

/// Returns whether `place` belongs to what is selected of the values.
static bool follows(Decider &decider, const Choice &place, const Choice &value, ArrayRef<Case> cases) {
  for (const Case &of : cases) {
    if (isTie(of)) {
      std::optional<Tie> tie = findTie(decider, place, of, /*isPlace=*/true);
      // The first or last one can be told from the iteration of the value, if that is the same one.
      bool isSame = tie == findTie(decider, value, of, /*isPlace=*/false);
      if (!tie || (llvm::is_contained({Tie::First, Tie::Last}, *tie) && !isSame))
        return false;
      continue;
    }
    for (Order places : {Order::Less, Order::Equal, Order::Greater}) {
      Case with = of;
      with.places = places;
      if (decider.isKept(place, with) != decider.isKept(value, of))
        return false;
    }
  }
  return true;
}

/// Returns the choice that makes `after` of `before`.
static std::optional<Choice> findChoice(scf::ForOp loop, Value before, Value after) {
  auto select = after.getDefiningOp<arith::SelectOp>();
  if (!select || !isLaneType(after.getType()) || !select.getCondition().getType().isInteger(1))
    return std::nullopt;
  bool keptIf = select.getTrueValue() == before;
  Value next = keptIf ? select.getFalseValue() : select.getTrueValue();
  bool isElement = next.getDefiningOp()
                       ? next.getParentBlock() == loop.getBody() && !matchPattern(next, m_Constant())
                       : next == loop.getInductionVar();
  if ((!keptIf && select.getFalseValue() != before) || !isElement)
    return std::nullopt;
  return Choice{before, next, select.getCondition(), after, keptIf};
}

/// Returns whether the values before the iteration, and what is computed of them, decide and do nothing else.
static bool onlyDecide(scf::ForOp loop, ArrayRef<Choice> choices,
                       const llvm::SmallPtrSetImpl<Operation *> &decisions) {
  llvm::SmallPtrSet<Operation *, 16> dependent;
  auto isDependent = [&](Value operand) {
    return dependent.contains(operand.getDefiningOp()) ||
           llvm::any_of(choices, [&](const Choice &choice) { return choice.before == operand; });
  };
  for (Operation &op : loop.getBody()->without_terminator()) {
    bool isSelect =
        llvm::any_of(choices, [&](const Choice &choice) { return choice.after.getDefiningOp() == &op; });
    if (isSelect) {
      if (!op.hasOneUse()) // beside the loop's own
        return false;
      continue;
    }
    bool uses = op.walk([&](Operation *inner) {
                    return llvm::any_of(inner->getOperands(), isDependent) ? WalkResult::interrupt()
                                                                           : WalkResult::advance();
                  }).wasInterrupted();
    if (uses && !decisions.contains(&op))
      return false;
    if (uses)
      dependent.insert(&op);
  }
  return llvm::none_of(loop.getYieldedValues(), isDependent) &&
         llvm::none_of(choices, [&](const Choice &choice) { return isDependent(choice.next); });
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

namespace {
class Selection : public LaneReduction {
public:
  /// `choices` are in the order of the reduction; `value` is the one that is compared.
  Selection(scf::ForOp loop, SmallVector<Choice> choices, unsigned value)
      : loc(loop.getLoc()), choices(std::move(choices)), value(value) {
    std::optional<int64_t> count = getConstantIntValue(loop.getUpperBound());
    bool isShort = count && *count <= std::numeric_limits<int32_t>::max();
    iterationType = IntegerType::get(loop.getContext(), isShort ? 32 : 64);
  }

  bool startsWithInitial() const override { return true; }
  SmallVector<Value> buildStart(OpBuilder &b, ValueRange initial) override;
  SmallVector<Value> rewriteBody(OpBuilder &b, ValueRange carried, Value iteration) override;
  SmallVector<Value> combine(OpBuilder &b, ValueRange mine, ValueRange others) override;
  SmallVector<Value> buildResult(OpBuilder &b, ValueRange initial, ValueRange combined) override;

private:
  Value buildKept(OpBuilder &b, Value condition, bool keptIf, Value kept, Value next);

  Location loc;
  Block *body = nullptr; ///< of the loop, once it is rewritten
  SmallVector<Choice> choices;
  unsigned value;
  Type iterationType;
};
} // namespace

Value Selection::buildKept(OpBuilder &b, Value condition, bool keptIf, Value kept, Value next) {
  return arith::SelectOp::create(b, loc, condition, keptIf ? kept : next, keptIf ? next : kept);
}

/// The initial values come before all iterations.
SmallVector<Value> Selection::buildStart(OpBuilder &b, ValueRange initial) {
  SmallVector<Value> start(initial);
  start.push_back(arith::ConstantOp::create(b, loc, b.getIntegerAttr(iterationType, -1)));
  return start;
}

SmallVector<Value> Selection::rewriteBody(OpBuilder &b, ValueRange carried, Value iteration) {
  body = b.getInsertionBlock();
  SmallVector<Value> next;
  for (auto [choice, value] : llvm::zip(choices, carried)) {
    choice.before.replaceAllUsesWith(value);
    choice.before = value;
    if (isa<BlockArgument>(choice.next))
      choice.next = iteration;
    next.push_back(choice.after);
  }
  Value current = arith::IndexCastOp::create(b, loc, iterationType, iteration);
  next.push_back(buildKept(b, choices[value].decision, choices[value].keptIf, carried.back(), current));
  return next;
}

/// Returns a copy of `value` of the body with other values in place of those that are mapped.
static Value cloneInto(OpBuilder &b, Value value, Block *body, IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != body)
    return value;
  for (Value operand : op->getOperands())
    cloneInto(b, operand, body, mapping);
  b.clone(*op, mapping);
  return mapping.lookup(value);
}

SmallVector<Value> Selection::combine(OpBuilder &b, ValueRange mine, ValueRange others) {
  Value isMineFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, mine.back(), others.back());
  SmallVector<Value> first, second;
  for (auto [a, b0] : llvm::zip_equal(mine, others)) {
    first.push_back(arith::SelectOp::create(b, loc, isMineFirst, a, b0));
    second.push_back(arith::SelectOp::create(b, loc, isMineFirst, b0, a));
  }
  IRMapping mapping;
  for (auto [i, choice] : llvm::enumerate(choices)) {
    mapping.map(choice.before, first[i]);
    mapping.map(choice.next, second[i]);
  }
  SmallVector<Value> combined;
  for (auto [i, choice] : llvm::enumerate(choices))
    combined.push_back(
        buildKept(b, cloneInto(b, choice.decision, body, mapping), choice.keptIf, first[i], second[i]));
  Value decision = mapping.lookupOrDefault(choices[value].decision);
  combined.push_back(buildKept(b, decision, choices[value].keptIf, first.back(), second.back()));
  return combined;
}

SmallVector<Value> Selection::buildResult(OpBuilder & /*b*/, ValueRange /*initial*/, ValueRange combined) {
  return SmallVector<Value>(combined.drop_back());
}

std::unique_ptr<LaneReduction> fp8::matchSelection(scf::ForOp loop, ValueRange before, ValueRange after) {
  SmallVector<Choice> choices;
  for (auto [old, next] : llvm::zip_equal(before, after)) {
    std::optional<Choice> choice = findChoice(loop, old, next);
    bool isTaken =
        choice && llvm::any_of(choices, [&](const Choice &other) { return other.next == choice->next; });
    if (!choice || isTaken) // lanes have one element for each
      return nullptr;
    choices.push_back(*choice);
  }
  for (auto [number, value] : llvm::enumerate(choices)) {
    SmallVector<Case> cases = listCases(isa<FloatType>(value.before.getType()));
    Decider decider(value);
    if (!isOrder(decider, value, cases))
      continue;
    bool areAll = llvm::all_of(choices, [&, &value = value](const Choice &place) {
      if (&place == &value)
        return true;
      decider.setPlace(&place);
      return isa<IntegerType, IndexType>(place.before.getType()) && follows(decider, place, value, cases);
    });
    if (areAll && onlyDecide(loop, choices, decider.operations))
      return std::make_unique<Selection>(loop, choices, number);
  }
  return nullptr;
}
