// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Looks through views to the tensors behind them.

#include "fp8/Analysis/TensorIdentity.h"
#include "fp8/Analysis/Dequantization.h"
#include "fp8/Analysis/Rearrangement.h"
#include "fp8/Analysis/RegionFlow.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace fp8;

static ArrayRef<int64_t> getShape(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

//===----------------------------------------------------------------------===//
// One step towards the tensor
//===----------------------------------------------------------------------===//

/// Matches a transpose, a cast, or a dequantization, whose result is the same tensor scaled.
static std::optional<Rearrangement> matchView(Operation *op) {
  if (std::optional<Rearrangement> view = matchRearrangement(op))
    return view;
  std::optional<Dequantization> bytes =
      op->getNumResults() == 1 ? matchDequantization(op->getResult(0)) : std::nullopt;
  if (!bytes || bytes->data == op->getResult(0))
    return std::nullopt;
  return Rearrangement{bytes->data, bytes->map};
}

/// Steps through a transpose or cast; returns false if it is a broadcast.
static bool stepThrough(const Rearrangement &view, Value &value, DimUses &uses) {
  ArrayRef<int64_t> shape = getShape(value);
  for (unsigned d = 0; d < shape.size(); ++d)
    if (shape[d] != 1 && !view.map.isFunctionOfDim(d))
      return false;
  DimUses inner;
  for (AffineExpr expr : view.map.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    inner.push_back(dim ? uses[dim.getPosition()] : uint8_t(kUnused));
  }
  value = view.input;
  uses = std::move(inner);
  return true;
}

static void stepThrough(tensor::CollapseShapeOp op, Value &value, DimUses &uses) {
  DimUses inner;
  for (auto [group, use] : llvm::zip(op.getReassociationIndices(), uses))
    inner.append(group.size(), use);
  inner.resize(op.getSrcType().getRank(), kUnused); // a scalar has no groups
  value = op.getSrc();
  uses = std::move(inner);
}

static void stepThrough(tensor::ExpandShapeOp op, Value &value, DimUses &uses) {
  ArrayRef<int64_t> shape = getShape(value);
  DimUses inner;
  for (const ReassociationIndices &group : op.getReassociationIndices()) {
    inner.push_back(kUnused);
    for (int64_t d : group)
      if (shape[d] != 1)
        inner.back() |= uses[d];
  }
  value = op.getSrc();
  uses = std::move(inner);
}

/// Transfers uses between shapes that differ in unit dimensions only; returns false otherwise.
static bool transferUses(ArrayRef<int64_t> from, ArrayRef<int64_t> to, DimUses &uses) {
  DimUses moved(to.size(), kUnused);
  size_t position = 0;
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] == 1)
      continue;
    while (position < to.size() && to[position] == 1)
      ++position;
    if (position == to.size() || to[position] != from[d])
      return false;
    moved[position++] = uses[d];
  }
  uses = std::move(moved);
  return true;
}

/// Returns what control flow forwards to a value; null if that is not one value.
using Forwarding = function_ref<Value(Value)>;

/// Takes one step through a view that keeps all elements; returns false if there is none.
static bool stepThroughView(Value &value, DimUses &uses, Forwarding getForwarded) {
  if (Value forwarded = getForwarded(value)) {
    value = forwarded;
    return true;
  }
  Operation *op = value.getDefiningOp();
  if (!op || !isa<RankedTensorType>(value.getType()))
    return false;
  if (auto castOp = dyn_cast<tensor::CastOp>(op)) {
    if (!isa<RankedTensorType>(castOp.getSource().getType()))
      return false;
    value = castOp.getSource();
    return true;
  }
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return stepThrough(collapse, value, uses), true;
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return stepThrough(expand, value, uses), true;
  if (Value stacked = getStackedValue(value)) {
    if (!transferUses(getShape(value), getShape(stacked), uses))
      return false;
    value = stacked;
    return true;
  }
  std::optional<Rearrangement> view = matchView(op);
  return view && stepThrough(*view, value, uses);
}

/// Takes all steps. Visits no value twice, because a stack may be filled from itself.
static void stepThroughViews(Value &value, DimUses &uses, llvm::SmallPtrSetImpl<Value> &seen,
                             Forwarding getForwarded) {
  while (seen.insert(value).second && stepThroughView(value, uses, getForwarded)) {
  }
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

unsigned TensorIdentity::number(Value value, Operation *reader) {
  auto slice = value.getDefiningOp<tensor::ExtractSliceOp>();
  if (!slice) {
    auto [it, isNew] = values.try_emplace(equalValues.getLayout(value, reader).tensor, count);
    count += isNew;
    return it->second;
  }
  std::vector<int64_t> key;
  for (ArrayRef<int64_t> part : {slice.getStaticOffsets(), slice.getStaticSizes(), slice.getStaticStrides()})
    key.insert(key.end(), part.begin(), part.end());
  DimUses unused(slice.getSourceType().getRank(), kUnused);
  unsigned source = resolve(slice.getSource(), std::move(unused), reader).tensor;
  auto [it, isNew] = slices.try_emplace({source, std::move(key)}, count);
  count += isNew;
  return it->second;
}

TensorUse TensorIdentity::resolve(Value value, DimUses uses, Operation *reader) {
  llvm::SmallPtrSet<Value, 8> seen;
  stepThroughViews(value, uses, seen, [&](Value v) { return equalValues.getForwarded(v, reader); });
  DimUses kept;
  if (isa<RankedTensorType>(value.getType())) {
    std::vector<unsigned> dims = equalValues.getLayout(value, reader).dims;
    for (unsigned dim = 0; dim < dims.size(); ++dim) {
      unsigned place = llvm::find(dims, dim) - dims.begin();
      if (getShape(value)[place] != 1)
        kept.push_back(uses[place]);
    }
  }
  return {number(value, reader), std::move(kept)};
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

/// Takes one step through a view that may drop or repeat elements, or between a tensor and the part that a
/// rank has; returns false if there is none.
static bool stepThroughPart(Value &value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto gather = dyn_cast<AllGatherOp>(op)) {
    value = gather.getInput();
    return true;
  }
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    value = slice.getSource();
    return true;
  }
  std::optional<Rearrangement> view = matchView(op);
  if (view)
    value = view->input;
  return view.has_value();
}

Value fp8::getParameter(Value value) {
  llvm::SmallPtrSet<Value, 8> seen;
  do {
    if (!isa<RankedTensorType>(value.getType()))
      return nullptr;
    DimUses unused(getShape(value).size(), kUnused);
    stepThroughViews(value, unused, seen, getOnlyOrigin);
  } while (stepThroughPart(value));
  if (!isa<FloatType>(getElementTypeOrSelf(value)))
    return nullptr;
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner()->isEntryBlock() && isa<FunctionOpInterface>(argument.getOwner()->getParentOp())
               ? value
               : Value();
  if (value.getDefiningOp<EndForwardOp>()) // an argument of backward
    return value;
  // The buffer of a constant global.
  if (auto toTensor = value.getDefiningOp<bufferization::ToTensorOp>())
    return toTensor.getBuffer().getDefiningOp<memref::GetGlobalOp>() ? value : Value();
  return matchPattern(value, m_Constant()) ? value : Value();
}
