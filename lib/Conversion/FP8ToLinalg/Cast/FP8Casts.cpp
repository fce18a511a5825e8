// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exact conversions between f32 and FP8 in integer arithmetic, without branches, so that LLVM
// can vectorize them.

#include "fp8/Conversion/FP8ToLinalg/FP8Casts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"
#include <cmath>
#include <cstring>

using namespace mlir;

namespace {

/// The constants in which the two formats differ.
struct FormatBits {
  explicit FormatBits(FloatType format)
      : mantissa(format.getFPMantissaWidth() - 1), bias(isa<Float8E5M2Type>(format) ? 15 : 7),
        largest(APFloat::getLargest(format.getFloatSemantics()).convertToFloat()) {}
  int mantissa; ///< stored bits: 3 or 2
  int bias;     ///< 7 or 15
  float largest;

  int shift() const { return 23 - mantissa; }
  float smallestNormal() const { return std::ldexp(1.0f, 1 - bias); }
  /// Added to the bits of 2^e, gives the bits of an f32 whose last place is that of the format at 2^e: adding
  /// it to a number from 2^e on rounds that to the format, to nearest even, and the last bits of the sum
  /// count the places. They begin at an even number, so that the last byte of the sum plus the exponent,
  /// shifted into place, is the number in the format.
  uint32_t toMagic() const { return (shift() << 23) + ((bias - 128) * (1 << mantissa) & 0xFF); }
};

uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// Returns the constant `value`, for each element if `like` is a vector.
Value buildConstant(OpBuilder &builder, Location loc, Type like, TypedAttr value) {
  if (auto vector = dyn_cast<VectorType>(like))
    value = DenseElementsAttr::get(vector.clone(value.getType()), ArrayRef<Attribute>(value));
  return arith::ConstantOp::create(builder, loc, value);
}

/// Shorthand for arithmetic on i32 and f32 of one shape.
class Arithmetic {
public:
  Arithmetic(OpBuilder &builder, Location loc, Type like) : builder(builder), loc(loc), like(like) {}

  Type as(Type element) const {
    auto vector = dyn_cast<VectorType>(like);
    return vector ? Type(vector.clone(element)) : element;
  }
  Value integer(uint32_t value) { return constant(builder.getI32IntegerAttr(static_cast<int32_t>(value))); }
  Value real(float value) { return constant(builder.getF32FloatAttr(value)); }
  Value toBits(Value value) {
    return arith::BitcastOp::create(builder, loc, as(builder.getI32Type()), value);
  }
  Value toReal(Value value) {
    return arith::BitcastOp::create(builder, loc, as(builder.getF32Type()), value);
  }
  template <typename Op>
  Value apply(Value a, Value b) {
    return Op::create(builder, loc, a, b);
  }
  Value compare(arith::CmpIPredicate predicate, Value a, Value b) {
    return arith::CmpIOp::create(builder, loc, predicate, a, b);
  }
  Value select(Value condition, Value a, Value b) {
    return arith::SelectOp::create(builder, loc, condition, a, b);
  }

private:
  Value constant(TypedAttr value) { return buildConstant(builder, loc, like, value); }

  OpBuilder &builder;
  Location loc;
  Type like;
};

} // namespace

Value fp8::buildEncodeFP8(OpBuilder &builder, Location loc, Value value, FloatType format) {
  FormatBits f(format);
  Arithmetic a(builder, loc, value.getType());
  Value bits = a.toBits(value);
  Value magnitude = a.apply<arith::AndIOp>(bits, a.integer(0x7FFFFFFF));
  Value isNaN = a.compare(arith::CmpIPredicate::ugt, magnitude, a.integer(0x7F800000));
  // Saturate first, so that the rounding below cannot exceed the largest value.
  Value clamped = a.apply<arith::MinUIOp>(magnitude, a.integer(bitsOf(f.largest)));

  // Subnormal results have the last place of the smallest normal number.
  Value exponent = a.apply<arith::AndIOp>(clamped, a.integer(0x7F800000));
  exponent = a.apply<arith::MaxUIOp>(exponent, a.integer(bitsOf(f.smallestNormal())));
  Value magic = a.apply<arith::AddIOp>(exponent, a.integer(f.toMagic()));
  Value sum = a.toBits(a.apply<arith::AddFOp>(a.toReal(clamped), a.toReal(magic)));
  Value result = a.apply<arith::AddIOp>(sum, a.apply<arith::ShRUIOp>(exponent, a.integer(f.shift())));
  Value sign = a.apply<arith::AndIOp>(a.apply<arith::ShRUIOp>(bits, a.integer(24)), a.integer(0x80));
  result = a.select(isNaN, a.integer(0x7F), a.apply<arith::OrIOp>(result, sign));
  Value byte = arith::TruncIOp::create(builder, loc, a.as(builder.getI8Type()), result);
  return arith::BitcastOp::create(builder, loc, a.as(format), byte);
}

