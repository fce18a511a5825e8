// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Requests for a pair, the marks on its functions, and queries of a joined function.

#include "fp8/Dialect/FP8/Transforms/Pair.h"
#include "fp8/Analysis/Rearrangement.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp8;

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

llvm::Expected<PairRequest> fp8::parsePair(StringRef text) {
  SmallVector<StringRef, 3> parts;
  text.split(parts, ':');
  PairRequest request;
  bool isNumber = parts.size() < 3 || !parts[2].getAsInteger(10, request.firstResidual);
  if (parts.size() < 2 || parts.size() > 3 || !isNumber || parts[0].empty() || parts[1].empty())
    return llvm::createStringError("--pair=" + text.str() +
                                   " must be FORWARD:BACKWARD or FORWARD:BACKWARD:K, two functions and the "
                                   "first result of FORWARD that is an argument of BACKWARD");
  request.forward = parts[0].str();
  request.backward = parts[1].str();
  return request;
}

/// Looks up a function of the request; null after an error.
static func::FuncOp findFunction(ModuleOp module, StringRef option, StringRef name) {
  auto function = module.lookupSymbol<func::FuncOp>(name);
  if (!function) {
    SmallVector<StringRef> names;
    for (auto other : module.getOps<func::FuncOp>())
      if (other.isPublic() && !other.isExternal())
        names.push_back(other.getName());
    module.emitError() << option << ": there is no function '" << name << "'; the public functions are "
                       << llvm::join(names, ", ");
  } else if (function.isExternal() || !function.isPublic()) {
    function.emitError() << option << ": '" << name << "' must be a public function with a body";
    function = nullptr;
  }
  return function;
}

LogicalResult fp8::markPair(ModuleOp module, const PairRequest &request) {
  unsigned first = request.firstResidual;
  std::string option = "--pair=" + request.forward + ":" + request.backward + ":" + std::to_string(first);
  func::FuncOp forward = findFunction(module, option, request.forward);
  func::FuncOp backward = forward ? findFunction(module, option, request.backward) : forward;
  if (!backward)
    return failure();
  if (forward == backward)
    return forward.emitError() << option << ": forward and backward must be two functions";
  for (func::FuncOp function : {forward, backward})
    if (function->hasAttr(kBackwardAttrName) || hasResiduals(function))
      return function.emitError() << option << ": '" << function.getName()
                                  << "' is marked as part of a pair already; leave out --pair";
  if (first >= forward.getNumResults())
    return forward.emitError() << option << ": '" << request.forward << "' has " << forward.getNumResults()
                               << " results, so none is left from " << first << " on; give a smaller K";
  unsigned count = forward.getNumResults() - first;
  if (count > backward.getNumArguments())
    return backward.emitError() << option << ": '" << request.backward << "' has "
                                << backward.getNumArguments() << " arguments for the " << count
                                << " results of '" << request.forward << "' from " << first
                                << " on; give another K";

  for (unsigned i = first; i < forward.getNumResults(); ++i)
    if (forward.getResultAttr(i, kProgramStateAttrName))
      return forward.emitError() << option << ": result " << i << " of '" << request.forward
                                 << "' is state of the program: mark the pair before fp8-globals-to-state";

  Builder builder(module.getContext());
  forward->setAttr(kBackwardAttrName, FlatSymbolRefAttr::get(backward));
  for (unsigned i = 0; i < count; ++i) {
    forward.setResultAttr(first + i, kResidualAttrName, builder.getUnitAttr());
    backward.setArgAttr(i, kResidualAttrName, builder.getUnitAttr());
  }
  return success();
}

