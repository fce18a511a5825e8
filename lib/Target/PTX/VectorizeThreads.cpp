// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives each thread of an elementwise kernel several neighbouring points, whose elements it loads and stores
// as vectors: the memory is faster with accesses of 16 bytes, and what points share is computed once. The
// code of a point stays scalar, since LLVM pairs the instructions that exist for pairs.

#include "ThreadLoop.h"
#include "fp8/Conversion/FP8ToGPU/Alignment.h"
#include "fp8/Conversion/FP8ToGPU/Kernels.h"
#include "fp8/Dialect/FP8/IR/Chips.h"
#include "fp8/Target/PTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

namespace fp8 {
#define GEN_PASS_DEF_VECTORIZETHREADS
#include "fp8/Target/PTX/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// The fewest threads of a block: with less, a multiprocessor holds its most blocks before its most threads.
static constexpr int64_t kFewestThreads = 64;
/// Operations of a math function, and the most of a thread: kernels that compute more for an access do not
/// wait for memory, and the text of a kernel grows with them.
static constexpr int64_t kMathOperations = 20, kMostOperations = 512;

static Value getMemRef(Operation *access) {
  auto load = dyn_cast<memref::LoadOp>(access);
  return load ? load.getMemRef() : cast<memref::StoreOp>(access).getMemRef();
}

static ValueRange getIndices(Operation *access) {
  auto load = dyn_cast<memref::LoadOp>(access);
  return load ? ValueRange(load.getIndices()) : ValueRange(cast<memref::StoreOp>(access).getIndices());
}

static Type getElementType(Operation *access) {
  return cast<MemRefType>(getMemRef(access).getType()).getElementType();
}

static int64_t getBytes(Operation *access) { return getElementType(access).getIntOrFloatBitWidth() / 8; }

/// Returns a number that divides the stride of dimension `dim`.
static int64_t findStrideDivisor(MemRefType type, unsigned dim) {
  auto [strides, offset] = type.getStridesAndOffset();
  if (!ShapedType::isDynamic(strides[dim]))
    return strides[dim];
  int64_t divisor = 1;
  if (type.getLayout().isIdentity())
    for (int64_t size : type.getShape().drop_front(dim + 1))
      divisor *= ShapedType::isDynamic(size) ? 1 : size;
  return divisor;
}

namespace {
/// The points that a thread computes, and the threads of a block.
struct Choice {
  int64_t points, threads;
};

class PointVectorizer {
public:
  PointVectorizer(scf::ParallelOp loop, ArrayRef<func::CallOp> calls, const Chip &chip)
      : loop(loop), calls(calls), chip(chip) {}

  /// Returns whether neighbouring points access adjacent elements; finds the accesses.
  bool analyze();
  std::optional<Choice> choose() const;
  void rewrite(const Choice &choice);

private:
  bool isAdjacent(Operation *access) const;
  int64_t findAlignment(Operation *access) const;
  int64_t findAlignment(Value memref) const;
  int64_t findOffsetAlignment(OpFoldResult offset, int64_t bytes) const;
  std::optional<int64_t> chooseThreads(int64_t points) const;
  void loadVector(memref::LoadOp load, int64_t points);
  void storeVector(memref::StoreOp store, int64_t points);
  void repeat(Operation *op, int64_t points);
  void buildIndices(int64_t points);

  scf::ParallelOp loop;
  ArrayRef<func::CallOp> calls;
  const Chip &chip;
  Value last;                                       ///< the index along the last dimension
  int64_t size = 0;                                 ///< of the last dimension
  llvm::DenseSet<Value> varying;                    ///< values that differ between neighbouring points
  SmallVector<Operation *> accesses;                ///< of adjacent elements
  int64_t operations = 0;                           ///< of a point
  llvm::DenseMap<Value, SmallVector<Value>> values; ///< of each point, of the values that vary
};
} // namespace

//===----------------------------------------------------------------------===//
// Analysis
//===----------------------------------------------------------------------===//

bool PointVectorizer::isAdjacent(Operation *access) const {
  auto type = cast<MemRefType>(getMemRef(access).getType());
  Type element = type.getElementType();
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!element.isIntOrFloat() || element.getIntOrFloatBitWidth() % 8 != 0 ||
      (type.hasStaticShape() && type.getNumElements() == 0) ||
      failed(type.getStridesAndOffset(strides, offset)))
    return false;
  bool isFound = false;
  for (auto [index, stride] : llvm::zip_equal(getIndices(access), strides)) {
    if (index == last && stride == 1 && !isFound)
      isFound = true;
    else if (varying.contains(index))
      return false;
  }
  return isFound;
}

