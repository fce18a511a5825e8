// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fp8/Conversion/TakingLoop.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

bool fp8::isInTask(Operation *op) {
  for (Operation *loop = op->getParentOp(); loop; loop = loop->getParentOp())
    if (loop->hasAttr(kTasksAttrName))
      return true;
  return false;
}

Value fp8::allocateTaken(OpBuilder &b, Location loc) {
  return memref::AllocOp::create(b, loc, MemRefType::get({1}, b.getI64Type()), b.getI64IntegerAttr(64));
}

void fp8::resetTaken(OpBuilder &b, Location loc, Value taken) {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  memref::StoreOp::create(b, loc, arith::ConstantIntOp::create(b, loc, b.getI64Type(), 0), taken, zero);
}

void fp8::buildTakingLoop(OpBuilder &b, Location loc, Value taken, Value count,
                          function_ref<void(OpBuilder &, Value)> body) {
  auto take = [&](OpBuilder &before, Location at, ValueRange) {
    Value zero = arith::ConstantIndexOp::create(before, at, 0);
    Value one = arith::ConstantIntOp::create(before, at, before.getI64Type(), 1);
    Value next = memref::AtomicRMWOp::create(before, at, arith::AtomicRMWKind::addi, one, taken, zero);
    Value index = arith::IndexCastOp::create(before, at, before.getIndexType(), next);
    Value isLeft = arith::CmpIOp::create(before, at, arith::CmpIPredicate::ult, index, count);
    scf::ConditionOp::create(before, at, isLeft, index);
  };
  auto stop = [](OpBuilder &after, Location at, ValueRange) { scf::YieldOp::create(after, at); };
  auto loop = scf::WhileOp::create(b, loc, b.getIndexType(), ValueRange(), take, stop);
  OpBuilder inside = OpBuilder::atBlockTerminator(loop.getAfterBody());
  body(inside, loop.getAfterArguments().front());
}
