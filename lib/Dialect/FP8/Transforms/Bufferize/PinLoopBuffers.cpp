// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives each value that a loop carries one buffer, allocated before the loop (its pin). One-shot
// bufferization may pass a new allocation to every iteration; memory that is planned ahead
// cannot hold those, and nothing would free them. Values that an iteration computes in the buffer
// that it was given stay there.

#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/Transforms/BufferViewFlowAnalysis.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace fp8 {
#define GEN_PASS_DEF_PINLOOPBUFFERS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;

//===----------------------------------------------------------------------===//
// The choice of a buffer
//===----------------------------------------------------------------------===//

static bool staysInPlace(scf::ForOp loop, unsigned number);
static bool staysInPlace(scf::WhileOp loop, unsigned number);

/// Returns the buffer that `value` certainly is, looking through casts, loops that compute in place,
/// and branches that end in the same buffer, up to an argument of the innermost loop around `value`.
static Value findBuffer(Value value) {
  while (true) {
    auto argument = dyn_cast<BlockArgument>(value);
    Operation *op = argument ? argument.getOwner()->getParentOp() : value.getDefiningOp();
    unsigned number = argument ? argument.getArgNumber() : cast<OpResult>(value).getResultNumber();
    auto whileLoop = dyn_cast<scf::WhileOp>(op);
    if (auto cast = dyn_cast<memref::CastOp>(op)) {
      value = cast.getSource();
    } else if (auto loop = dyn_cast<scf::ForOp>(op); loop && !argument && staysInPlace(loop, number)) {
      value = loop.getInits()[number];
    } else if (whileLoop && (!argument || argument.getOwner() == whileLoop.getAfterBody())) {
      Value handedOn = findBuffer(whileLoop.getConditionOp().getArgs()[number]);
      auto before = dyn_cast<BlockArgument>(handedOn);
      if (!before || before.getOwner() != whileLoop.getBeforeBody())
        return value;
      if (argument)
        return before;
      if (!staysInPlace(whileLoop, before.getArgNumber()))
        return value;
      value = whileLoop.getInits()[before.getArgNumber()];
    } else if (auto branch = dyn_cast<scf::IfOp>(op); branch && !argument) {
      Value one = findBuffer(branch.thenYield().getOperand(number));
      if (one != findBuffer(branch.elseYield().getOperand(number)) ||
          branch->isAncestor(one.getParentRegion()->getParentOp()))
        return value;
      value = one;
    } else {
      return value;
    }
  }
}

/// Whether every iteration ends with carried value `number` in the buffer that it was given.
static bool staysInPlace(scf::ForOp loop, unsigned number) {
  return findBuffer(loop.getYieldedValues()[number]) == loop.getRegionIterArg(number);
}
static bool staysInPlace(scf::WhileOp loop, unsigned number) {
  return findBuffer(loop.getYieldOp().getOperand(number)) == loop.getBeforeArguments()[number];
}

//===----------------------------------------------------------------------===//
// Pins
//===----------------------------------------------------------------------===//

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

/// Allocates, before `loop`, a buffer for a value that starts as `init`, without copying its contents.
/// Null if `init` is no buffer.
static Value allocatePin(Operation *loop, Value init) {
  OpBuilder builder(loop);
  return isa<MemRefType>(init.getType()) ? allocateLike(builder, loop->getLoc(), init) : Value();
}

/// Asserts that `source` has the size of `pin`, which is that of the first value.
static void assertFits(OpBuilder &builder, Location loc, Value source, Value pin) {
  for (auto [have, want] :
       llvm::zip_equal(getDynamicSizes(builder, loc, source), getDynamicSizes(builder, loc, pin))) {
    Value same = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, have, want);
    cf::AssertOp::create(builder, loc, same, "a tensor that a loop carries changes its size");
  }
}

namespace {
/// One of the copies at the end of an iteration.
struct Move {
  Value source, pin;
  Value argument; ///< of the loop, by which the iteration reads the pin's contents
  bool isTemporary = false;

  bool mayRead(Value argument, const BufferViewFlowAnalysis &flow) const;
};
} // namespace

/// Whether the source may alias the pin of `argument`.
bool Move::mayRead(Value argument, const BufferViewFlowAnalysis &flow) const {
  if (isTemporary)
    return false;
  Value buffer = findBuffer(source);
  if (isa<BlockArgument>(buffer))
    return buffer == argument;
  return llvm::any_of(flow.resolveReverse(source), [&](Value from) {
    // The result of an operation that the analysis does not know may alias any buffer.
    Operation *op = from.getDefiningOp();
    bool isUnknown = op && flow.mayBeTerminalBuffer(from) && !isa<memref::GetGlobalOp>(op) &&
                     !hasEffect<MemoryEffects::Allocate>(op, from);
    return from == argument || isUnknown;
  });
}

