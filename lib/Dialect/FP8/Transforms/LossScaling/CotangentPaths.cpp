// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Degrees of values in the loss scale: the rules of operations are in DegreeRules.cpp.

#include "CotangentPaths.h"
#include "fp8/Analysis/RegionFlow.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

using namespace mlir;
using namespace fp8;

static bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value)); }

/// Returns the operands of the function's matmuls that are gradients.
static SmallVector<OpOperand *> findGradients(func::FuncOp function) {
  SmallVector<OpOperand *> gradients;
  function.walk([&](MatmulOp op) {
    if (op.getLhsKind() == TensorKind::grad_output)
      gradients.push_back(&op.getLhsMutable());
    if (op.getRhsKind() == TensorKind::grad_output)
      gradients.push_back(&op.getRhsMutable());
  });
  return gradients;
}

static SmallVector<Value> getValues(ArrayRef<OpOperand *> reads) {
  llvm::SetVector<Value> values;
  for (OpOperand *read : reads)
    values.insert(read->get());
  return values.takeVector();
}

CotangentPaths::CotangentPaths(func::FuncOp function, Value loss, std::function<bool(Value)> varies)
    : function(function), varies(std::move(varies)), gradients(findGradients(function)) {
  if (gradients.empty())
    return;
  findForwardValues(loss);
  reachability.emplace(function, ArrayRef<Operation *>(), Reach::everything, getValues(gradients));
  evaluateAll(); // without seeds, the values of degree `any` are the zeros, which need no scale
  open.assign(gradients.begin(), gradients.end());
  while (!open.empty())
    demand(*open.pop_back_val());
  evaluateAll();
  if (!this->varies)
    moveEndsUp();
  seeds.remove_if([&](OpOperand *read) { return degrees.lookup(read->get()) == Degree::one; });
}

//===----------------------------------------------------------------------===//
// Forward values, and values computed from gradients
//===----------------------------------------------------------------------===//

void CotangentPaths::findForwardValues(Value loss) {
  SmallVector<Value> worklist{loss};
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (!forward.insert(value).second)
      continue;
    SmallVector<Value> forwarded = getForwardedValues(value);
    worklist.append(forwarded);
    Operation *op = value.getDefiningOp();
    if (!op || !forwarded.empty())
      continue;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (!op->isAncestor(operand.getParentBlock()->getParentOp()))
          worklist.push_back(operand);
    });
  }
}

/// Returns whether `value` is computed from the gradient operand of a matmul.
bool CotangentPaths::isTainted(Value value) {
  if (forward.contains(value))
    return false;
  auto structured = dyn_cast_or_null<linalg::LinalgOp>(value.getParentBlock()->getParentOp());
  if (!structured)
    return reachability->getSources(value).any();
  auto [known, isNew] = tainted.try_emplace(value, false);
  if (!isNew)
    return known->second;
  bool result;
  if (auto argument = dyn_cast<BlockArgument>(value))
    result = isTainted(structured.getMatchingOpOperand(argument)->get());
  else
    result = llvm::any_of(value.getDefiningOp()->getOperands(), [&](Value read) { return isTainted(read); });
  return tainted[value] = result;
}

/// Returns whether `value` differs from rank to rank and the loss is not computed from it.
bool CotangentPaths::isBackward(Value value) {
  auto structured = dyn_cast_or_null<linalg::LinalgOp>(value.getParentBlock()->getParentOp());
  if (!structured)
    return !forward.contains(value) && varies(value);
  if (auto argument = dyn_cast<BlockArgument>(value))
    return isBackward(structured.getMatchingOpOperand(argument)->get());
  return llvm::any_of(value.getDefiningOp()->getOperands(), [&](Value read) { return isBackward(read); });
}

/// Returns the rule of `value` for what these paths are for.
DegreeRule CotangentPaths::getRule(Value value) const {
  Operation *op = value.getDefiningOp();
  return op && varies && isOnlyHomogeneous(op) ? DegreeRule() : getDegreeRule(value);
}

