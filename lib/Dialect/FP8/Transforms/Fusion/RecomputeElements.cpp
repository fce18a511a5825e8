// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elementwise code of forward that backward reads: where computing it again is cheaper than keeping its
// result for so long, backward has a copy of the code.

#include "fp8/Analysis/CheapestCut.h"
#include "fp8/Analysis/MemoryTraffic.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"

namespace fp8 {
#define GEN_PASS_DEF_RECOMPUTEELEMENTS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// The cost of computing an element again, in eighths of a byte that is kept: processors and GPUs move a byte
/// in the time of some ten operations.
static constexpr int64_t kByte = 8, kOperation = 1, kDivision = 4, kMathFunction = 16;

static bool isView(Operation *op) {
  return isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp,
                         tensor::ExtractSliceOp>(op);
}

/// Returns the tensor that a chain of views begins with.
static Value getViewed(Value value) {
  while (isView(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// Returns whether `op` is code of one element after the other, without sums and gathers.
static bool isElementwise(linalg::LinalgOp op) {
  return op.hasPureTensorSemantics() && op.getNumReductionLoops() == 0 &&
         llvm::all_of(op.getBlock()->without_terminator(), [](Operation &inner) {
           return inner.getNumRegions() == 0 && isPure(&inner) && !isa<tensor::ExtractOp>(inner);
         });
}

static bool canRepeat(Operation *op) {
  if (auto code = dyn_cast<linalg::LinalgOp>(op))
    return isElementwise(code);
  return isView(op) || isa<tensor::EmptyOp, arith::ConstantOp>(op);
}

/// Returns the cost of computing a result of `op` once more.
static int64_t countWork(Operation *op) {
  auto code = dyn_cast<linalg::LinalgOp>(op);
  if (!code)
    return 0;
  int64_t work = 0;
  for (Operation &inner : code.getBlock()->without_terminator()) {
    if (isa<math::MathDialect>(inner.getDialect()))
      work += kMathFunction;
    else if (isa<arith::DivFOp, arith::RemFOp, arith::DivSIOp, arith::DivUIOp, arith::RemSIOp,
                 arith::RemUIOp>(inner))
      work += kDivision;
    else if (inner.getNumOperands() != 0)
      work += kOperation;
  }
  for (int64_t size : code.getStaticLoopRanges())
    work *= ShapedType::isDynamic(size) ? kAssumedSize : size;
  return work;
}

/// Returns whether a matmul or attention is one of backward.
static bool isGradient(Operation *op) {
  auto isBackward = [](std::optional<Role> role) { return role == Role::dgrad || role == Role::wgrad; };
  if (auto matmul = dyn_cast<MatmulOp>(op))
    return isBackward(matmul.getRole()) || matmul.getLhsKind() == TensorKind::grad_output ||
           matmul.getRhsKind() == TensorKind::grad_output;
  if (auto matmul = dyn_cast<ScaledMatmulOp>(op))
    return isBackward(matmul.getRole());
  return isa<AttentionGradOp, OnlineAttentionGradOp>(op);
}

namespace {

/// The values of a block that operations before `backward` compute and later ones read: early values, which
/// late operations read.
class Recomputation {
public:
  Recomputation(Block &block, Operation *backward, bool ofAttention)
      : block(block), backward(backward), ofAttention(ofAttention) {}
  /// Returns how many values are computed again.
  unsigned run();

private:
  bool isEarly(Value value) const;
  Operation *findReader(OpOperand &use) const;
  bool canReadCopy(OpOperand &use) const;
  void collect();
  bool canRepeat(OpResult result) const;
  bool isKept(Value value) const { return kept.contains(getViewed(value)); }
  int64_t getCost(Value value) const;
  Value repeat(Value value, OpBuilder &builder, const llvm::SmallPtrSetImpl<Value> &saved, IRMapping &copies);

  Block &block;
  Operation *backward;
  bool ofAttention;
  SmallVector<Value> needed;
  /// The needed values by the first late operation that reads them.
  DenseMap<Operation *, SmallVector<Value>> firstReads;
  /// Tensors that are in memory until backward in any case.
  llvm::SmallPtrSet<Value, 32> kept;
  /// Sums and extremes, and what is computed of them.
  llvm::DenseSet<Value> ofSums;
};

} // namespace

bool Recomputation::isEarly(Value value) const {
  Operation *op = value.getDefiningOp();
  return op && op->getBlock() == &block && op->isBeforeInBlock(backward);
}

/// Returns the operation of the block that reads a value late, or null.
Operation *Recomputation::findReader(OpOperand &use) const {
  Operation *reader = block.findAncestorOpInBlock(*use.getOwner());
  return reader && !reader->isBeforeInBlock(backward) ? reader : nullptr;
}

/// Returns whether the reader of a value may read a copy, perhaps through views: code on elements, of which
/// the copy's code becomes a part, or the gradient of attention.
bool Recomputation::canReadCopy(OpOperand &use) const {
  Operation *reader = use.getOwner();
  if (isView(reader))
    return llvm::all_of(reader->getResult(0).getUses(), [&](OpOperand &later) { return canReadCopy(later); });
  if (ofAttention)
    return isa<AttentionGradOp, OnlineAttentionGradOp>(reader);
  auto code = dyn_cast<linalg::LinalgOp>(reader);
  return code && reader->getBlock() == &block && code.getNumReductionLoops() == 0;
}

/// Returns whether reductions are among what `op` computes or, as far as they are early, reads.
static bool readsSums(Operation *op, const llvm::DenseSet<Value> &ofSums) {
  auto code = dyn_cast<linalg::LinalgOp>(op);
  return (code && code.getNumReductionLoops() != 0) ||
         ((code || isView(op)) &&
          llvm::any_of(op->getOperands(), [&](Value operand) { return ofSums.contains(operand); }));
}

void Recomputation::collect() {
  for (Operation &op : block) {
    if (&op == backward)
      break;
    if (readsSums(&op, ofSums))
      ofSums.insert(op.result_begin(), op.result_end());
    for (Value result : op.getResults()) {
      if (!isa<RankedTensorType>(result.getType()))
        continue;
      Operation *first = nullptr;
      bool isRead = false, stays = false;
      for (OpOperand &use : result.getUses()) {
        Operation *reader = findReader(use);
        if (!reader)
          continue;
        (canReadCopy(use) ? isRead : stays) = true;
        if (!first || reader->isBeforeInBlock(first))
          first = reader;
      }
      if (stays)
        kept.insert(getViewed(result));
      if (isRead && !isa<tensor::EmptyOp, arith::ConstantOp>(op)) {
        needed.push_back(result);
        firstReads[first].push_back(result);
      }
    }
  }
  llvm::erase_if(needed, [&](Value value) { return isKept(value); });
}

/// Returns whether the code of a value can be copied. Norms and softmaxes, the code of sums, become one
/// operation by rows in forward, which would fall apart if it had to hand over its sums.
bool Recomputation::canRepeat(OpResult result) const {
  return isEarly(result) && !isKept(result) && !ofSums.contains(result) && ::canRepeat(result.getOwner());
}

int64_t Recomputation::getCost(Value value) const {
  if (!isEarly(value) || isKept(value))
    return 1; // the least that a cut may have
  return 1 + kByte * countBytes(value.getType());
}

/// Returns `value`, or a copy of it that `builder` computes.
Value Recomputation::repeat(Value value, OpBuilder &builder, const llvm::SmallPtrSetImpl<Value> &saved,
                            IRMapping &copies) {
  if (!isEarly(value) || saved.contains(value))
    return value;
  if (Value copy = copies.lookupOrNull(value))
    return copy;
  Operation *op = value.getDefiningOp();
  for (Value read : getReadValues(op))
    if (Value copy = repeat(read, builder, saved, copies); copy != read)
      copies.map(read, copy);
  Operation *copy = builder.clone(*op, copies);
  if (isa<linalg::LinalgOp>(copy) && ofAttention)
    copy->setAttr(kAgainAttrName, builder.getUnitAttr());
  return copy->getResult(cast<OpResult>(value).getResultNumber());
}

unsigned Recomputation::run() {
  collect();
  SmallVector<Value> cut = findCheapestCut(
      needed, [&](OpResult result) { return canRepeat(result); }, [&](Value value) { return getCost(value); },
      [](OpResult result) { return countWork(result.getOwner()); });
  llvm::SmallPtrSet<Value, 32> saved(llvm::from_range, cut);
  unsigned count = 0;
  IRMapping copies;
  for (Operation &reader : llvm::make_range(backward->getIterator(), block.end()))
    for (Value value : firstReads.lookup(&reader)) {
      if (isKept(value))
        continue;
      OpBuilder builder(&reader);
      Value copy = repeat(value, builder, saved, copies);
      if (copy == value)
        continue;
      value.replaceUsesWithIf(
          copy, [&](OpOperand &use) { return findReader(use) && use.getOwner() != copy.getDefiningOp(); });
      remark::passed(value.getLoc(), remark::RemarkOpts::name("ComputedAgain").category("fp8-fusion"))
          << ("backward computes " + llvm::Twine(countBytes(value.getType())) + " bytes again").str();
      ++count;
    }
  return count;
}

namespace {

struct RecomputeElements : fp8::impl::RecomputeElementsBase<RecomputeElements> {
  using Base::Base;

  void runOnOperation() final {
    for (Block &block : getOperation().getBody()) {
      auto backward = llvm::find_if(block, [](Operation &op) {
        return op
            .walk([](Operation *inner) {
              return isGradient(inner) ? WalkResult::interrupt() : WalkResult::advance();
            })
            .wasInterrupted();
      });
      if (backward != block.end())
        recomputed += Recomputation(block, &*backward, attention).run();
    }
  }
};

} // namespace
