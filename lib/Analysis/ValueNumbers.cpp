// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Visits operations in program order, so that their operands are numbered before them.

#include "fp8/Analysis/ValueNumbers.h"
#include "fp8/Analysis/Branches.h"
#include "fp8/Analysis/Rearrangement.h"
#include "fp8/Analysis/RegionFlow.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace fp8;

static constexpr auto kIgnoreLocations = OperationEquivalence::IgnoreLocations;

static bool hasVaryingOffset(tensor::ExtractSliceOp slice) {
  return llvm::is_contained(slice.getStaticOffsets(), ShapedType::kDynamic);
}

static bool hasOneElement(Value tensor) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  return type && type.hasStaticShape() && type.getNumElements() == 1;
}

Value fp8::getStackedValue(Value value) {
  auto slice = value.getDefiningOp<tensor::ExtractSliceOp>();
  if (!slice || !hasVaryingOffset(slice))
    return nullptr;
  tensor::InsertSliceOp insert;
  for (Value origin : getOrigins(slice.getSource())) {
    auto candidate = origin.getDefiningOp<tensor::InsertSliceOp>();
    // Other origins are the initial contents of the stack.
    if (candidate && insert)
      return nullptr;
    if (candidate)
      insert = candidate;
  }
  if (!insert || insert.getStaticSizes() != slice.getStaticSizes() ||
      insert.getStaticOffsets() != slice.getStaticOffsets() ||
      insert.getStaticStrides() != slice.getStaticStrides())
    return nullptr;
  return insert.getSource();
}

/// Returns what the branch that `value` is a result of yields for it where `reader` is, in another branch of
/// an equal selector; null for every other value.
Value ValueNumbers::getTaken(Value value, Operation *reader) {
  Operation *branch = value.getDefiningOp();
  Value selector = reader ? getSelector(branch) : Value();
  if (!selector || !open.insert(branch).second) // a loop may carry selectors round
    return nullptr;
  unsigned number = get(selector, branch);
  Value taken;
  for (Region *region = reader->getParentRegion(); region && !taken; region = region->getParentRegion())
    if (std::optional<SelectorValue> known = getSelectorValue(*region);
        known && get(known->selector, region->getParentOp()) == number)
      taken = getYielded(value, *known);
  open.erase(branch);
  return taken;
}

Value ValueNumbers::getForwarded(Value value, Operation *reader) {
  Value taken = getTaken(value, reader);
  return taken ? taken : getOnlyOrigin(value);
}

/// Returns the value of the same type that `value` is a copy of, through loops, branches and stacks.
Value ValueNumbers::getCopied(Value value, Operation *reader) {
  llvm::SmallPtrSet<Value, 4> seen; // a stack may be filled from itself
  while (seen.insert(value).second) {
    Value next = getForwarded(value, reader);
    if (!next)
      next = getStackedValue(value);
    if (!next || next.getType() != value.getType())
      break;
    value = next;
  }
  return value;
}

ValueNumbers::ValueNumbers(FunctionOpInterface function) {
  function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == function)
      return WalkResult::advance();
    visit(op);
    // Values in linalg bodies get no numbers.
    return isa<RegionBranchOpInterface>(op) ? WalkResult::advance() : WalkResult::skip();
  });
}

unsigned ValueNumbers::get(Value value, Operation *reader) {
  auto [it, isNew] = numbers.try_emplace(getCopied(value, reader), count);
  count += isNew;
  return it->second;
}

void ValueNumbers::visit(Operation *op) {
  if (op->getNumResults() == 0 || !isMemoryEffectFree(op))
    return;
  auto extract = dyn_cast<tensor::ExtractOp>(op);
  if (extract && hasOneElement(extract.getTensor()))
    numbers[extract] = numberElement(extract.getTensor(), op);
  else if (std::optional<Layout> layout = layOut(op))
    numbers[op->getResult(0)] = numberOf(std::move(*layout));
  else if (Operation *equal = findEqual(op))
    for (auto [result, known] : llvm::zip(op->getResults(), equal->getResults()))
      numbers[result] = get(known);
}

/// Returns the tensor that `tensor`, of one element, is a reshape or a broadcast of.
Value ValueNumbers::getReshaped(Value tensor, Operation *reader) {
  llvm::SmallPtrSet<Value, 4> seen;
  while (seen.insert(tensor = getCopied(tensor, reader)).second) {
    Operation *op = tensor.getDefiningOp();
    std::optional<Rearrangement> view = op ? matchRearrangement(op) : std::nullopt;
    if (isa_and_present<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp>(op))
      tensor = op->getOperand(0);
    else if (view && !view->cast && hasOneElement(view->input))
      tensor = view->input;
  }
  return tensor;
}