bool CotangentPaths::isLinearHere(Operation *op) const {
  return isLinear(op) && !(varies && isOnlyHomogeneous(op));
}

//===----------------------------------------------------------------------===//
// The values that must be scaled, from the gradients of matmuls upwards
//===----------------------------------------------------------------------===//

void CotangentPaths::addSeed(OpOperand &read) {
  seeds.insert(&read);
  Value value = read.get();
  if (varies && !forward.contains(value) && varies(value))
    for (OpOperand &other : value.getUses())
      seeds.insert(&other);
}

/// Makes `read` one of degree 1: by scaling what the value is computed from, or the read itself.
void CotangentPaths::demand(OpOperand &read) {
  Value value = read.get();
  if (demanded.contains(value) || degrees.lookup(value) == Degree::any)
    return;
  DegreeRule rule = getRule(value);
  if (rule.kind == DegreeRule::Kind::fixed || forward.contains(value)) {
    addSeed(read);
    return;
  }
  SmallVector<OpOperand *> scaled(rule.reads);
  if (rule.kind != DegreeRule::Kind::same) {
    Value a = rule.reads[0]->get(), b = rule.reads[1]->get();
    bool first = isTainted(a), second = isTainted(b);
    if (varies && !first && !second) { // behind the last matmul: its output may be scaled by a parameter
      first = isBackward(a);
      second = isBackward(b);
    }
    // Where neither factor comes from a gradient, the backward pass begins here.
    bool fits = rule.kind == DegreeRule::Kind::product ? first != second : first && !second;
    if (!fits) {
      addSeed(read);
      return;
    }
    scaled = {rule.reads[first ? 0 : 1]};
    if (rule.addend)
      scaled.push_back(rule.addend);
  }
  demanded.insert(value);
  open.append(scaled);
}

//===----------------------------------------------------------------------===//
// Degrees, in the order of the program
//===----------------------------------------------------------------------===//

Degree CotangentPaths::getDegree(OpOperand &read) const {
  return seeds.contains(&read) ? Degree::one : degrees.lookup(read.get());
}

static linalg::LinalgOp getBodyOwner(OpOperand &read) {
  return dyn_cast_or_null<linalg::LinalgOp>(read.getOwner()->getParentOp());
}

/// Divides the scale out of `read`. In the body of a linalg op that is impossible: its inputs are ends then.
void CotangentPaths::addEnd(OpOperand &read) {
  if (getDegree(read) != Degree::one || seeds.remove(&read))
    return;
  if (linalg::LinalgOp owner = getBodyOwner(read))
    opaque.insert(owner);
  else
    ends.insert(&read);
}

/// The degree of a value that is one of `reads`, or their sum: reads of degree 1 and 0 do not mix.
Degree CotangentPaths::joinReads(Value value, ArrayRef<OpOperand *> reads) {
  SmallVector<OpOperand *> scaled, others;
  for (OpOperand *read : reads) {
    Degree degree = getDegree(*read);
    if (degree != Degree::any)
      (degree == Degree::one ? scaled : others).push_back(read);
  }
  if (scaled.empty())
    return others.empty() ? Degree::any : Degree::zero;
  if (others.empty() && !unscaled.contains(value))
    return Degree::one;
  if (demanded.contains(value) && !unscaled.contains(value)) {
    seeds.insert(others.begin(), others.end());
    return Degree::one;
  }
  unscaled.insert(value);
  for (OpOperand *read : scaled)
    addEnd(*read);
  return Degree::zero;
}

