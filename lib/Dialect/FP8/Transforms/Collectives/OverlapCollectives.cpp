// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Divides collectives on memrefs into a start and a wait, and moves these apart, so that ranks compute
// while data moves.

#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Analysis/AliasAnalysis.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_OVERLAPCOLLECTIVES
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// The largest number of operations that a start or a wait moves over, which bounds the compile time.
constexpr unsigned kMaxDistance = 1000;

/// A collective in two halves.
struct Halves {
  StartCollectiveOp start;
  WaitCollectiveOp wait;
};

class OverlapCollectives : public impl::OverlapCollectivesBase<OverlapCollectives> {
public:
  void runOnOperation() final {
    SmallVector<CollectiveOpInterface> ops;
    getOperation()->walk([&](CollectiveOpInterface op) { ops.push_back(op); });
    if (ops.empty())
      return;
    SmallVector<Halves> halves;
    for (CollectiveOpInterface op : ops) {
      if (!isa<MemRefType>(op.getInput().getType())) {
        op->emitError("is on tensors; bufferize before fp8-overlap-collectives");
        return signalPassFailure();
      }
      halves.push_back(divide(op));
    }
    AliasAnalysis aliases(getOperation());
    for (Halves &half : halves)
      startEarly(half.start, aliases);
    for (Halves &half : llvm::reverse(halves))
      waitLate(half.wait, aliases);
  }

private:
  static bool isContiguous(Value buffer) {
    auto type = cast<MemRefType>(buffer.getType());
    return type.getRank() == 0 || type.areTrailingDimsContiguous(type.getRank());
  }

  /// Builds a buffer without gaps of the shape of `buffer`.
  static Value allocateLike(OpBuilder &builder, Location loc, Value buffer) {
    auto type = cast<MemRefType>(buffer.getType());
    SmallVector<Value> sizes;
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (type.isDynamicDim(d))
        sizes.push_back(memref::DimOp::create(builder, loc, buffer, d));
    auto compact = MemRefType::get(type.getShape(), type.getElementType());
    return memref::AllocOp::create(builder, loc, compact, sizes);
  }

  static Halves divide(CollectiveOpInterface op) {
    OpBuilder builder(op);
    Location loc = op->getLoc();
    Value given = op.getInput(), wanted = op.getOuts(), send = given, receive = wanted;
    if (!isContiguous(given)) {
      send = allocateLike(builder, loc, given);
      memref::CopyOp::create(builder, loc, given, send);
    }
    if (!isContiguous(wanted))
      receive = given == wanted ? send : allocateLike(builder, loc, wanted);
    CollectiveStep step = op.getStep();
    StringAttr label = op.getLabelAttr();
    auto start =
        StartCollectiveOp::create(builder, loc, builder.getI64Type(), send, receive,
                                  CollectiveKindAttr::get(builder.getContext(), step.kind),
                                  ReduceKindAttr::get(builder.getContext(), step.reduction),
                                  builder.getI32IntegerAttr(step.root), op.getGridAttr(), op.getAxesAttr(),
                                  label ? label : builder.getStringAttr(op->getName().stripDialect()));
    auto wait = WaitCollectiveOp::create(builder, loc, start.getTicket(), send, receive);
    if (receive != wanted)
      memref::CopyOp::create(builder, loc, receive, wanted);
    op->erase();
    return {start, wait};
  }

  /// Returns whether `op`, without its regions, may do something to `buffer` that a collective with it does
  /// not allow: write it, or read it where the collective `writes` it.
  static bool conflictsItself(Operation *op, Value buffer, bool writes, AliasAnalysis &aliases) {
    auto interface = dyn_cast<MemoryEffectOpInterface>(op);
    if (!interface)
      return !op->hasTrait<OpTrait::HasRecursiveMemoryEffects>();
    SmallVector<MemoryEffects::EffectInstance> effects;
    interface.getEffects(effects);
    return llvm::any_of(effects, [&](const MemoryEffects::EffectInstance &effect) {
      if (isa<MemoryEffects::Allocate>(effect.getEffect()) ||
          (isa<MemoryEffects::Read>(effect.getEffect()) && !writes))
        return false;
      return !effect.getValue() || !aliases.alias(effect.getValue(), buffer).isNo();
    });
  }

  static bool conflicts(Operation *op, Value buffer, bool writes, AliasAnalysis &aliases) {
    return op
        ->walk([&](Operation *inner) {
          return conflictsItself(inner, buffer, writes, aliases) ? WalkResult::interrupt()
                                                                 : WalkResult::advance();
        })
        .wasInterrupted();
  }

  template <typename Half>
  static bool mayPass(Half half, Operation *op, AliasAnalysis &aliases) {
    return !conflicts(op, half.getSend(), /*writes=*/false, aliases) &&
           !conflicts(op, half.getReceive(), /*writes=*/true, aliases);
  }

  static void startEarly(StartCollectiveOp start, AliasAnalysis &aliases) {
    Operation *before = start;
    for (unsigned moved = 0; moved < kMaxDistance; ++moved) {
      Operation *previous = before->getPrevNode();
      if (!previous || isa<StartCollectiveOp>(previous) || !mayPass(start, previous, aliases))
        break;
      bool defines = llvm::any_of(start->getOperands(),
                                  [&](Value operand) { return operand.getDefiningOp() == previous; });
      if (defines)
        break;
      before = previous;
    }
    if (before != start)
      start->moveBefore(before);
  }

  static void waitLate(WaitCollectiveOp wait, AliasAnalysis &aliases) {
    Operation *after = wait;
    for (unsigned moved = 0; moved < kMaxDistance; ++moved) {
      Operation *next = after->getNextNode();
      if (!next || next->hasTrait<OpTrait::IsTerminator>() || !mayPass(wait, next, aliases))
        break;
      after = next;
    }
    if (after != wait)
      wait->moveAfter(after);
  }
};

} // namespace
} // namespace fp8
