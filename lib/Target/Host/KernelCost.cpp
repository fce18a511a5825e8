// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Walks the code of a kernel with the number of times that it runs, and sums up its accesses to each
// argument. An argument counts at most once in full, however often its elements are accessed.

#include "KernelCost.h"
#include "Memory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/CastInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace fp8;

/// A number that may not be known.
using Count = std::optional<int64_t>;

static Count multiply(Count a, Count b) { return a && b ? Count(*a * *b) : std::nullopt; }

static Count countElements(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped)
    return 1;
  return shaped.hasStaticShape() ? Count(shaped.getNumElements()) : std::nullopt;
}

/// Returns how many floating-point operations one execution of `op` is, without its regions.
static int64_t countOperations(Operation *op) {
  bool isFused = isa<math::FmaOp, vector::FMAOp>(op);
  bool computes = isFused || isa<arith::ArithDialect, math::MathDialect>(op->getDialect());
  if (!computes || op->getNumResults() != 1 || !isa<FloatType>(getElementTypeOrSelf(op->getResult(0))) ||
      isa<CastOpInterface, arith::SelectOp>(op) || op->hasTrait<OpTrait::ConstantLike>())
    return 0;
  return (isFused ? 2 : 1) * countElements(op->getResult(0).getType()).value_or(1);
}

/// Returns the type of a buffer before it was cast to dynamic sizes.
static Type getKnownType(Value memory) {
  while (auto cast = memory.getDefiningOp<memref::CastOp>())
    memory = cast.getSource();
  return memory.getType();
}

/// Returns the value of `size` outside of kernels, if it is a constant or the size of a buffer.
static Count findSize(Value size) {
  if (Count constant = getConstantIntValue(size))
    return constant;
  auto dim = size.getDefiningOp<memref::DimOp>();
  Count position = dim ? dim.getConstantIndex() : std::nullopt;
  auto type = dim ? dyn_cast<MemRefType>(getKnownType(dim.getSource())) : MemRefType();
  if (!position || !type || *position >= type.getRank() || type.isDynamicDim(*position))
    return std::nullopt;
  return type.getDimSize(*position);
}

Attribute fp8::describeOperand(Value operand) {
  Count size = operand.getType().isIndex() ? findSize(operand) : std::nullopt;
  if (size)
    return IntegerAttr::get(operand.getType(), *size);
  return TypeAttr::get(getKnownType(operand));
}

namespace {
class CostCounter {
public:
  CostCounter(func::CallOp call, func::FuncOp kernel) : call(call), kernel(kernel) {}

  KernelCost run();

private:
  /// Returns the operand of the call that `value` is in the kernel; null if it is none.
  Value findOperand(Value value);
  /// Returns a value of the kernel if it is a constant or known from the call.
  Count findBound(Value value);
  /// Returns how often the body of `op` runs for each time that `op` does.
  Count countRuns(Operation *op);
  void count(Region &region, Count runs);
  void countLinalg(linalg::LinalgOp op, Count runs);
  void countEffects(MemoryEffectOpInterface op, Count runs);
  /// Counts the buffers that a called function accesses, in full.
  void countCall(func::CallOp op, Count runs);
  /// Adds accesses to elements of `memory`; unknown ones are accesses to all of them.
  void access(Value memory, Count elements, bool isWrite);
  Count sumUp(const llvm::DenseMap<unsigned, Count> &accesses);

  func::CallOp call;
  func::FuncOp kernel;
  llvm::DenseMap<unsigned, Count> reads, writes; // accessed elements, by number of the argument
  Count operations = 0;
};
} // namespace

Value CostCounter::findOperand(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  bool isOperand = argument && argument.getOwner() == &kernel.getBody().front();
  return isOperand ? call.getOperand(argument.getArgNumber()) : Value();
}

Count CostCounter::findBound(Value value) {
  if (Value operand = findOperand(value))
    return findSize(operand);
  auto dim = value.getDefiningOp<memref::DimOp>();
  Value memory = dim ? findOperand(dim.getSource()) : Value();
  auto type = memory ? dyn_cast<MemRefType>(getKnownType(memory)) : MemRefType();
  Count position = dim ? dim.getConstantIndex() : std::nullopt;
  if (type && position && *position < type.getRank() && !type.isDynamicDim(*position))
    return type.getDimSize(*position);
  return findSize(value);
}

/// Returns the size of the tile in `end` = min(first + size, …), as if all tiles were full.
static Count findTile(OpFoldResult first, OpFoldResult end) {
  auto value = dyn_cast<Value>(end);
  Operation *least = value ? value.getDefiningOp() : nullptr;
  SmallVector<Value> bounds;
  if (isa_and_nonnull<arith::MinUIOp, arith::MinSIOp>(least))
    llvm::append_range(bounds, least->getOperands());
  else if (value)
    bounds.push_back(value);
  for (Value bound : bounds)
    if (auto sum = bound.getDefiningOp<arith::AddIOp>(); sum && OpFoldResult(sum.getLhs()) == first)
      return getConstantIntValue(sum.getRhs());
  return std::nullopt;
}