/// Copies the values into the pins, each before a copy overwrites its source; values that change
/// places go through a temporary.
static void copyIntoPins(Operation *terminator, SmallVector<Move> moves, const BufferViewFlowAnalysis &flow) {
  OpBuilder builder(terminator);
  Location loc = terminator->getLoc();
  for (Move &move : moves)
    assertFits(builder, loc, move.source, move.pin);
  while (!moves.empty()) {
    // A pin that no remaining move reads may be overwritten.
    Move *next = llvm::find_if(moves, [&](Move &move) {
      return llvm::none_of(moves, [&](Move &other) { return other.mayRead(move.argument, flow); });
    });
    if (next != moves.end()) {
      memref::CopyOp::create(builder, loc, next->source, next->pin);
      moves.erase(next);
      continue;
    }
    Move *saved = llvm::find_if(moves, [](Move &move) { return !move.isTemporary; });
    Value copy = allocateLike(builder, loc, saved->source);
    memref::CopyOp::create(builder, loc, saved->source, copy);
    saved->source = copy;
    saved->isTemporary = true;
  }
}

/// Returns whether nothing has written to `buffer`, which stands for a value that no iteration reads.
static bool isUnwritten(Value buffer, Operation *loop) {
  auto isRead = [&loop](Operation *user) { return user == loop || isa<memref::DimOp>(user); };
  while (llvm::all_of(buffer.getUsers(), isRead)) {
    auto cast = buffer.getDefiningOp<memref::CastOp>();
    if (!cast)
      return isa_and_nonnull<memref::AllocOp>(buffer.getDefiningOp());
    loop = cast;
    buffer = cast.getSource();
  }
  return false;
}

/// Copies the initial values into the pins, and makes the loop start with the pins.
static void fillPins(Operation *loop, MutableArrayRef<OpOperand> inits, ArrayRef<Value> pins) {
  OpBuilder builder(loop);
  for (auto [init, pin] : llvm::zip_equal(inits, pins)) {
    if (!pin)
      continue;
    if (!isUnwritten(init.get(), loop))
      memref::CopyOp::create(builder, loop->getLoc(), init.get(), pin);
    init.set(pin);
  }
}

/// Makes an iteration end with its values in the pins; values without a pin are in their buffer already.
static void endInPins(Operation *terminator, MutableArrayRef<OpOperand> operands, ArrayRef<Value> pins,
                      ValueRange arguments, const BufferViewFlowAnalysis &flow) {
  SmallVector<Move> moves;
  for (auto [operand, pin, argument] : llvm::zip_equal(operands, pins, arguments))
    if (pin)
      moves.push_back({operand.get(), pin, argument});
  copyIntoPins(terminator, moves, flow);
  for (auto [operand, pin] : llvm::zip_equal(operands, pins))
    if (pin)
      operand.set(pin);
}

static void pinFor(scf::ForOp loop, const BufferViewFlowAnalysis &flow) {
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  SmallVector<Value> pins;
  for (auto [number, init] : llvm::enumerate(loop.getInits())) {
    bool inPlace = staysInPlace(loop, number);
    pins.push_back(inPlace ? Value() : allocatePin(loop, init));
    if (inPlace)
      yield.setOperand(number, loop.getRegionIterArg(number));
  }
  fillPins(loop, loop.getInitArgsMutable(), pins);
  endInPins(yield, yield->getOpOperands(), pins, loop.getRegionIterArgs(), flow);
}

/// Computes, before `loop`, a size that its first half computes, if that is known before the loop or is a
/// size of an initial value. Null otherwise.
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

/// Allocates a pin for a value that the condition passes on: null if it is the buffer of an argument of the
/// first half. The sizes of all other values must be known before the loop.
static FailureOr<Value> allocateConditionPin(scf::WhileOp loop, Value value) {
  auto type = dyn_cast<MemRefType>(value.getType());
  auto argument = dyn_cast<BlockArgument>(findBuffer(value));
  if (!type || (argument && argument.getOwner() == loop.getBeforeBody()))
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

static LogicalResult pinWhile(scf::WhileOp loop, const BufferViewFlowAnalysis &flow) {
  scf::ConditionOp condition = loop.getConditionOp();
  scf::YieldOp yield = loop.getYieldOp();
  SmallVector<Value> before, after;
  for (auto [number, init] : llvm::enumerate(loop.getInits()))
    before.push_back(staysInPlace(loop, number) ? Value() : allocatePin(loop, init));
  for (Value value : condition.getArgs()) {
    FailureOr<Value> pin = allocateConditionPin(loop, value);
    if (failed(pin))
      return failure();
    after.push_back(*pin);
  }
  fillPins(loop, loop.getInitsMutable(), before);
  endInPins(condition, condition.getArgsMutable(), after, loop.getAfterArguments(), flow);
  endInPins(yield, yield->getOpOperands(), before, loop.getBeforeArguments(), flow);
  return success();
}

namespace {
struct PinLoopBuffersPass : public fp8::impl::PinLoopBuffersBase<PinLoopBuffersPass> {
  void runOnOperation() override {
    BufferViewFlowAnalysis flow(getOperation());
    WalkResult result = getOperation()->walk([&](Operation *op) { // inner loops first
      if (auto loop = dyn_cast<scf::ForOp>(op))
        pinFor(loop, flow);
      if (auto loop = dyn_cast<scf::WhileOp>(op))
        return WalkResult(pinWhile(loop, flow));
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