/// Returns the number of the only element of `tensor`.
unsigned ValueNumbers::numberElement(Value tensor, Operation *reader) {
  Value whole = getReshaped(tensor, reader);
  if (auto made = whole.getDefiningOp<tensor::FromElementsOp>())
    return get(made.getElements().front(), made);
  auto [it, isNew] = elements.try_emplace(get(whole), count);
  count += isNew;
  return it->second;
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

static std::vector<unsigned> identity(unsigned rank) {
  auto dims = llvm::seq<unsigned>(0, rank);
  return std::vector<unsigned>(dims.begin(), dims.end());
}

ValueNumbers::Layout ValueNumbers::getLayout(Value value, Operation *reader) {
  unsigned number = get(value, reader);
  auto layout = layouts.find(number);
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return layout != layouts.end() ? layout->second : Layout{number, identity(type ? type.getRank() : 0)};
}

unsigned ValueNumbers::numberOf(Layout layout) {
  if (layout.dims == identity(layout.dims.size()))
    return layout.tensor;
  auto [it, isNew] = numbersOfLayouts.try_emplace(layout, count);
  if (isNew)
    layouts[count++] = std::move(layout);
  return it->second;
}

/// Returns the layout of the result of a cast, a transpose or a matmul; unset for other operations.
std::optional<ValueNumbers::Layout> ValueNumbers::layOut(Operation *op) {
  auto matmul = dyn_cast<MatmulOp>(op);
  if (matmul && matmul.getInit().getDefiningOp<tensor::EmptyOp>())
    return layOutMatmul(matmul);
  std::optional<Rearrangement> view = matchRearrangement(op);
  if (!view || !view->map.isPermutation())
    return std::nullopt;
  Layout layout = getLayout(view->input, op);
  if (view->cast) {
    const void *type = getElementTypeOrSelf(op->getResult(0)).getAsOpaquePointer();
    auto [it, isNew] = casts.try_emplace({layout.tensor, type}, count);
    count += isNew;
    layout.tensor = it->second;
  }
  std::vector<unsigned> dims(layout.dims.size());
  for (auto [i, dim] : llvm::enumerate(layout.dims))
    dims[view->map.getDimPosition(i)] = dim;
  return Layout{layout.tensor, std::move(dims)};
}

/// Matmuls with the same loops over the same tensors are equal. Loops are numbered in the order in
/// which they occur in the operands.
ValueNumbers::Layout ValueNumbers::layOutMatmul(MatmulOp op) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  llvm::SmallMapVector<unsigned, unsigned, 4> loops;
  Layout operands[2];
  for (unsigned operand : {0, 1}) {
    Layout layout = getLayout(op->getOperand(operand), op);
    operands[operand] = {layout.tensor, std::vector<unsigned>(layout.dims.size())};
    std::vector<unsigned> positions(layout.dims.size());
    for (auto [i, dim] : llvm::enumerate(layout.dims))
      positions[dim] = maps[operand].getDimPosition(i);
    for (auto [dim, position] : llvm::enumerate(positions))
      operands[operand].dims[dim] = loops.insert({position, loops.size()}).first->second;
  }
  std::vector<unsigned> result;
  for (unsigned i = 0; i < maps[2].getNumResults(); ++i)
    result.push_back(loops.lookup(maps[2].getDimPosition(i)));
  std::vector<unsigned> sorted = result;
  llvm::sort(sorted);
  const void *type = getElementTypeOrSelf(op->getResult(0)).getAsOpaquePointer();
  auto [it, isNew] = matmuls.try_emplace({operands[0], operands[1], sorted, type}, count);
  count += isNew;
  for (unsigned &dim : result)
    dim = llvm::find(sorted, dim) - sorted.begin();
  return {it->second, std::move(result)};
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// Returns an operation before `op` that computes the same values; null if there is none.
Operation *ValueNumbers::findEqual(Operation *op) {
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op); slice && hasVaryingOffset(slice)) {
    std::vector<int64_t> key;
    for (ArrayRef<int64_t> part : {slice.getStaticOffsets(), slice.getStaticSizes(), slice.getStaticStrides(),
                                   slice.getType().getShape()})
      key.insert(key.end(), part.begin(), part.end());
    auto [it, isNew] = slices.try_emplace({get(slice.getSource(), op), std::move(key)}, op);
    return isNew ? nullptr : it->second;
  }
  auto hashOperand = [&](Value operand) { return llvm::hash_value(get(operand, op)); };
  std::vector<Operation *> &alike = operations[OperationEquivalence::computeHash(
      op, hashOperand, OperationEquivalence::ignoreHashValue, kIgnoreLocations)];
  for (Operation *other : alike)
    if (areEqual(other, op))
      return other;
  alike.push_back(op);
  return nullptr;
}

bool ValueNumbers::areEqual(Operation *a, Operation *b) {
  DenseMap<Value, Value> inside; // values of the regions
  return OperationEquivalence::isEquivalentTo(
      a, b,
      [&](Value x, Value y) {
        auto known = inside.find(x);
        return success(known != inside.end() ? known->second == y : get(x, a) == get(y, b));
      },
      [&](Value x, Value y) { inside[x] = y; }, kIgnoreLocations);
}
