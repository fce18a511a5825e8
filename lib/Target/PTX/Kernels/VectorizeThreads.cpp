// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives each thread of an elementwise kernel several neighbouring points, whose elements it loads and stores
// as vectors: the memory is faster with accesses of 16 bytes, and what points share is computed once. The
// code of a point stays scalar, since LLVM pairs the instructions that exist for pairs.

#include "KernelAlignment.h"
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
  PointVectorizer(scf::ParallelOp loop, const Chip &chip, const KernelAlignment &alignment)
      : loop(loop), chip(chip), kernelAlignment(alignment) {}

  /// Returns whether neighbouring points access adjacent elements; finds the accesses.
  bool analyze();
  std::optional<Choice> choose() const;
  void rewrite(const Choice &choice);

private:
  bool analyze(Block &block);
  bool analyze(Operation *op);
  bool isPlace(Operation *op) const;
  bool isAdjacent(Operation *access) const;
  int64_t findAlignment(Operation *access) const;
  std::optional<int64_t> chooseThreads(int64_t points) const;
  void rewrite(Block &block);
  void rewriteBranch(scf::IfOp branch);
  void repeat(Operation *op);
  void buildIndices(Value place);
  Value join(OpBuilder &b, Location loc, Value value);
  void split(OpBuilder &b, Value vector, Value value);

  scf::ParallelOp loop;
  const Chip &chip;
  const KernelAlignment &kernelAlignment;
  Value last;                        ///< the index along the last dimension
  int64_t size = 0;                  ///< of the last dimension
  llvm::DenseSet<Value> varying;     ///< values that differ between neighbouring points
  llvm::DenseSet<Value> places;      ///< of these: `last`, and what is a multiple of 16 away from it
  SmallVector<Operation *> accesses; ///< of adjacent elements
  int64_t operations = 0;            ///< of a point
  int64_t points = 1;
  llvm::DenseMap<Value, SmallVector<Value>> values; ///< of each point, of the values that vary
};
} // namespace

//===----------------------------------------------------------------------===//
// Analysis
//===----------------------------------------------------------------------===//

/// Returns whether the constant operand 1 of `op` is a multiple of all points that a thread may have.
static bool isWholeConstant(Operation *op) {
  std::optional<int64_t> constant = getConstantIntValue(op->getOperand(1));
  return constant && *constant % kAccessBytes == 0;
}

/// Returns whether `op` computes a place in a part of the last dimension, such as the second half of a row.
bool PointVectorizer::isPlace(Operation *op) const {
  return isa<arith::AddIOp, arith::SubIOp>(op) && places.contains(op->getOperand(0)) && isWholeConstant(op);
}

/// Returns whether all points of a thread are on the same side of a place.
static bool isSameForPoints(arith::CmpIOp compare) {
  using arith::CmpIPredicate;
  return llvm::is_contained({CmpIPredicate::ult, CmpIPredicate::uge, CmpIPredicate::slt, CmpIPredicate::sge},
                            compare.getPredicate()) &&
         isWholeConstant(compare);
}

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
    if (places.contains(index) && stride == 1 && !isFound)
      isFound = true;
    else if (varying.contains(index))
      return false;
  }
  return isFound;
}

bool PointVectorizer::analyze(Operation *op) {
  operations += isa<math::MathDialect>(op->getDialect()) ? kMathOperations : 1;
  bool varies = llvm::any_of(op->getOperands(), [&](Value operand) { return varying.contains(operand); });
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    varying.insert_range(op->getResults());
    auto isNumber = [](Type type) { return type.isIntOrIndexOrFloat(); };
    return !varies && llvm::all_of(op->getResultTypes(), isNumber) &&
           llvm::all_of(op->getRegions(),
                        [&](Region &region) { return region.empty() || analyze(region.front()); });
  }
  if (isa<memref::StoreOp>(op) || (varies && isa<memref::LoadOp>(op))) {
    if (!isAdjacent(op))
      return false;
    accesses.push_back(op);
  } else if (op->getNumRegions() != 0 || !(isa<memref::LoadOp>(op) || isMemoryEffectFree(op))) {
    return false;
  }
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    varies &= !places.contains(compare.getLhs()) || !isSameForPoints(compare);
  if (varies)
    varying.insert_range(op->getResults());
  if (isPlace(op))
    places.insert(op->getResult(0));
  return true;
}

bool PointVectorizer::analyze(Block &block) {
  return llvm::all_of(block.without_terminator(), [&](Operation &op) { return analyze(&op); });
}

bool PointVectorizer::analyze() {
  if (!isConstantIntValue(loop.getLowerBound().back(), 0) || !isConstantIntValue(loop.getStep().back(), 1))
    return false;
  size = getConstantIntValue(loop.getUpperBound().back()).value_or(0);
  last = loop.getInductionVars().back();
  varying.insert(last);
  places.insert(last);
  return size > 0 && analyze(*loop.getBody()) && !accesses.empty();
}

