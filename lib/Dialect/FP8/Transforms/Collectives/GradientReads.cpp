// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the backward pass ends, and how far before that a mean may be taken.

#include "GradientReads.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fp8;

using Reads = llvm::SetVector<OpOperand *>;

GradientReads::GradientReads(func::FuncOp function, Value loss, const RankDependence &dependence)
    : body(function.getBody().front()), dependence(dependence),
      paths(function, loss, [&](Value value) { return dependence.varies(value); }) {
  findEnds();
  findOfGradients();
}

/// Returns the operation of the function's body that reads.
Operation *GradientReads::getReader(OpOperand &read) const {
  return body.findAncestorOpInBlock(*read.getOwner());
}

/// Returns the operations of the backward pass from which it begins anew, behind what is not linear, such as
/// the clipping of an activation's gradient.
llvm::DenseSet<Operation *> GradientReads::findBackward() const {
  llvm::DenseSet<Operation *> found;
  SmallVector<Value> worklist;
  for (OpOperand *seed : paths.getSeeds())
    worklist.push_back(seed->get());
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    Operation *parent = value.getParentBlock()->getParentOp(), *op = value.getDefiningOp();
    op = op ? op : value.getParentBlock() == &body ? nullptr : parent;
    op = op ? body.findAncestorOpInBlock(*op) : nullptr;
    if (op && !paths.isForward(value) && found.insert(op).second)
      llvm::append_range(worklist, dependence.getReads(op));
  }
  return found;
}

void GradientReads::findEnds() {
  llvm::DenseSet<Operation *> backward = findBackward();
  Reads all = paths.getEnds();
  moveUp(all, [&](Value value) { return value.getParentBlock() != &body; }); // out of a branch
  for (OpOperand *end : all)
    if (end->get().getParentBlock() == &body && dependence.varies(end->get()) &&
        !backward.contains(getReader(*end)))
      ends.insert(end);
}

void GradientReads::findOfGradients() {
  llvm::DenseSet<Operation *> readers;
  for (OpOperand *end : ends)
    readers.insert(getReader(*end));
  for (Operation &op : body)
    if (readers.contains(&op) ||
        llvm::any_of(dependence.getReads(&op), [&](Value read) { return ofGradients.contains(read); }))
      ofGradients.insert(op.result_begin(), op.result_end());
}

/// Returns the values that `wanted` are computed from.
llvm::DenseSet<Value> GradientReads::findSources(const Reads &wanted) const {
  llvm::DenseSet<Value> sources;
  SmallVector<Value> worklist;
  for (OpOperand *result : wanted)
    worklist.push_back(result->get());
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (sources.insert(value).second && op)
      llvm::append_range(worklist, dependence.getReads(op));
  }
  return sources;
}

/// Returns the read of a tensor with as many elements that `gradient` is a linear function of, with values
/// that are equal on all ranks; null if it is none.
OpOperand *GradientReads::findEarlier(Value gradient) const {
  Operation *op = gradient.getDefiningOp();
  auto type = dyn_cast<RankedTensorType>(gradient.getType());
  if (!op || !type || !type.hasStaticShape() || op->getNumResults() != 1)
    return nullptr;
  OpOperand *found = nullptr;
  for (OpOperand &read : op->getOpOperands())
    if (dependence.varies(read.get())) {
      if (found || paths.getDegree(read) != Degree::one)
        return nullptr;
      found = &read;
    }
  auto from = found ? dyn_cast<RankedTensorType>(found->get().getType()) : RankedTensorType();
  if (!from || !from.hasStaticShape() || from.getElementType() != type.getElementType() ||
      from.getNumElements() != type.getNumElements())
    return nullptr;
  int64_t varying =
      llvm::count_if(dependence.getReads(op), [&](Value read) { return dependence.varies(read); });
  return varying == 1 ? found : nullptr;
}

/// Where every read of a value is one of `reads`, and the value is computed from an earlier one, the read of
/// that takes their place, if the value `isMoved`. So a gradient that several moments of an optimizer read is
/// reduced once.
void GradientReads::moveUp(Reads &reads, function_ref<bool(Value)> isMoved) const {
  SmallVector<Value> worklist;
  for (OpOperand *read : reads)
    worklist.push_back(read->get());
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    bool areAll = llvm::all_of(value.getUses(), [&](OpOperand &use) {
      return reads.contains(&use) || isa<tensor::DimOp>(use.getOwner());
    });
    OpOperand *earlier = areAll && isMoved(value) ? findEarlier(value) : nullptr;
    if (!earlier || reads.contains(earlier))
      continue;
    reads.remove_if([&](OpOperand *read) { return read->get() == value; });
    reads.insert(earlier);
    worklist.push_back(earlier->get());
  }
}

SmallVector<std::pair<Value, SmallVector<OpOperand *>>> GradientReads::find(const Reads &wanted) const {
  llvm::DenseSet<Value> sources = findSources(wanted), needed;
  Operation *exit = body.getTerminator();
  for (OpOperand *end : ends) {
    Operation *reader = getReader(*end);
    if (reader == exit ? wanted.contains(end) : llvm::any_of(reader->getResults(), [&](Value result) {
          return sources.contains(result);
        }))
      needed.insert(end->get());
  }
  Reads reads;
  for (OpOperand *end : ends)
    if (needed.contains(end->get()) && (getReader(*end) != exit || wanted.contains(end)))
      reads.insert(end);
  moveUp(reads, [](Value) { return true; });
  llvm::MapVector<Value, SmallVector<OpOperand *>> byValue;
  for (OpOperand *read : reads)
    byValue[read->get()].push_back(read);
  SmallVector<std::pair<Value, SmallVector<OpOperand *>>> ordered(byValue.takeVector());
  llvm::sort(ordered, [](const auto &a, const auto &b) {
    Operation *first = a.first.getDefiningOp(), *second = b.first.getDefiningOp();
    return first && second ? first->isBeforeInBlock(second) : !first && second;
  });
  return ordered;
}