Count CostCounter::countRuns(Operation *op) {
  auto loop = dyn_cast<LoopLikeOpInterface>(op);
  if (!loop)
    return 1;
  std::optional<SmallVector<OpFoldResult>> lower = loop.getLoopLowerBounds(),
                                           upper = loop.getLoopUpperBounds(), steps = loop.getLoopSteps();
  if (!lower || !upper || !steps)
    return std::nullopt;
  auto find = [&](OpFoldResult bound) {
    auto value = dyn_cast<Value>(bound);
    return value ? findBound(value) : getConstantIntValue(bound);
  };
  Count runs = 1;
  for (auto [first, end, step] : llvm::zip_equal(*lower, *upper, *steps)) {
    Count from = find(first), to = find(end), by = find(step);
    if (Count tile = findTile(first, end)) {
      from = 0;
      to = tile;
    }
    if (!from || !to || !by || *by <= 0)
      return std::nullopt;
    runs = multiply(runs, *to <= *from ? 0 : (*to - *from + *by - 1) / *by);
  }
  return runs;
}

void CostCounter::access(Value memory, Count elements, bool isWrite) {
  while (auto view = memory.getDefiningOp<ViewLikeOpInterface>())
    memory = view.getViewSource();
  if (!findOperand(memory))
    return;
  unsigned number = cast<BlockArgument>(memory).getArgNumber();
  auto [found, isNew] = (isWrite ? writes : reads).try_emplace(number, elements);
  if (!isNew)
    found->second = found->second && elements ? Count(*found->second + *elements) : std::nullopt;
}

void CostCounter::countLinalg(linalg::LinalgOp op, Count runs) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    Count elements = multiply(runs, countElements(operand.get().getType()));
    if (op.payloadUsesValueFromOperand(&operand))
      access(operand.get(), elements, /*isWrite=*/false);
    if (op.isDpsInit(&operand))
      access(operand.get(), elements, /*isWrite=*/true);
  }
  Count points = 1;
  for (int64_t size : op.getStaticLoopRanges())
    points = ShapedType::isDynamic(size) ? std::nullopt : multiply(points, size);
  count(op->getRegion(0), multiply(runs, points));
}

void CostCounter::countEffects(MemoryEffectOpInterface op, Count runs) {
  if (isa<memref::PrefetchOp>(op)) // what it reads is counted where it is used
    return;
  SmallVector<MemoryEffects::EffectInstance> effects;
  op.getEffects(effects);
  // memref.copy accesses whole buffers; loads and stores their result or first operand.
  Type one = op->getNumResults() != 0 ? op->getResult(0).getType() : op->getOperand(0).getType();
  for (const MemoryEffects::EffectInstance &effect : effects)
    if (Value memory = effect.getValue(); memory && isa<MemRefType>(memory.getType())) {
      Type accessed = isa<memref::CopyOp>(op) ? memory.getType() : one;
      if (isa<MemoryEffects::Read, MemoryEffects::Write>(effect.getEffect()))
        access(memory, multiply(runs, countElements(accessed)),
               isa<MemoryEffects::Write>(effect.getEffect()));
    }
}

/// Returns whether `memory`, or a view of it, is read or written.
static bool isAccessed(Value memory, bool isWrite) {
  return llvm::any_of(memory.getUsers(), [&](Operation *user) {
    if (isa<ViewLikeOpInterface>(user))
      return llvm::any_of(user->getResults(), [&](Value view) { return isAccessed(view, isWrite); });
    auto effects = dyn_cast<MemoryEffectOpInterface>(user);
    if (!effects)
      return true;
    return isWrite ? effects.getEffectOnValue<MemoryEffects::Write>(memory).has_value()
                   : effects.getEffectOnValue<MemoryEffects::Read>(memory).has_value();
  });
}

void CostCounter::countCall(func::CallOp op, Count runs) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(kernel, op.getCalleeAttr());
  if (!callee || callee.isExternal())
    return;
  for (auto [operand, argument] : llvm::zip_equal(op.getOperands(), callee.getArguments())) {
    if (!isa<MemRefType>(operand.getType()))
      continue;
    bool isOverwritten = op->hasAttr(kOverwritesSumsAttrName) && argument.getArgNumber() == 2;
    for (bool isWrite : {false, true})
      if (isAccessed(argument, isWrite) && (isWrite || !isOverwritten))
        access(operand, multiply(runs, countElements(getKnownType(operand))), isWrite);
  }
}

void CostCounter::count(Region &region, Count runs) {
  for (Operation &op : region.getOps()) {
    if (int64_t here = countOperations(&op)) {
      Count all = multiply(runs, here);
      operations = operations && all ? Count(*operations + *all) : std::nullopt;
    }
    if (auto structured = dyn_cast<linalg::LinalgOp>(op)) {
      countLinalg(structured, runs);
      continue;
    }
    if (auto inner = dyn_cast<func::CallOp>(op))
      countCall(inner, runs);
    auto effects = dyn_cast<MemoryEffectOpInterface>(op);
    if (effects && op.getNumRegions() == 0 && op.getNumOperands() != 0)
      countEffects(effects, runs);
    for (Region &inner : op.getRegions())
      count(inner, multiply(runs, countRuns(&op)));
  }
}

Count CostCounter::sumUp(const llvm::DenseMap<unsigned, Count> &accesses) {
  int64_t sum = 0;
  for (auto [argument, elements] : accesses) {
    Type type = getKnownType(call.getOperand(argument));
    Count size = countElements(type);
    if (!size && !elements)
      return std::nullopt;
    int64_t touched = std::min(size.value_or(INT64_MAX), elements.value_or(INT64_MAX));
    sum += touched * static_cast<int64_t>(getElementBytes(getElementTypeOrSelf(type)));
  }
  return sum;
}

KernelCost CostCounter::run() {
  count(kernel.getBody(), 1);
  return {sumUp(reads), sumUp(writes), operations};
}

KernelCost fp8::countKernelCost(func::CallOp call, func::FuncOp kernel) {
  return CostCounter(call, kernel).run();
}
