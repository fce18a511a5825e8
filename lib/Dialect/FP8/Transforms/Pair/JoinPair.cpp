// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Joins the two functions of a pair. Casts and views of forward values in backward move to forward
// and are merged with forward's own: each tensor is one value then, and later passes need no
// knowledge of pairs.

#include "fp8/Analysis/CheapestCut.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "fp8/Dialect/FP8/Transforms/Pair.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_JOINPAIR
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

llvm::BitVector getResidualResults(func::FuncOp function) {
  llvm::BitVector marked(function.getNumResults());
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    marked[i] = bool(function.getResultAttr(i, kResidualAttrName));
  return marked;
}

llvm::BitVector getResidualArguments(func::FuncOp function) {
  llvm::BitVector marked(function.getNumArguments());
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    marked[i] = bool(function.getArgAttr(i, kResidualAttrName));
  return marked;
}

/// Checks that one function of the pair, without regard to the other, can be joined.
LogicalResult verifyFunction(func::FuncOp function) {
  if (!function.getBody().hasOneBlock())
    return function.emitError() << "'" << function.getName()
                                << "' branches between blocks: use structured control flow (scf)";
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (function.getArgAttr(i, kStateAttrName))
      return function.emitError() << "'" << function.getName()
                                  << "' has FP8 state: a pair is joined before fp8-apply-recipe";
  if (!function.front().getOps<EndForwardOp>().empty())
    return function.emitError() << "'" << function.getName()
                                << "' is joined with a backward already: split that pair first";
  return success();
}

/// Checks that no argument of forward carries a residual: the compiler chooses the residuals.
LogicalResult verifyCarried(func::FuncOp forward) {
  for (BlockArgument argument : forward.getArguments()) {
    auto carried = forward.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), kCarriedAttrName);
    if (carried && carried.getInt() >= 0 && carried.getInt() < int64_t(forward.getNumResults()) &&
        forward.getResultAttr(carried.getInt(), kResidualAttrName))
      return emitError(argument.getLoc())
             << "argument " << argument.getArgNumber() << " of '" << forward.getName() << "' carries result "
             << carried.getInt() << ", a residual of the pair; do not donate or carry it";
  }
  return success();
}

/// The residual results of forward in the order of backward's arguments: the same one, or that of
/// PyTorch's AOT export, whose dynamic sizes are forward's last results and backward's first
/// arguments. Empty where neither fits.
SmallVector<unsigned> orderResults(func::FuncOp forward, func::FuncOp backward) {
  auto order = llvm::to_vector_of<unsigned>(getResidualResults(forward).set_bits());
  llvm::BitVector arguments = getResidualArguments(backward);
  auto fits = [&] {
    return llvm::all_of(llvm::zip(order, arguments.set_bits()), [&](auto pair) {
      auto [result, argument] = pair;
      return forward.getResultTypes()[result] == backward.getArgumentTypes()[argument];
    });
  };
  if (fits())
    return order;
  auto *sizes = llvm::find_if_not(llvm::reverse(order), [&](unsigned result) {
                  return forward.getResultTypes()[result].isIntOrIndex();
                }).base();
  std::rotate(order.begin(), sizes, order.end());
  return fits() ? order : SmallVector<unsigned>();
}