bool fp8::hasResiduals(func::FuncOp function) {
  auto isMarked = [](unsigned count, auto getAttr) {
    return llvm::any_of(llvm::seq(count), [&](unsigned i) { return bool(getAttr(i)); });
  };
  return isMarked(function.getNumArguments(),
                  [&](unsigned i) { return function.getArgAttr(i, kResidualAttrName); }) ||
         isMarked(function.getNumResults(),
                  [&](unsigned i) { return function.getResultAttr(i, kResidualAttrName); });
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

std::optional<int64_t> fp8::getStoredBytes(Type type) {
  auto shaped = dyn_cast<RankedTensorType>(type);
  if (shaped && !shaped.hasStaticShape())
    return std::nullopt;
  Type element = shaped ? shaped.getElementType() : type;
  if (!element.isIntOrFloat())
    return std::nullopt;
  return (shaped ? shaped.getNumElements() : 1) * llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
}

std::optional<int64_t> fp8::countResidualBytes(ModuleOp module) {
  int64_t sum = 0;
  for (auto function : module.getOps<func::FuncOp>())
    for (auto [i, type] : llvm::enumerate(function.getResultTypes())) {
      if (!function.getResultAttr(i, kResidualAttrName))
        continue;
      std::optional<int64_t> bytes = getStoredBytes(type);
      if (!bytes)
        return std::nullopt;
      sum += *bytes;
    }
  return sum;
}

//===----------------------------------------------------------------------===//
// Joined functions
//===----------------------------------------------------------------------===//

bool fp8::isMovement(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>() ||
      isa<tensor::EmptyOp, tensor::DimOp, tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp,
          tensor::ExtractSliceOp, memref::GetGlobalOp>(op))
    return true;
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    return fill.hasPureTensorSemantics();
  if (auto read = dyn_cast<bufferization::ToTensorOp>(op))
    return read.getBuffer().getDefiningOp<memref::GetGlobalOp>() != nullptr;
  // Arithmetic on sizes.
  auto isSize = [](Type type) { return type.isIntOrIndex(); };
  if (op->getNumOperands() > 0 && op->getNumRegions() == 0 && isPure(op) &&
      llvm::all_of(op->getOperandTypes(), isSize) && llvm::all_of(op->getResultTypes(), isSize))
    return true;
  return matchRearrangement(op).has_value();
}

/// Returns the function that `marker` names if fp8-join-pair moved its code, so that it returns poison; else
/// null.
static func::FuncOp findEmptied(func::FuncOp function, EndForwardOp marker) {
  auto module = function->getParentOfType<ModuleOp>();
  auto backward = module.lookupSymbol<func::FuncOp>(marker.getBackward());
  if (!backward || backward.isExternal() || backward == function || !backward.getBody().hasOneBlock() ||
      !llvm::all_of(backward.front(), llvm::IsaPred<ub::PoisonOp, func::ReturnOp>) ||
      !llvm::all_of(backward.front().getTerminator()->getOperands(),
                    [](Value value) { return bool(value.getDefiningOp<ub::PoisonOp>()); }))
    return func::FuncOp();
  return backward;
}

/// Returns the error of `marker` in `function`, as the end of a message; empty if there is none.
static std::string findMisfit(func::FuncOp function, EndForwardOp marker) {
  func::FuncOp backward = findEmptied(function, marker);
  if (!backward)
    return ("must name another function, whose body fp8-join-pair took: '" + marker.getBackward() +
            "' is none; ask for the pair with --pair")
        .str();
  if (!function.getBody().hasOneBlock())
    return "must be in a function of one block";
  auto isState = [](DictionaryAttr attrs) { return attrs && attrs.contains(kStateAttrName); };
  SmallVector<Type> taken, state, results(function.getResultTypes());
  for (auto [i, type] : llvm::enumerate(backward.getArgumentTypes()))
    if (!backward.getArgAttr(i, kResidualAttrName))
      taken.push_back(type);
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    if (isState(function.getArgAttrDict(i)))
      state.push_back(type);
    else if (!state.empty())
      return "must be in a function whose last arguments are its state";
  llvm::append_range(taken, state);
  if (!llvm::equal(marker->getResultTypes(), taken))
    return ("must return the arguments of '" + marker.getBackward() +
            "' that are no residuals, and the state")
        .str();

  // The results are those of forward, those of backward, and the state if it is updated.
  while (!results.empty() && isState(function.getResultAttrDict(results.size() - 1)))
    results.pop_back();
  size_t updated = function.getNumResults() - results.size(), ofBackward = backward.getNumResults();
  if ((updated != 0 && updated != state.size()) || results.size() < ofBackward ||
      !llvm::equal(ArrayRef(results).take_back(ofBackward), backward.getResultTypes()))
    return ("must be in a function that returns its own results, then those of '" + marker.getBackward() +
            "', and the state if it is updated")
        .str();
  results.resize(results.size() - ofBackward);
  for (Value result : function.front().getTerminator()->getOperands().take_front(results.size()))
    if (Operation *op = result.getDefiningOp(); op && !op->isBeforeInBlock(marker))
      return "must stand behind what computes the results of forward";
  llvm::append_range(results, state);
  if (!llvm::equal(marker.getGiven().getTypes(), results))
    return "must be given the results of forward, and the state";
  return {};
}

