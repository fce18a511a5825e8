// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Follows stacks from the casts that read them to the loops that fill them, and to all other readers.

#include "CastStacks.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace fp8;

bool Forward::contains(Operation *op) const {
  Operation *place = end->getBlock()->findAncestorOpInBlock(*op);
  return place ? place->isBeforeInBlock(end) : !end->getParentOp()->isProperAncestor(op);
}

bool Forward::contains(Value value) const {
  if (Operation *op = value.getDefiningOp())
    return contains(op);
  Operation *parent = value.getParentBlock()->getParentOp();
  return parent == end->getParentOp() || contains(parent);
}

static bool isZeroOrUndefined(Value value) {
  while (isView(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    value = fill.getInputs().front();
  return value.getDefiningOp<tensor::EmptyOp>() || matchPattern(value, m_PosZeroFloat());
}

bool CastStacks::isSameCast(QuantizeOp op) const {
  if (op.getColumnAttr() != column || op.getFormat() != format ||
      getElementTypeOrSelf(op.getInputs().front()) != element)
    return false;
  std::optional<CastScale> other = CastScale::of(op);
  return other && other->isAlike(scale);
}

QuantizeOp CastStacks::findCastInForward(Value value) const {
  for (Operation *user : value.getUsers())
    if (auto op = dyn_cast<QuantizeOp>(user))
      if (forward.contains(op) && op->getBlock() == value.getParentBlock() && !casts.contains(op) &&
          isSameCast(op))
        return op;
  return nullptr;
}

Value CastStacks::getSource(Value value) const {
  Value source = value, part;
  while (isView(source.getDefiningOp()) && !findCastInForward(source)) {
    if (!part && source.getDefiningOp<tensor::ExtractSliceOp>())
      part = source;
    source = source.getDefiningOp()->getOperand(0);
  }
  auto result = dyn_cast<OpResult>(source);
  bool isStack = stacked.contains(source) || (result && matchStack(result));
  return part && scale.followsFromTensor() && !isStack ? part : source;
}

bool CastStacks::find(QuantizeOp first) {
  Value value = first.getInputs().front(), source = getSource(value);
  if (source == value || !forward.contains(source))
    return false;
  auto result = dyn_cast<OpResult>(source);
  bool isStack = result && matchStack(result);
  if (isStack ? !addStack(result) : !addReaders(source, /*inBackward=*/true))
    return false;
  return recordsInForward() && (!scale.followsFromTensor() || (isStack && readsWholeSlices()));
}

/// Whether each amax that a cast of a slice records is recorded by a cast of forward too. (The
/// amax of a slice that no iteration inserts is 0, which changes no maximum.)
bool CastStacks::recordsInForward() const {
  auto records = [](Operation *op) { return cast<QuantizeOp>(op).getRecordAmax(); };
  if (llvm::none_of(casts, records))
    return true;
  return !results.empty() && llvm::all_of(results, [&](OpResult result) {
    Value source = getSource(matchStack(result)->insert.getSource());
    QuantizeOp own = findCastInForward(source);
    return stacked.contains(source) || (own && own.getRecordAmax());
  });
}

bool CastStacks::addSource(Value value) {
  auto result = dyn_cast<OpResult>(getSource(value));
  return !result || !matchStack(result) || addStack(result);
}

bool CastStacks::addStack(OpResult result) {
  if (stacked.contains(result))
    return true;
  Stack stack = *matchStack(result);
  if (!isZeroOrUndefined(stack.init->get()))
    return false;
  for (Value value : stack.values)
    stacked[value] = results.size();
  results.push_back(result);
  auto addAll = [&](Value value) { return addReaders(value, /*inBackward=*/false); };
  return addSource(stack.insert.getSource()) && llvm::all_of(stack.values, addAll);
}

bool CastStacks::addReaders(Value value, bool inBackward) {
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    return (inBackward && forward.contains(use.getOwner())) || addReader(use);
  });
}