/// Returns a power of two that divides the address of the first of any points that are accessed together, if
/// their number is a power of two as large.
int64_t PointVectorizer::findAlignment(Operation *access) const {
  Value memref = getMemRef(access);
  auto type = cast<MemRefType>(memref.getType());
  int64_t alignment = kernelAlignment.find(memref);
  for (auto [dim, index] : llvm::enumerate(getIndices(access)))
    if (!places.contains(index))
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

/// Returns a vector of the values of all points.
Value PointVectorizer::join(OpBuilder &b, Location loc, Value value) {
  auto type = VectorType::get(points, value.getType());
  if (!varying.contains(value))
    return vector::BroadcastOp::create(b, loc, type, value);
  return vector::FromElementsOp::create(b, loc, type, values[value]);
}

/// Makes the elements of `vector` the values that points have of `value`.
void PointVectorizer::split(OpBuilder &b, Value vector, Value value) {
  auto elements = vector::ToElementsOp::create(b, value.getLoc(), vector);
  values[value].assign(elements->result_begin(), elements->result_end());
}

/// Copies `op` for each point.
void PointVectorizer::repeat(Operation *op) {
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

/// Builds the index of each point, if code uses it for more than accesses.
void PointVectorizer::buildIndices(Value place) {
  bool isUsed = llvm::any_of(place.getUsers(), [&](Operation *user) {
    bool isShared = user->getNumResults() == 1 &&
                    (places.contains(user->getResult(0)) || !varying.contains(user->getResult(0)));
    return !isShared && !llvm::is_contained(accesses, user);
  });
  if (!isUsed)
    return;
  OpBuilder b(place.getContext());
  b.setInsertionPointAfterValue(place);
  values[place] = {place};
  for (int64_t i = 1; i < points; ++i) {
    Value number = arith::ConstantIndexOp::create(b, place.getLoc(), i);
    values[place].push_back(arith::AddIOp::create(b, place.getLoc(), place, number));
  }
}

/// Makes vectors of the results of `branch`, which all points take.
void PointVectorizer::rewriteBranch(scf::IfOp branch) {
  OpBuilder b(branch);
  auto types = llvm::map_to_vector(branch.getResultTypes(),
                                   [&](Type type) -> Type { return VectorType::get(points, type); });
  auto wide = scf::IfOp::create(b, branch.getLoc(), types, branch.getCondition(), /*addThenBlock=*/false,
                                /*addElseBlock=*/false);
  for (auto [before, after] : llvm::zip_equal(branch->getRegions(), wide->getRegions())) {
    after.takeBody(before);
    if (!after.empty())
      rewrite(after.front());
  }
  for (auto [before, after] : llvm::zip_equal(branch.getResults(), wide.getResults()))
    split(b, after, before);
}

void PointVectorizer::rewrite(Block &block) {
  SmallVector<Operation *> replaced;
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
    OpBuilder b(&op);
    Location loc = op.getLoc();
    auto branch = dyn_cast<scf::IfOp>(op);
    auto load = dyn_cast<memref::LoadOp>(op);
    auto store = dyn_cast<memref::StoreOp>(op);
    if (op.getNumResults() == 1 && places.contains(op.getResult(0))) {
      buildIndices(op.getResult(0));
      continue;
    }
    if (op.getNumResults() != 0 && !branch && !varying.contains(op.getResult(0)))
      continue; // the same for all points
    if (branch) {
      rewriteBranch(branch);
    } else if (store) {
      vector::StoreOp::create(b, loc, join(b, loc, store.getValueToStore()), store.getMemRef(),
                              store.getIndices(), /*nontemporal=*/false,
                              llvm::MaybeAlign(points * getBytes(store)));
    } else if (load) {
      auto type = VectorType::get(points, load.getType());
      Value vector = vector::LoadOp::create(b, loc, type, load.getMemRef(), load.getIndices(),
                                            /*nontemporal=*/false, llvm::MaybeAlign(points * getBytes(load)));
      split(b, vector, load.getResult());
    } else {
      repeat(&op);
    }
    replaced.push_back(&op);
  }
  Operation *yield = block.getTerminator();
  OpBuilder b(yield);
  for (OpOperand &operand : yield->getOpOperands())
    operand.set(join(b, yield->getLoc(), operand.get()));
  for (Operation *op : llvm::reverse(replaced))
    op->erase();
}

void PointVectorizer::rewrite(const Choice &choice) {
  points = choice.points;
  OpBuilder b(loop);
  Value step = arith::ConstantIndexOp::create(b, loop.getLoc(), points);
  loop.getStepMutable()[loop.getStep().size() - 1].set(step);
  loop->getParentOfType<func::FuncOp>()->setAttr(kThreadsAttrName, b.getI32IntegerAttr(choice.threads));
  buildIndices(last);
  rewrite(*loop.getBody());
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
      KernelAlignment alignment(function, callers);
      PointVectorizer vectorizer(loop, chip, alignment);
      if (!vectorizer.analyze())
        continue;
      if (std::optional<Choice> choice = vectorizer.choose())
        vectorizer.rewrite(*choice);
    }
  }
};
} // namespace
