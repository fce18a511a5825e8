// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The vectors that packing loads, as vectors that it stores: widened, paired, transposed.

#include "PackedGemmDetail.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp8;

Value fp8::extendToF32(OpBuilder &b, Location loc, Value value) {
  Type element = getElementTypeOrSelf(value);
  if (element.isF32())
    return value;
  auto vector = dyn_cast<VectorType>(value.getType());
  Type f32 = vector ? Type(vector.clone(b.getF32Type())) : b.getF32Type();
  return arith::ExtFOp::create(b, loc, f32, value);
}

Value fp8::buildPairs(OpBuilder &b, Location loc, Value low, Value high) {
  Type f32 = low.getType(), i32 = b.getI32Type();
  if (auto vector = dyn_cast<VectorType>(f32))
    i32 = vector.clone(i32);
  Value sixteen = arith::ConstantOp::create(b, loc, b.getIntegerAttr(b.getI32Type(), 16));
  if (isa<VectorType>(i32))
    sixteen = vector::BroadcastOp::create(b, loc, i32, sixteen);
  Value lowBits = arith::ShRUIOp::create(b, loc, arith::BitcastOp::create(b, loc, i32, low), sixteen);
  Value bits = arith::OrIOp::create(b, loc, lowBits, arith::BitcastOp::create(b, loc, i32, high));
  return arith::BitcastOp::create(b, loc, f32, bits);
}

Value fp8::buildAdjacentPairs(OpBuilder &b, Location loc, Value vector) {
  auto type = cast<VectorType>(vector.getType());
  int64_t count = type.getNumElements();
  auto pairType = VectorType::get(count / 2, b.getF32Type());
  if (type.getElementType().isBF16())
    return vector::BitCastOp::create(b, loc, pairType, vector);
  auto bitsType = VectorType::get(count, b.getI32Type());
  Value sixteen =
      arith::ConstantOp::create(b, loc, DenseElementsAttr::get(bitsType, b.getI32IntegerAttr(16)));
  Value wide = arith::BitcastOp::create(b, loc, bitsType, extendToF32(b, loc, vector));
  Value bits = arith::ShRUIOp::create(b, loc, wide, sixteen);
  Value narrow = arith::TruncIOp::create(b, loc, bitsType.clone(b.getI16Type()), bits);
  return vector::BitCastOp::create(b, loc, pairType, narrow);
}

/// Each round interleaves row i of the first half with row i of the second.
SmallVector<Value> fp8::transposeSquare(OpBuilder &b, Location loc, SmallVector<Value> rows) {
  int64_t count = rows.size();
  SmallVector<int64_t> low, high;
  for (int64_t lane = 0; lane < count; ++lane) {
    int64_t from = lane / 2 + (lane % 2 ? count : 0);
    low.push_back(from);
    high.push_back(from + count / 2);
  }
  for (int64_t round = 1; round < count; round *= 2) {
    SmallVector<Value> next;
    for (int64_t i = 0; i < count / 2; ++i)
      for (ArrayRef<int64_t> mask : {ArrayRef(low), ArrayRef(high)})
        next.push_back(vector::ShuffleOp::create(b, loc, rows[i], rows[i + count / 2], mask));
    rows = std::move(next);
  }
  return rows;
}