LogicalResult verifyResiduals(func::FuncOp forward, func::FuncOp backward) {
  llvm::BitVector results = getResidualResults(forward), arguments = getResidualArguments(backward);
  if (results.count() != arguments.count())
    return backward.emitError() << "'" << backward.getName() << "' takes " << arguments.count()
                                << " residuals, but '" << forward.getName() << "' gives " << results.count();
  if (!orderResults(forward, backward).empty())
    return success();
  for (auto [result, argument] : llvm::zip(results.set_bits(), arguments.set_bits())) {
    Type given = forward.getResultTypes()[result], taken = backward.getArgumentTypes()[argument];
    if (given != taken)
      return backward.emitError() << "argument " << argument << " of '" << backward.getName() << "' is "
                                  << taken << ", but result " << result << " of '" << forward.getName()
                                  << "', which it receives, is " << given << "; give another K in --pair";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Joining
//===----------------------------------------------------------------------===//

/// Creates the end of forward: it takes the user's results and returns backward's arguments.
EndForwardOp createMarker(Operation *end, func::FuncOp backward, const llvm::BitVector &residuals) {
  SmallVector<BlockArgument> own;
  for (BlockArgument argument : backward.getArguments())
    if (!residuals.test(argument.getArgNumber()))
      own.push_back(argument);
  OpBuilder builder(end);
  auto marker = EndForwardOp::create(builder, backward.getLoc(), TypeRange(ValueRange(own)),
                                     backward.getName(), end->getOperands());
  for (auto [argument, value] : llvm::zip(own, marker.getResults()))
    argument.replaceAllUsesWith(value);
  return marker;
}

/// Moves backward's body behind forward's; backward returns poison instead.
EndForwardOp join(func::FuncOp forward, func::FuncOp backward) {
  llvm::BitVector results = getResidualResults(forward), arguments = getResidualArguments(backward);
  Operation *end = forward.front().getTerminator(), *backwardEnd = backward.front().getTerminator();
  for (auto [result, argument] : llvm::zip(orderResults(forward, backward), arguments.set_bits()))
    backward.getArgument(argument).replaceAllUsesWith(end->getOperand(result));
  for (unsigned i = 0; i < forward.getNumArguments(); ++i)
    forward.removeArgAttr(i, kReturnedAttrName); // fp8-split-pair chooses new residuals
  end->eraseOperands(results);
  (void)forward.eraseResults(results);

  EndForwardOp marker = createMarker(end, backward, arguments);
  forward.front().getOperations().splice(end->getIterator(), backward.front().getOperations(),
                                         backward.front().begin(), backwardEnd->getIterator());
  end->insertOperands(end->getNumOperands(), backwardEnd->getOperands());
  OpBuilder builder(backwardEnd);
  for (OpOperand &operand : backwardEnd->getOpOperands())
    operand.set(ub::PoisonOp::create(builder, backwardEnd->getLoc(), operand.get().getType()));
  for (auto [i, type] : llvm::enumerate(backward.getResultTypes()))
    (void)forward.insertResult(
        forward.getNumResults(), type,
        NamedAttrList(backward.getResultAttrDict(i)).getDictionary(forward.getContext()));
  forward->removeAttr(kBackwardAttrName);
  return marker;
}

//===----------------------------------------------------------------------===//
// One value for one tensor
//===----------------------------------------------------------------------===//

bool areAlike(Operation *a, Operation *b);

/// Whether `a` and `b` are the same value, or equal constants or empty tensors.
bool areAlike(Value a, Value b) {
  Operation *first = a.getDefiningOp(), *second = b.getDefiningOp();
  if (a == b || !first || !second)
    return a == b;
  return (isa<tensor::EmptyOp>(first) || first->hasTrait<OpTrait::ConstantLike>()) && areAlike(first, second);
}

bool areAlike(Operation *a, Operation *b) {
  DenseMap<Value, Value> inside; // values of the regions
  auto check = [&](Value x, Value y) { return success(inside.lookup(x) == y || areAlike(x, y)); };
  auto mark = [&](Value x, Value y) { inside[x] = y; };
  return OperationEquivalence::isEquivalentTo(a, b, check, mark,
                                              OperationEquivalence::IgnoreLocations |
                                                  OperationEquivalence::IgnoreDiscardableAttrs);
}

/// Moves movements of forward values (isMovement) from backward to forward, or merges them with those there.
class MovementHoister {
public:
  MovementHoister(Block &body, EndForwardOp marker) : body(body), marker(marker) {
    for (Operation *op = marker->getNextNode(); op; op = op->getNextNode())
      backward.insert(op);
  }

  void run() {
    for (Operation *op = marker->getNextNode(), *next; op; op = next) {
      next = op->getNextNode();
      if (isMovement(op) && llvm::all_of(getReadValues(op), [&](Value value) { return isForward(value); }))
        mergeOrHoist(op);
    }
  }

private:
  bool isForward(Value value) const {
    return value.getDefiningOp() != marker && !backward.contains(value.getDefiningOp());
  }

  Operation *findTwin(Operation *op) const {
    if (op->getNumOperands() == 0)
      return nullptr;
    for (Operation *other : op->getOperand(0).getUsers())
      if (other != op && other->getBlock() == &body && !backward.contains(other) && areAlike(other, op))
        return other;
    return nullptr;
  }

  void mergeOrHoist(Operation *op) {
    backward.erase(op);
    if (Operation *twin = findTwin(op)) {
      op->replaceAllUsesWith(twin);
      op->erase();
    } else {
      op->moveBefore(marker);
    }
  }

  Block &body;
  EndForwardOp marker;
  llvm::SmallPtrSet<Operation *, 32> backward;
};

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

class JoinPair : public impl::JoinPairBase<JoinPair> {
public:
  using impl::JoinPairBase<JoinPair>::JoinPairBase;

  void runOnOperation() final {
    if (failed(markRequested()) || failed(joinMarked()))
      signalPassFailure();
  }

private:
  LogicalResult markRequested() {
    if (pair.empty())
      return success();
    llvm::Expected<PairRequest> request = parsePair(pair);
    if (!request)
      return getOperation().emitError() << llvm::toString(request.takeError());
    return markPair(getOperation(), *request);
  }

  LogicalResult joinMarked() {
    SmallVector<std::pair<func::FuncOp, StringRef>> pairs;
    llvm::SmallPtrSet<Operation *, 2> inPair;
    for (auto forward : getOperation().getOps<func::FuncOp>())
      if (auto name = forward->getAttrOfType<FlatSymbolRefAttr>(kBackwardAttrName)) {
        Operation *backward = getOperation().lookupSymbol(name.getValue());
        for (Operation *function : {forward.getOperation(), backward})
          if (function && !inPair.insert(function).second && backward != forward)
            return function->emitError() << "is part of two pairs (" << kBackwardAttrName << ")";
        pairs.push_back({forward, name.getValue()});
      }
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!inPair.contains(function) && hasResiduals(function))
        return function.emitError() << "'" << function.getName() << "' has residuals (" << kResidualAttrName
                                    << "), but no function names its pair (" << kBackwardAttrName << ")";
    for (auto [forward, name] : pairs)
      if (failed(joinMarked(forward, name)))
        return failure();
    return success();
  }

  LogicalResult joinMarked(func::FuncOp forward, StringRef name) {
    auto backward = getOperation().lookupSymbol<func::FuncOp>(name);
    if (!backward || backward.isExternal() || backward == forward)
      return forward.emitError() << "its backward '" << name << "' (" << kBackwardAttrName
                                 << ") must be another function with a body";
    if (failed(verifyFunction(forward)) || failed(verifyFunction(backward)) ||
        failed(verifyCarried(forward)) || failed(verifyResiduals(forward, backward)))
      return failure();
    MovementHoister(forward.front(), join(forward, backward)).run();
    return success();
  }
};

} // namespace
} // namespace fp8