bool PointVectorizer::analyze() {
  if (!isConstantIntValue(loop.getLowerBound().back(), 0) || !isConstantIntValue(loop.getStep().back(), 1))
    return false;
  size = getConstantIntValue(loop.getUpperBound().back()).value_or(0);
  last = loop.getInductionVars().back();
  varying.insert(last);
  for (Operation &op : loop.getBody()->without_terminator()) {
    bool varies = llvm::any_of(op.getOperands(), [&](Value operand) { return varying.contains(operand); });
    bool isStore = isa<memref::StoreOp>(op);
    if (isStore || (varies && isa<memref::LoadOp>(op))) {
      if (!isAdjacent(&op))
        return false;
      accesses.push_back(&op);
    } else if (op.getNumRegions() != 0 || !(isa<memref::LoadOp>(op) || isMemoryEffectFree(&op))) {
      return false;
    }
    if (varies)
      varying.insert(op.result_begin(), op.result_end());
    operations += isa<math::MathDialect>(op.getDialect()) ? kMathOperations : 1;
  }
  return size > 0 && !accesses.empty();
}

/// Returns a power of two that divides `offset`, an offset in a kernel's argument or an operand of a call,
/// times `bytes`.
int64_t PointVectorizer::findOffsetAlignment(OpFoldResult offset, int64_t bytes) const {
  if (std::optional<int64_t> constant = getConstantIntValue(offset))
    return std::gcd(kAccessBytes, *constant * bytes);
  auto value = cast<Value>(offset);
  if (auto metadata = value.getDefiningOp<memref::ExtractStridedMetadataOp>())
    return value == metadata.getOffset() ? findBaseAlignment(metadata.getSource()) : bytes;
  auto argument = dyn_cast<BlockArgument>(value);
  int64_t alignment = std::gcd(kAccessBytes, argument ? int64_t(0) : bytes);
  if (argument && argument.getOwner()->isEntryBlock() && argument.getOwner() == loop->getBlock())
    for (func::CallOp call : calls)
      alignment = std::gcd(alignment, findOffsetAlignment(call.getOperand(argument.getArgNumber()), bytes));
  return alignment;
}

/// Returns a power of two that divides the address of the first element of `memref` at every call.
int64_t PointVectorizer::findAlignment(Value memref) const {
  auto type = cast<MemRefType>(memref.getType());
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  if (auto argument = dyn_cast<BlockArgument>(memref)) {
    int64_t alignment = kAccessBytes;
    for (func::CallOp call : calls)
      alignment = std::gcd(alignment, findBaseAlignment(call.getOperand(argument.getArgNumber())));
    return alignment;
  }
  auto view = memref.getDefiningOp<ViewLikeOpInterface>();
  if (!view)
    return bytes;
  // The offset of a view counts from the start of the buffer, which that of its source may have too.
  if (auto cast = memref.getDefiningOp<memref::ReinterpretCastOp>())
    return std::gcd(findAlignment(cast.getSource()),
                    findOffsetAlignment(cast.getMixedOffsets().front(), bytes));
  auto [strides, offset] = type.getStridesAndOffset();
  return ShapedType::isDynamic(offset) ? bytes
                                       : std::gcd(findAlignment(view.getViewSource()), offset * bytes);
}

/// Returns a power of two that divides the address of the first of any points that are accessed together, if
/// their number is a power of two as large.
int64_t PointVectorizer::findAlignment(Operation *access) const {
  Value memref = getMemRef(access);
  auto type = cast<MemRefType>(memref.getType());
  int64_t alignment = findAlignment(memref);
  for (auto [dim, index] : llvm::enumerate(getIndices(access)))
    if (index != last)
      alignment = std::gcd(alignment, getConstantIntValue(index).value_or(1) * findStrideDivisor(type, dim) *
                                          getBytes(access));
  return alignment;
}

/// Returns the threads of a block such that every multiprocessor has one; none if there are too few threads.
std::optional<int64_t> PointVectorizer::chooseThreads(int64_t points) const {
  std::optional<int64_t> all = countIterations(loop);
  for (int64_t threads = kThreads; threads >= kFewestThreads; threads /= 2)
    if (!all || llvm::divideCeil(*all / points, threads) >= uint64_t(chip.multiprocessors))
      return threads;
  return std::nullopt;
}