/// Returns the bits of the f16 that an E4M3 byte, widened to i16 with its sign, is when shifted into place:
/// its exponent has the bias of E4M3, and the byte's NaN is NaN.
static Value placeE4M3(OpBuilder &builder, Location loc, Value wide) {
  auto constant = [&](int16_t value) {
    return buildConstant(builder, loc, wide.getType(), builder.getI16IntegerAttr(value));
  };
  Value shifted = arith::ShLIOp::create(builder, loc, wide, constant(7));
  // The last bit of the sign stays where it is.
  Value placed = arith::AndIOp::create(builder, loc, shifted, constant(static_cast<int16_t>(0xBF80)));
  Value magnitude = arith::AndIOp::create(builder, loc, wide, constant(0x7F));
  Value isNaN = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, magnitude, constant(0x7F));
  Value special = arith::SelectOp::create(builder, loc, isNaN, constant(0x7C00), constant(0));
  return arith::OrIOp::create(builder, loc, placed, special);
}

Value fp8::buildDecodeFP8(OpBuilder &builder, Location loc, Value value) {
  // By way of f16, whose subnormals processors widen at full speed: an f32 that is subnormal would take an
  // assist of microcode in each operation.
  bool isE5M2 = isa<Float8E5M2Type>(getElementTypeOrSelf(value));
  Arithmetic a(builder, loc, value.getType());
  Value byte = arith::BitcastOp::create(builder, loc, a.as(builder.getI8Type()), value);
  Value wide = arith::ExtSIOp::create(builder, loc, a.as(builder.getI16Type()), byte);
  Value half;
  if (isE5M2) // the upper half of an f16
    half = arith::ShLIOp::create(builder, loc, wide,
                                 buildConstant(builder, loc, byte.getType(), builder.getI16IntegerAttr(8)));
  else
    half = placeE4M3(builder, loc, wide);
  half = arith::BitcastOp::create(builder, loc, a.as(builder.getF16Type()), half);
  Value number = arith::ExtFOp::create(builder, loc, a.as(builder.getF32Type()), half);
  // The biases of f16 and E4M3 are 15 and 7.
  return isE5M2 ? number : a.apply<arith::MulFOp>(number, a.real(0x1p8f));
}

Value fp8::buildWiden(OpBuilder &builder, Location loc, Value value) {
  if (value.getType().isF32())
    return value;
  if (isa<Float8E4M3FNType, Float8E5M2Type>(value.getType()))
    return buildDecodeFP8(builder, loc, value);
  if (value.getType().isF64())
    return arith::TruncFOp::create(builder, loc, builder.getF32Type(), value);
  return arith::ExtFOp::create(builder, loc, builder.getF32Type(), value);
}

Value fp8::buildNarrow(OpBuilder &builder, Location loc, Value value, Type type) {
  if (type.isF32())
    return value;
  if (type.isF64())
    return arith::ExtFOp::create(builder, loc, type, value);
  return arith::TruncFOp::create(builder, loc, type, value);
}

Value fp8::buildInverseE8M0(OpBuilder &b, Location loc, Value scale) {
  auto constant = [&](int32_t value) {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
  };
  // The exponent of 2^k is k + 127, that of its inverse in E8M0 is 127 - k; 2^-127 is subnormal, with
  // exponent 0. NaN has exponent 255 and becomes -1, the byte 255.
  Value bits = arith::BitcastOp::create(b, loc, b.getI32Type(), scale);
  Value exponent = arith::ShRUIOp::create(b, loc, bits, constant(23));
  Value inverse = arith::SubIOp::create(b, loc, constant(254), exponent);
  Value byte = arith::TruncIOp::create(b, loc, b.getI8Type(), inverse);
  return arith::BitcastOp::create(b, loc, Float8E8M0FNUType::get(b.getContext()), byte);
}

Value fp8::buildDecodeE8M0(OpBuilder &b, Location loc, Value value) {
  auto constant = [&](int32_t value) {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
  };
  auto equals = [&](Value byte, int32_t other) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, byte, constant(other));
  };
  Value byte =
      arith::ExtUIOp::create(b, loc, b.getI32Type(), arith::BitcastOp::create(b, loc, b.getI8Type(), value));
  Value bits = arith::ShLIOp::create(b, loc, byte, constant(23));
  bits = arith::SelectOp::create(b, loc, equals(byte, 0), constant(1 << 22), bits); // 2^-127 is subnormal
  bits = arith::SelectOp::create(b, loc, equals(byte, 255), constant(0x7FC00000), bits);
  return arith::BitcastOp::create(b, loc, b.getF32Type(), bits);
}