bool CastStacks::addReader(OpOperand &use) {
  Operation *op = use.getOwner();
  bool isPlumbing = llvm::any_of(results, [&](OpResult result) {
    Stack stack = *matchStack(result);
    return llvm::is_contained(stack.handedOn, &use) ||
           (op == stack.insert && use.get() == stack.insert.getDest());
  });
  if (isPlumbing)
    return true;
  if (isa<tensor::DimOp>(op))
    return sizes.insert(op), true;
  if (auto cast = dyn_cast<QuantizeOp>(op))
    return !(cast.getRecordAmax() && forward.contains(op)) && isSameCast(cast) &&
           use.getOperandNumber() == 0 && (casts.insert(op), true);
  if (isa<AmaxOp>(op))
    return scale.followsFromTensor() && (measures.insert(op), true);
  // The stack of an inner loop is inserted into the stack of an outer loop.
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
    auto dest = dyn_cast<BlockArgument>(insert.getDest());
    auto loop = dest ? dyn_cast<LoopLikeOpInterface>(dest.getOwner()->getParentOp()) : LoopLikeOpInterface();
    if (!loop || use.get() != insert.getSource())
      return false;
    return llvm::any_of(loop->getResults(), [&](OpResult result) {
      std::optional<Stack> stack = matchStack(result);
      return stack && stack->insert == insert && addStack(result);
    });
  }
  if (!isView(op) || use.getOperandNumber() != 0)
    return false;
  views.insert(op);
  return addReaders(op->getResult(0), /*inBackward=*/false);
}

//===----------------------------------------------------------------------===//
// Slices with scales of their own
//===----------------------------------------------------------------------===//

std::optional<SliceDims> CastStacks::findSliceDims(Value value, unsigned depth) const {
  if (auto known = stacked.find(value); known != stacked.end()) {
    if (depth > results.size()) // a stack that is filled from itself
      return std::nullopt;
    tensor::InsertSliceOp insert = matchStack(results[known->second])->insert;
    std::optional<SliceDims> dims = findSliceDims(insert.getSource(), depth + 1);
    return dims ? getSliceDims(insert, *dims) : std::nullopt;
  }
  if (getSource(value) == value)
    return SliceDims();
  Operation *view = value.getDefiningOp();
  std::optional<SliceDims> dims = findSliceDims(view->getOperand(0), depth);
  return dims ? getSliceDims(view, *dims) : std::nullopt;
}

/// Whether all casts read whole slices: their scales are those of the tensors inserted there.
bool CastStacks::readsWholeSlices() const {
  auto readsOne = [&](Operation *op) {
    std::optional<SliceDims> dims = findSliceDims(op->getOperand(0));
    return dims && dims->empty();
  };
  return llvm::all_of(casts, readsOne) && measuresCastsAlone() &&
         llvm::all_of(results, [&](OpResult result) { return savesBytes(result); });
}

/// Whether nothing but casts reads the amaxes and scales that are computed from the slices.
bool CastStacks::measuresCastsAlone() const {
  llvm::SmallPtrSet<Operation *, 8> known(casts.begin(), casts.end());
  SmallVector<Operation *> code;
  for (Operation *op : casts)
    llvm::append_range(code, CastScale::of(cast<QuantizeOp>(op))->getTensorCode());
  known.insert(code.begin(), code.end());
  auto isKnown = [&](Operation *op) {
    while (op && !known.contains(op))
      op = op->getParentOp(); // a scale may be one of two
    return op != nullptr;
  };
  return llvm::all_of(measures, isKnown) &&
         llvm::all_of(code, [&](Operation *op) { return llvm::all_of(op->getUsers(), isKnown); });
}

/// Whether a byte for each element and a scale_inv for each slice are fewer bytes than the elements.
bool CastStacks::savesBytes(OpResult result) const {
  auto type = cast<RankedTensorType>(result.getType());
  std::optional<SliceDims> dims = findSliceDims(result);
  if (!dims)
    return false;
  int64_t elements = 1;
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    if (!llvm::is_contained(*dims, dim))
      elements *= size;
  return elements * (type.getElementTypeBitWidth() / 8 - 1) > int64_t(sizeof(float));
}