Degree CotangentPaths::evaluate(Value value) {
  DegreeRule rule = getRule(value);
  if (rule.kind == DegreeRule::Kind::fixed)
    return rule.degree;
  if (rule.kind == DegreeRule::Kind::same)
    return joinReads(value, rule.reads);
  Degree first = getDegree(*rule.reads[0]), second = getDegree(*rule.reads[1]);
  if (first == Degree::any || (second == Degree::any && rule.kind == DegreeRule::Kind::product))
    return rule.addend ? getDegree(*rule.addend) : Degree::any;
  if (second == Degree::one && (first == Degree::one || rule.kind == DegreeRule::Kind::quotient)) {
    for (OpOperand *read : rule.reads)
      addEnd(*read);
    first = second = Degree::zero;
  }
  bool isScaled = first == Degree::one || second == Degree::one;
  Degree added = rule.addend ? getDegree(*rule.addend) : Degree::any;
  if (added == Degree::any || isScaled == (added == Degree::one))
    return isScaled ? Degree::one : Degree::zero;
  if (demanded.contains(value) && isScaled) {
    seeds.insert(rule.addend);
    return Degree::one;
  }
  for (OpOperand *read : {rule.reads[0], rule.reads[1], rule.addend})
    addEnd(*read);
  return Degree::zero;
}

void CotangentPaths::evaluate(Block &block) {
  auto set = [&](Value value) {
    if (isFloat(value))
      degrees[value] = evaluate(value);
  };
  for (BlockArgument argument : block.getArguments())
    set(argument);
  for (Operation &op : block) {
    // Results after regions: those of a linalg op follow from its body.
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        evaluate(inner);
    addEndsOf(&op);
    for (Value result : op.getResults())
      set(result);
  }
}

/// Evaluates all values, again and again because loops hand degrees on. Where a pass finds that values cannot
/// have degree 1, all degrees are found anew.
void CotangentPaths::evaluateAll() {
  size_t exceptions;
  do {
    exceptions = opaque.size() + unscaled.size() + seeds.size();
    degrees.clear();
    llvm::DenseMap<Value, Degree> before;
    do {
      before = degrees;
      ends.clear();
      for (Block &block : function.getBody())
        evaluate(block);
    } while (before != degrees);
  } while (exceptions != opaque.size() + unscaled.size() + seeds.size());
}

/// Adds the reads of `op` that are not linear, such as those of exp, of conditions and of return.
void CotangentPaths::addEndsOf(Operation *op) {
  if (isLinearHere(op) && !opaque.contains(op))
    return;
  if (opaque.contains(op))
    seeds.remove_if([&](OpOperand *read) { return op->isProperAncestor(read->getOwner()); });
  for (OpOperand &read : op->getOpOperands())
    if (isFloat(read.get()))
      addEnd(read);
}

//===----------------------------------------------------------------------===//
// Fewer ends
//===----------------------------------------------------------------------===//

/// Returns the read of a tensor of the same type that an elementwise `op` with a single result is scaled by.
OpOperand *CotangentPaths::findScaledRead(Operation *op) const {
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  if (op->getNumResults() != 1 || (structured && structured.getNumReductionLoops() != 0) ||
      (!structured && !op->hasTrait<OpTrait::Elementwise>()))
    return nullptr;
  OpOperand *found = nullptr;
  for (OpOperand &read : op->getOpOperands())
    if (isFloat(read.get()) && getDegree(read) == Degree::one) {
      if (found || read.get().getType() != op->getResult(0).getType())
        return nullptr;
      found = &read;
    }
  if (found && structured && !structured.getMatchingIndexingMap(found).isIdentity())
    return nullptr;
  return found;
}

/// Where every read of a value is an end, and the value is a scaled one times something, that read is the
/// end. So a gradient that several moments of an optimizer read is divided once.
void CotangentPaths::moveEndsUp() {
  SmallVector<Value> worklist = getValues(ends.getArrayRef());
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    Operation *op = value.getDefiningOp();
    bool areAll = llvm::all_of(value.getUses(), [&](OpOperand &use) {
      return ends.contains(&use) || isa<tensor::DimOp>(use.getOwner());
    });
    OpOperand *read = op && areAll ? findScaledRead(op) : nullptr;
    if (!read || seeds.contains(read))
      continue;
    ends.remove_if([&](OpOperand *end) { return end->get() == value; });
    degrees[value] = Degree::zero;
    seeds.remove_if([&](OpOperand *seed) { return op->isProperAncestor(seed->getOwner()); });
    ends.insert(read);
    worklist.push_back(read->get());
  }
}