LogicalResult fp8::verifyJoinedPairs(ModuleOp module) {
  llvm::SmallPtrSet<Operation *, 2> inPair;
  WalkResult walked = module.walk([&](EndForwardOp marker) {
    auto function = dyn_cast<func::FuncOp>(marker->getParentOp());
    if (!function || !inPair.insert(function).second) {
      marker.emitOpError("must stand once in a function, outside of other operations");
      return WalkResult::interrupt();
    }
    std::string problem = findMisfit(function, marker);
    if (problem.empty() && !inPair.insert(findEmptied(function, marker)).second)
      problem = ("is the second that names '" + marker.getBackward() + "'").str();
    if (problem.empty())
      return WalkResult::advance();
    marker.emitOpError() << problem;
    return WalkResult::interrupt();
  });
  return failure(walked.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

std::optional<JoinedPair> JoinedPair::find(func::FuncOp function) {
  if (function.isExternal())
    return std::nullopt;
  auto markers = function.front().getOps<EndForwardOp>();
  if (markers.empty())
    return std::nullopt;
  EndForwardOp marker = *markers.begin();
  auto backward = function->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>(marker.getBackward());
  if (!backward || backward.isExternal() || backward == function)
    return std::nullopt;
  return JoinedPair(function, marker, backward);
}

unsigned JoinedPair::getNumBackwardArguments() {
  auto isUsers = [&](unsigned i) { return !backward.getArgAttr(i, kResidualAttrName); };
  return llvm::count_if(llvm::seq(backward.getNumArguments()), isUsers);
}

unsigned JoinedPair::getNumForwardResults() {
  auto isState = [&](unsigned i) { return bool(function.getResultAttr(i, kStateAttrName)); };
  return function.getNumResults() - llvm::count_if(llvm::seq(function.getNumResults()), isState) -
         backward.getNumResults();
}

MutableOperandRange JoinedPair::getState() {
  unsigned first = getNumForwardResults(), count = endForward.getGiven().size();
  return endForward.getGivenMutable().slice(first, count - first);
}

bool JoinedPair::isForward(Operation *op) {
  Operation *place = function.front().findAncestorOpInBlock(*op);
  return place && place->isBeforeInBlock(endForward);
}

bool JoinedPair::isForward(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    op = value.getParentBlock()->getParentOp();
  return op == function || isForward(op);
}

ResultRange JoinedPair::widen(ValueRange moreGiven, TypeRange moreTypes) {
  OpBuilder builder(endForward);
  SmallVector<Value> given(endForward.getGiven());
  llvm::append_range(given, moreGiven);
  SmallVector<Type> types(endForward->getResultTypes());
  llvm::append_range(types, moreTypes);
  auto wider = EndForwardOp::create(builder, endForward.getLoc(), types, endForward.getBackward(), given);
  endForward->replaceAllUsesWith(wider->getResults().drop_back(moreTypes.size()));
  endForward.erase();
  endForward = wider;
  return wider->getResults().take_back(moreTypes.size());
}

ResultRange JoinedPair::passState(ValueRange state) { return widen(state, state.getTypes()); }

Value JoinedPair::addBackwardArgument(Type type, DictionaryAttr attrs, Location loc) {
  (void)backward.insertArgument(backward.getNumArguments(), type, attrs, loc);
  return widen({}, type).front();
}

void JoinedPair::addForwardResult(Value value, DictionaryAttr attrs) {
  unsigned place = getNumForwardResults();
  (void)function.insertResult(place, value.getType(), attrs);
  function.front().getTerminator()->insertOperands(place, value);
  endForward->insertOperands(place, value);
}

void JoinedPair::addBackwardResult(Value value, DictionaryAttr attrs) {
  for (func::FuncOp each : {function, backward})
    (void)each.insertResult(each.getNumResults(), value.getType(), attrs);
  auto append = [](func::FuncOp each, Value operand) {
    cast<func::ReturnOp>(each.front().getTerminator()).getOperandsMutable().append(operand);
  };
  append(function, value);
  OpBuilder builder(backward.front().getTerminator());
  append(backward, ub::PoisonOp::create(builder, value.getLoc(), value.getType())); // it has no code
}
