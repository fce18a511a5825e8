// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), and the conversion
// to FP8 that its bits decide. Neither branches, so that LLVM can vectorize both.

#include "fp8/Conversion/FP8ToLinalg/StochasticRounding.h"
#include "fp8/Conversion/ExpandMath/Expr.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/bit.h"
#include <array>
#include <cmath>

using namespace mlir;
using namespace fp8;

//===----------------------------------------------------------------------===//
// Random bits
//===----------------------------------------------------------------------===//

static Expr highHalf(Expr integer) { return lowHalf(integer >> 32); }

RandomSource RandomSource::of(OpBuilder &builder, Location loc, Value seed, Value step, Value first,
                              int64_t stream) {
  ImplicitLocOpBuilder b(loc, builder);
  Expr key(b, seed);
  return {lowHalf(key).getValue(), highHalf(key).getValue(), lowHalf(Expr(b, step)).getValue(), first,
          static_cast<uint32_t>(stream)};
}

RandomSource RandomSource::load(OpBuilder &builder, Location loc, Value random, int64_t stream) {
  auto element = [&](int64_t number) -> Value {
    Value index = arith::ConstantIndexOp::create(builder, loc, number);
    return memref::LoadOp::create(builder, loc, random, index);
  };
  bool isPart = cast<MemRefType>(random.getType()).getDimSize(0) == 3;
  return of(builder, loc, element(0), element(1), isPart ? element(2) : Value(), stream);
}

bool fp8::canCountIn32Bits(ArrayRef<int64_t> sizes) {
  constexpr int64_t most = int64_t(1) << 32;
  int64_t count = 1;
  for (int64_t size : sizes) {
    if (ShapedType::isDynamic(size) || size > most)
      return false;
    count *= size;
    if (count > most)
      return false;
  }
  return true;
}

Value fp8::buildRandomWord(OpBuilder &builder, Location loc, const RandomSource &source, Value index) {
  constexpr double multipliers[] = {0xD2511F53, 0xCD9E8D57}, steps[] = {0x9E3779B9, 0xBB67AE85};
  constexpr int rounds = 10;
  ImplicitLocOpBuilder b(loc, builder);
  Expr number(b, index), step(b, source.step);
  if (source.first)
    number = (index.getType().isInteger(32) ? widen(number) : number) + Expr(b, source.first);
  bool isWide = number.getType().isInteger(64);
  std::array<Expr, 4> counter = {Expr(source.stream).like(step), step, isWide ? lowHalf(number) : number,
                                 isWide ? highHalf(number) : Expr(0).like(step)};
  std::array<Expr, 2> key = {Expr(b, source.seedLow), Expr(b, source.seedHigh)};
  for (int round = 0; round < rounds; ++round) {
    Expr first = widen(counter[0]) * multipliers[0], second = widen(counter[2]) * multipliers[1];
    counter = {highHalf(second) ^ counter[1] ^ key[0], lowHalf(second), highHalf(first) ^ counter[3] ^ key[1],
               lowHalf(first)};
    key = {key[0] + steps[0], key[1] + steps[1]};
  }
  return counter[0].getValue();
}

//===----------------------------------------------------------------------===//
// Rounding
//===----------------------------------------------------------------------===//

/// Returns an i32, 1 where `word` is less than 2^32 · `fraction`, which is in [0, 1), else 0.
static Expr isBelow(Expr word, Expr fraction) {
  ImplicitLocOpBuilder &b = word.getBuilder();
  // The product is exact. It is a whole number unless more than 32 bits are discarded.
  Value bound = math::CeilOp::create(b, (fraction * std::ldexp(1.0, 32)).getValue());
  Value whole = arith::FPToUIOp::create(b, b.getI32Type(), bound);
  Value below = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, word.getValue(), whole);
  return Expr(b, arith::ExtUIOp::create(b, b.getI32Type(), below));
}

Value fp8::buildStochasticFP8(OpBuilder &builder, Location loc, Value value, FloatType format, Value word) {
  const llvm::fltSemantics &semantics = format.getFloatSemantics();
  int mantissa = format.getFPMantissaWidth() - 1;
  float largest = APFloat::getLargest(semantics).convertToFloat(),
        smallestNormal = APFloat::getSmallestNormalized(semantics).convertToFloat();
  int firstExponent = llvm::bit_cast<uint32_t>(smallestNormal);

  ImplicitLocOpBuilder b(loc, builder);
  Expr bits = toBits(Expr(b, value)), magnitude = bits & 0x7FFFFFFF;
  // Saturate first: the largest value is whole, so nothing is rounded beyond it.
  Expr clamped = atMost(magnitude, llvm::bit_cast<uint32_t>(largest));
  Expr exponent = atLeast(clamped & 0x7F800000, firstExponent);
  // In units of the last place, by a power of two: exact.
  Expr units = fromBits(clamped) * fromBits(Expr((254 + mantissa) << 23).like(bits) - exponent);
  Expr whole(b, arith::FPToSIOp::create(b, b.getI32Type(), units.getValue()));
  Expr result =
      whole + isBelow(Expr(b, word), units - toF32(whole)) + ((exponent - firstExponent) >> (23 - mantissa));
  result = select(magnitude > 0x7F800000, Expr(0x7F).like(bits), result | ((bits >> 24) & 0x80));
  return arith::TruncIOp::create(b, b.getI8Type(), result.getValue());
}
