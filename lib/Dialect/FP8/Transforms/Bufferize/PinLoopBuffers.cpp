// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values that a loop carries live in one buffer each, allocated before the loop. One-shot
// bufferization may hand a new allocation to every iteration; memory that is planned ahead
// cannot hold those, and nothing would free them.

#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace fp8 {
#define GEN_PASS_DEF_PINLOOPBUFFERS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;

/// The dynamic sizes of `value`, in order.
static SmallVector<Value> getDynamicSizes(OpBuilder &builder, Location loc, Value value) {
  SmallVector<Value> sizes;
  auto type = cast<MemRefType>(value.getType());
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      sizes.push_back(memref::DimOp::create(builder, loc, value, dim));
  return sizes;
}

/// A dense buffer of the type and sizes of `value`.
static Value allocateLike(OpBuilder &builder, Location loc, Value value) {
  auto type = cast<MemRefType>(value.getType());
  auto dense = MemRefType::get(type.getShape(), type.getElementType());
  Value buffer = memref::AllocOp::create(builder, loc, dense, getDynamicSizes(builder, loc, value),
                                         builder.getI64IntegerAttr(64));
  return dense == type ? buffer : memref::CastOp::create(builder, loc, type, buffer);
}

/// Before `loop`: a buffer for a value that starts as `init`, without its contents. Null
/// where that is no buffer.
static Value allocatePin(Operation *loop, Value init) {
  OpBuilder builder(loop);
  return isa<MemRefType>(init.getType()) ? allocateLike(builder, loop->getLoc(), init) : Value();
}

/// True for memory that this iteration made and that nothing else can show.
static bool isFresh(Value value, Block *body) {
  Operation *op = value.getDefiningOp();
  return isa_and_nonnull<memref::AllocOp>(op) && op->getBlock() == body;
}

/// A pin has one size, that of the first value.
static void assertFits(OpBuilder &builder, Location loc, Value source, Value pin) {
  for (auto [have, want] :
       llvm::zip_equal(getDynamicSizes(builder, loc, source), getDynamicSizes(builder, loc, pin))) {
    Value same = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, have, want);
    cf::AssertOp::create(builder, loc, same, "a tensor that a loop carries changes its size");
  }
}

/// At the end of `body`: copies each value into its pin. All old contents are read before
/// the first pin is written, for values may change places.
static void copyIntoPins(Operation *terminator, ArrayRef<Value> values, ArrayRef<Value> pins) {
  OpBuilder builder(terminator);
  Location loc = terminator->getLoc();
  SmallVector<Value> sources(values);
  for (auto [source, pin] : llvm::zip_equal(sources, pins)) {
    if (!pin)
      continue;
    assertFits(builder, loc, source, pin);
    if (isFresh(source, terminator->getBlock()))
      continue;
    Value copy = allocateLike(builder, loc, source);
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

static void pinFor(scf::ForOp loop) {
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  SmallVector<Value> pins;
  for (auto [argument, value, init] :
       llvm::zip_equal(loop.getRegionIterArgs(), yield.getOperands(), loop.getInits()))
    pins.push_back(argument == value ? Value() : allocatePin(loop, init));
  fillPins(loop, loop.getInitArgsMutable(), pins);
  copyIntoPins(yield, SmallVector<Value>(yield.getOperands()), pins);
  handOver(yield->getOpOperands(), pins);
}

/// Before `loop`: a size that its first half computes, where that is one of what it starts
/// on or known outside. Null otherwise.
static Value findSizeBefore(OpBuilder &builder, scf::WhileOp loop, Value size) {
  if (size.getParentRegion()->isProperAncestor(&loop.getBefore()))
    return size;
  auto dim = size.getDefiningOp<memref::DimOp>();
  Value source = dim ? dim.getSource() : Value();
  while (auto cast = source ? source.getDefiningOp<memref::CastOp>() : memref::CastOp())
    source = cast.getSource();
  auto argument = dyn_cast_if_present<BlockArgument>(source);
  std::optional<int64_t> position = dim ? dim.getConstantIndex() : std::nullopt;
  if (!argument || !position || argument.getOwner() != loop.getBeforeBody())
    return Value();
  return memref::DimOp::create(builder, loop.getLoc(), loop.getInits()[argument.getArgNumber()], *position);
}

/// A pin for what `condition` hands on: null where that is pinned already, being an
/// argument of its block. The size of anything else must be known before the loop.
static FailureOr<Value> allocateConditionPin(scf::WhileOp loop, Value value) {
  auto type = dyn_cast<MemRefType>(value.getType());
  if (!type || (isa<BlockArgument>(value) && value.getParentBlock() == loop.getBeforeBody()))
    return Value();
  OpBuilder builder(loop);
  SmallVector<Value> sizes;
  auto alloc = value.getDefiningOp<memref::AllocOp>();
  for (Value size : alloc ? alloc.getDynamicSizes() : ValueRange())
    sizes.push_back(findSizeBefore(builder, loop, size));
  if (size_t(type.getNumDynamicDims()) != sizes.size() || llvm::is_contained(sizes, Value()))
    return loop.emitError("the loop computes a value of dynamic shape before its condition, which is not "
                          "supported yet: compute it in the loop's body");
  auto dense = MemRefType::get(type.getShape(), type.getElementType());
  Value buffer = memref::AllocOp::create(builder, loop.getLoc(), dense, sizes, builder.getI64IntegerAttr(64));
  return dense == type ? buffer : memref::CastOp::create(builder, loop.getLoc(), type, buffer).getResult();
}

static LogicalResult pinWhile(scf::WhileOp loop) {
  scf::ConditionOp condition = loop.getConditionOp();
  scf::YieldOp yield = loop.getYieldOp();
  SmallVector<Value> before, after;
  for (Value init : loop.getInits())
    before.push_back(allocatePin(loop, init));
  for (Value value : condition.getArgs()) {
    FailureOr<Value> pin = allocateConditionPin(loop, value);
    if (failed(pin))
      return failure();
    after.push_back(*pin);
  }
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
        pinFor(loop);
      if (auto loop = dyn_cast<scf::WhileOp>(op))
        return WalkResult(pinWhile(loop));
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