std::optional<Choice> PointVectorizer::choose() const {
  int64_t widest = 1;
  for (Operation *access : accesses)
    widest = std::max(widest, getBytes(access));
  for (int64_t points = kAccessBytes / widest; points > 1; points /= 2) {
    auto isAligned = [&](Operation *access) {
      return findAlignment(access) % (points * getBytes(access)) == 0;
    };
    if (size % points != 0 || points * operations > kMostOperations || !llvm::all_of(accesses, isAligned))
      continue;
    if (std::optional<int64_t> threads = chooseThreads(points))
      return Choice{points, *threads};
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Rewrite
//===----------------------------------------------------------------------===//

void PointVectorizer::loadVector(memref::LoadOp load, int64_t points) {
  OpBuilder b(load);
  Value vector = vector::LoadOp::create(b, load.getLoc(), VectorType::get(points, load.getType()),
                                        load.getMemRef(), load.getIndices(), /*nontemporal=*/false,
                                        llvm::MaybeAlign(points * getBytes(load)));
  llvm::append_range(values[load.getResult()],
                     vector::ToElementsOp::create(b, load.getLoc(), vector).getResults());
}

void PointVectorizer::storeVector(memref::StoreOp store, int64_t points) {
  OpBuilder b(store);
  auto type = VectorType::get(points, getElementType(store));
  Value stored = store.getValueToStore();
  Value vector = varying.contains(stored)
                     ? vector::FromElementsOp::create(b, store.getLoc(), type, values[stored]).getResult()
                     : vector::BroadcastOp::create(b, store.getLoc(), type, stored).getResult();
  vector::StoreOp::create(b, store.getLoc(), vector, store.getMemRef(), store.getIndices(),
                          /*nontemporal=*/false, llvm::MaybeAlign(points * getBytes(store)));
}

/// Copies `op` for each point.
void PointVectorizer::repeat(Operation *op, int64_t points) {
  OpBuilder b(op);
  for (int64_t i = 0; i < points; ++i) {
    IRMapping mapping;
    for (Value operand : op->getOperands())
      if (varying.contains(operand))
        mapping.map(operand, values[operand][i]);
    Operation *copy = b.clone(*op, mapping);
    for (auto [before, after] : llvm::zip_equal(op->getResults(), copy->getResults()))
      values[before].push_back(after);
  }
}

/// Builds the index of each point.
void PointVectorizer::buildIndices(int64_t points) {
  auto b = OpBuilder::atBlockBegin(loop.getBody());
  Location loc = loop.getLoc();
  values[last] = {last};
  for (int64_t i = 1; i < points; ++i) {
    Value number = arith::ConstantIndexOp::create(b, loc, i);
    values[last].push_back(arith::AddIOp::create(b, loc, last, number));
  }
}

void PointVectorizer::rewrite(const Choice &choice) {
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  loop.getStepMutable()[loop.getStep().size() - 1].set(arith::ConstantIndexOp::create(b, loc, choice.points));
  loop->setAttr(kThreadsAttrName, b.getI32IntegerAttr(choice.threads));
  SmallVector<Operation *> old =
      llvm::map_to_vector(loop.getBody()->without_terminator(), [](Operation &op) { return &op; });
  if (llvm::any_of(last.getUsers(), [&](Operation *user) { return !llvm::is_contained(accesses, user); }))
    buildIndices(choice.points);
  SmallVector<Operation *> replaced;
  for (Operation *op : old) {
    auto load = dyn_cast<memref::LoadOp>(op);
    auto store = dyn_cast<memref::StoreOp>(op);
    if (llvm::none_of(op->getOperands(), [&](Value operand) { return varying.contains(operand); }))
      continue;
    if (load)
      loadVector(load, choice.points);
    else if (store)
      storeVector(store, choice.points);
    else
      repeat(op, choice.points);
    replaced.push_back(op);
  }
  for (Operation *op : llvm::reverse(replaced))
    op->erase();
}

namespace {
struct VectorizeThreadsPass : public fp8::impl::VectorizeThreadsBase<VectorizeThreadsPass> {
  void runOnOperation() override {
    llvm::MapVector<StringRef, SmallVector<func::CallOp>> calls;
    getOperation().walk([&](func::CallOp call) { calls[call.getCallee()].push_back(call); });
    auto target = dyn_cast<ChipAttr>(getTarget(getOperation()));
    const Chip &chip = target ? getChip(target) : listChips().front();
    SymbolTable symbols(getOperation());
    for (auto &[name, callers] : calls) {
      auto function = symbols.lookup<func::FuncOp>(name);
      scf::ParallelOp loop =
          function && !function.isExternal() ? findParallelLoop(function) : scf::ParallelOp();
      if (!loop || !hasHostBounds(loop))
        continue;
      PointVectorizer vectorizer(loop, callers, chip);
      if (!vectorizer.analyze())
        continue;
      if (std::optional<Choice> choice = vectorizer.choose())
        vectorizer.rewrite(*choice);
    }
  }
};
} // namespace
