// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lanes combine values by shuffles of 32-bit words within a warp. The warps of a block store theirs in shared
// memory, from which every warp combines them once more.

#include "LaneTeam.h"
#include "fp8/Conversion/FP8ToGPU/Kernels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp8;

/// Elements of a lane that are worth the steps of combining twice as many lanes.
static constexpr int64_t kLaneElements = 8;
/// The same where there may be enough iterations for all multiprocessors.
static constexpr int64_t kLaneElementsOfMany = 32;
/// Lanes for few iterations over a length that is unknown.
static constexpr int64_t kLanesOfUnknown = 256;

int64_t fp8::chooseLanes(std::optional<int64_t> count, std::optional<int64_t> length) {
  int64_t lanes = kWarpLanes, elements = count ? kLaneElements : kLaneElementsOfMany;
  auto isWorth = [&](int64_t more) {
    if (count && *count * lanes >= kManyThreads)
      return false;
    if (length)
      return *length / more >= elements;
    return count && (*count == 1 || more <= kLanesOfUnknown);
  };
  while (lanes < kMostLanes && isWorth(2 * lanes))
    lanes *= 2;
  return lanes;
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

bool fp8::isLaneType(Type type) {
  if (type.isIndex() || type.isF64() || type.isF32() || type.isF16() || type.isBF16())
    return true;
  return type.isSignlessInteger() && type.getIntOrFloatBitWidth() <= 64;
}

/// Returns the bits of a value as words of 32 bits; an f32 is one as it is.
static SmallVector<Value> toWords(OpBuilder &b, Location loc, Value value) {
  Type type = value.getType(), word = b.getI32Type();
  if (type.isF32() || type == word)
    return {value};
  if (type.isIndex())
    value = arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
  else if (isa<FloatType>(type))
    value = arith::BitcastOp::create(b, loc, b.getIntegerType(type.getIntOrFloatBitWidth()), value);
  unsigned bits = value.getType().getIntOrFloatBitWidth();
  if (bits < 32)
    return {arith::ExtUIOp::create(b, loc, word, value)};
  if (bits == 32)
    return {value};
  if (bits < 64)
    value = arith::ExtUIOp::create(b, loc, b.getI64Type(), value);
  Value high = arith::ShRUIOp::create(b, loc, value, arith::ConstantIntOp::create(b, loc, 32, 64));
  return {arith::TruncIOp::create(b, loc, word, value), arith::TruncIOp::create(b, loc, word, high)};
}

/// Returns the value of `type` that has the words.
static Value fromWords(OpBuilder &b, Location loc, ArrayRef<Value> words, Type type) {
  Value value = words.front();
  if (value.getType() == type)
    return value;
  if (words.size() == 2) {
    Value low = arith::ExtUIOp::create(b, loc, b.getI64Type(), words[0]);
    Value high = arith::ExtUIOp::create(b, loc, b.getI64Type(), words[1]);
    high = arith::ShLIOp::create(b, loc, high, arith::ConstantIntOp::create(b, loc, 32, 64));
    value = arith::OrIOp::create(b, loc, low, high);
  }
  if (type.isIndex())
    return arith::IndexCastOp::create(b, loc, type, value);
  unsigned bits = type.getIntOrFloatBitWidth();
  if (bits < value.getType().getIntOrFloatBitWidth())
    value = arith::TruncIOp::create(b, loc, b.getIntegerType(bits), value);
  return isa<FloatType>(type) ? arith::BitcastOp::create(b, loc, type, value).getResult() : value;
}

//===----------------------------------------------------------------------===//
// Combination
//===----------------------------------------------------------------------===//

/// Combines the values of `lanes` neighbours in a warp.
static SmallVector<Value> combineNeighbours(OpBuilder &b, Location loc, ValueRange values, int64_t lanes,
                                            LaneTeam::Combine combine) {
  auto number = [&](int32_t n) -> Value { return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(n)); };
  SmallVector<Value> combined(values);
  for (int64_t distance = lanes / 2; distance != 0; distance /= 2) {
    SmallVector<Value> others;
    for (Value value : combined) {
      auto words = llvm::map_to_vector(toWords(b, loc, value), [&](Value word) -> Value {
        return NVVM::ShflOp::create(b, loc, word.getType(), number(-1), word, number(distance),
                                    number(kWarpLanes - 1), NVVM::ShflKind::bfly, UnitAttr());
      });
      others.push_back(fromWords(b, loc, words, value.getType()));
    }
    combined = combine(combined, others);
  }
  return combined;
}

SmallVector<Value> LaneTeam::combine(OpBuilder &b, Location loc, ValueRange values, Combine combine) const {
  SmallVector<Value> ofWarp = combineNeighbours(b, loc, values, kWarpLanes, combine);
  int64_t warps = lanes / kWarpLanes;
  if (warps == 1)
    return ofWarp;
  auto index = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(b, loc, value); };
  Value inWarp = arith::RemUIOp::create(b, loc, lane, index(kWarpLanes));
  Value warp = arith::DivUIOp::create(b, loc, lane, index(kWarpLanes));
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, inWarp, index(0));
  auto guard = scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false);
  SmallVector<SmallVector<Value>> buffers; // per value, for each of its words
  OpBuilder outside(guard), first = guard.getThenBodyBuilder();
  for (Value value : ofWarp)
    buffers.push_back(llvm::map_to_vector(toWords(first, loc, value), [&](Value word) -> Value {
      auto type = MemRefType::get({warps}, word.getType(), MemRefLayoutAttrInterface(),
                                  b.getI64IntegerAttr(kSharedSpace));
      Value buffer = memref::AllocaOp::create(outside, loc, type);
      memref::StoreOp::create(first, loc, word, buffer, warp);
      return buffer;
    }));
  NVVM::Barrier0Op::create(b, loc);
  Value place = arith::RemUIOp::create(b, loc, lane, index(warps));
  SmallVector<Value> ofWarps;
  for (auto [value, words] : llvm::zip_equal(ofWarp, buffers)) {
    auto loaded = llvm::map_to_vector(
        words, [&](Value buffer) -> Value { return memref::LoadOp::create(b, loc, buffer, place); });
    ofWarps.push_back(fromWords(b, loc, loaded, value.getType()));
  }
  return combineNeighbours(b, loc, ofWarps, warps, combine);
}
