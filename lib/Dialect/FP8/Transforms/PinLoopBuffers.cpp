// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values that a loop carries live in one buffer each, allocated before the loop. One-shot
// bufferization may hand a new allocation to every iteration; memory that is planned ahead
// cannot hold those, and nothing would free them.

#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace fp8 {
#define GEN_PASS_DEF_PINLOOPBUFFERS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;

/// A dense buffer of the shape of `type`, seen as `type`.
static Value allocateLike(OpBuilder &builder, Location loc, MemRefType type) {
  auto dense = MemRefType::get(type.getShape(), type.getElementType());
  Value buffer = memref::AllocOp::create(builder, loc, dense, builder.getI64IntegerAttr(64));
  return dense == type ? buffer : memref::CastOp::create(builder, loc, type, buffer);
}

/// Before `loop`: a buffer for a carried value, without its contents. Null where the value
/// is no buffer; failure where its size is not known.
static FailureOr<Value> allocatePin(Operation *loop, Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref)
    return Value();
  if (!memref.hasStaticShape())
    return loop->emitError("the loop carries a value of dynamic shape, which is not supported yet");
  OpBuilder builder(loop);
  return allocateLike(builder, loop->getLoc(), memref);
}

/// True for memory that this iteration made and that nothing else can show.
static bool isFresh(Value value, Block *body) {
  Operation *op = value.getDefiningOp();
  return isa_and_nonnull<memref::AllocOp>(op) && op->getBlock() == body;
}

/// At the end of `body`: copies each value into its pin. All old contents are read before
/// the first pin is written, for values may change places.
static void copyIntoPins(Operation *terminator, ArrayRef<Value> values, ArrayRef<Value> pins) {
  OpBuilder builder(terminator);
  Location loc = terminator->getLoc();
  SmallVector<Value> sources(values);
  for (auto [source, pin] : llvm::zip_equal(sources, pins)) {
    if (!pin || isFresh(source, terminator->getBlock()))
      continue;
    Value copy = allocateLike(builder, loc, cast<MemRefType>(source.getType()));
    memref::CopyOp::create(builder, loc, source, copy);
    source = copy;
  }
  for (auto [source, pin] : llvm::zip_equal(sources, pins))
    if (pin)
      memref::CopyOp::create(builder, loc, source, pin);
}

/// Makes the loop start on the pins, filled with the values it started on.
static void fillPins(Operation *loop, MutableArrayRef<OpOperand> inits, ArrayRef<Value> pins) {
  OpBuilder builder(loop);
  for (auto [init, pin] : llvm::zip_equal(inits, pins)) {
    if (!pin)
      continue;
    memref::CopyOp::create(builder, loop->getLoc(), init.get(), pin);
    init.set(pin);
  }
}

/// Puts the pins in the place of the terminator's operands, where there are any.
static void handOver(MutableArrayRef<OpOperand> operands, ArrayRef<Value> pins) {
  for (auto [operand, pin] : llvm::zip_equal(operands, pins))
    if (pin)
      operand.set(pin);
}

static LogicalResult pinFor(scf::ForOp loop) {
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  SmallVector<Value> pins;
  for (auto [argument, value] : llvm::zip_equal(loop.getRegionIterArgs(), yield.getOperands())) {
    FailureOr<Value> pin = argument == value ? Value() : allocatePin(loop, value.getType());
    if (failed(pin))
      return failure();
    pins.push_back(*pin);
  }
  fillPins(loop, loop.getInitArgsMutable(), pins);
  copyIntoPins(yield, SmallVector<Value>(yield.getOperands()), pins);
  handOver(yield->getOpOperands(), pins);
  return success();
}

static LogicalResult pinWhile(scf::WhileOp loop) {
  auto allocate = [&](ValueRange values, SmallVector<Value> &pins) -> LogicalResult {
    for (Value value : values) {
      FailureOr<Value> pin = allocatePin(loop, value.getType());
      if (failed(pin))
        return failure();
      pins.push_back(*pin);
    }
    return success();
  };
  scf::ConditionOp condition = loop.getConditionOp();
  scf::YieldOp yield = loop.getYieldOp();
  SmallVector<Value> before, after;
  if (failed(allocate(loop.getBeforeArguments(), before)) || failed(allocate(condition.getArgs(), after)))
    return failure();
  fillPins(loop, loop.getInitsMutable(), before);
  copyIntoPins(condition, SmallVector<Value>(condition.getArgs()), after);
  handOver(condition.getArgsMutable(), after);
  copyIntoPins(yield, SmallVector<Value>(yield.getOperands()), before);
  handOver(yield->getOpOperands(), before);
  return success();
}

namespace {
struct PinLoopBuffersPass : public fp8::impl::PinLoopBuffersBase<PinLoopBuffersPass> {
  void runOnOperation() override {
    WalkResult result = getOperation()->walk([](Operation *op) {
      if (auto loop = dyn_cast<scf::ForOp>(op))
        return WalkResult(pinFor(loop));
      if (auto loop = dyn_cast<scf::WhileOp>(op))
        return WalkResult(pinWhile(loop));
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
