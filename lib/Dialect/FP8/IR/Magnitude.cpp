// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fp8/Dialect/FP8/IR/Magnitude.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fp8;

Value fp8::buildMagnitude(OpBuilder &b, Location loc, Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  auto scalar = RankedTensorType::get({}, b.getF32Type());
  Value init = tensor::EmptyOp::create(b, loc, ArrayRef<int64_t>(), b.getF32Type());
  ArrayAttr maps = b.getAffineMapArrayAttr(b.getMultiDimIdentityMap(type.getRank()));
  auto amax = AmaxOp::create(b, loc, TypeRange(scalar), tensor, init, maps, DenseI64ArrayAttr());
  OpBuilder::InsertionGuard guard(b);
  Type element = type.getElementType();
  Block *body = b.createBlock(&amax.getProducer(), {}, element, loc);
  Value number = body->getArgument(0);
  Value isNaN = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, number, number);
  Value infinity = arith::ConstantOp::create(
      b, loc, FloatAttr::get(element, APFloat::getInf(cast<FloatType>(element).getFloatSemantics())));
  Value magnitude = arith::SelectOp::create(b, loc, isNaN, infinity, number);
  YieldOp::create(b, loc, magnitude, ValueRange());
  return amax.getResult(0);
}
