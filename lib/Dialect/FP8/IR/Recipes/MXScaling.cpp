// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #fp8.mx_scaling: MXFP8, an E8M0 scale per 32 elements along the contracted dimension.

#include "RecipeParts.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

static constexpr int64_t kBlock = 32;
/// Bits of the mantissa of an f32.
static constexpr int64_t kMantissaBits = 23;

LogicalResult MXScalingAttr::verify(function_ref<InFlightDiagnostic()> emitError, FormatPolicy, ScaleRounding,
                                    int64_t wDim, AccumulationPolicy) {
  return verifyBlockDim(emitError, "w_block_scaling_dim", wDim);
}

FloatType MXScalingAttr::getFormat(TensorKind kind) const {
  return formatOf(getContext(), getFormat(), kind);
}
bool MXScalingAttr::isStateful() const { return false; }
SmallVector<int64_t> MXScalingAttr::getBlockShape(TensorKind kind, ArrayRef<bool> contracted) const {
  bool isSquare = kind == TensorKind::weight && getWBlockScalingDim() == 2;
  return blocksAlong(contracted, kBlock, /*other=*/isSquare ? kBlock : 1);
}
FloatType MXScalingAttr::getScaleType() const { return Float8E8M0FNUType::get(getContext()); }
Accumulation MXScalingAttr::getAccumulation(Role role) const {
  return accumulationOf(getAccumulation(), role);
}
StringRef MXScalingAttr::getRecipeName() const { return "mxfp8"; }
RecipeAttrInterface MXScalingAttr::getScaling() const {
  return get(getContext(), FormatPolicy::e4m3, getRounding(), getWBlockScalingDim(),
             AccumulationPolicy::by_role);
}
SmallVector<NamedAttribute> MXScalingAttr::getParameters() const {
  return ParameterList(getContext())
      .add("format", getFormat())
      .add("rounding", getRounding())
      .add("w_block_scaling_dim", getWBlockScalingDim())
      .add("accumulation", getAccumulation());
}

/// Builds the rounded logarithm of amax / fp8_max, an i32, from the bits of both. The bits of a positive
/// float are 2^23 times its exponent plus the mantissa, so their quotient by 2^23, rounded down or up, is its
/// logarithm, rounded so; that of the difference is the logarithm of the quotient. For subnormals
/// it is below -127.
static Value buildLog(MXScalingAttr recipe, OpBuilder &builder, Location loc, Value amax, Value fp8Max) {
  auto integer = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(value));
  };
  auto add = [&](Value a, Value b) -> Value { return arith::AddIOp::create(builder, loc, a, b); };
  auto subtract = [&](Value a, Value b) -> Value { return arith::SubIOp::create(builder, loc, a, b); };
  auto exponent = [&](Value bits) -> Value {
    return arith::ShRSIOp::create(builder, loc, bits, integer(kMantissaBits));
  };
  Type i32 = builder.getI32Type();
  Value bits = arith::BitcastOp::create(builder, loc, i32, amax);
  Value maxBits = arith::BitcastOp::create(builder, loc, i32, fp8Max);
  ScalarBuilder s(builder, loc);
  Value almostOne = integer((1 << kMantissaBits) - 1);
  if (recipe.getRounding() == ScaleRounding::up)
    return exponent(add(subtract(bits, maxBits), almostOne));
  if (recipe.getRounding() == ScaleRounding::ceil)
    bits = add(bits, almostOne);
  if (recipe.getRounding() == ScaleRounding::even) {
    // Half a unit of the mantissa of the format, of 3 bits in E4M3 and of 2 in E5M2.
    Value isE5M2 = s.compare(arith::CmpFPredicate::OGT, fp8Max, s.real(448.0f));
    bits = add(bits, s.select(isE5M2, integer(1 << (kMantissaBits - 3)), integer(1 << (kMantissaBits - 4))));
  }
  return subtract(exponent(bits), exponent(maxBits));
}

/// Builds the multiplier 2^(127 - e) of the E8M0 byte e = clamp(127 + log, 0, 254), where log is the
/// rounded logarithm of amax / fp8_max.
Value MXScalingAttr::buildScale(OpBuilder &builder, Location loc, Operation *,
                                const ScaleInputs &inputs) const {
  ScalarBuilder s(builder, loc);
  auto integer = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(value));
  };
  Value log = buildLog(*this, builder, loc, inputs.amax, inputs.fp8Max);
  Value isFinite = s.compare(arith::CmpFPredicate::OLT, inputs.amax, s.real(INFINITY));
  log = s.select(isFinite, log, integer(127));
  log = arith::MaxSIOp::create(builder, loc, log, integer(-127));
  log = arith::MinSIOp::create(builder, loc, log, integer(127));
  // Build 2^-log from its exponent bits; 2^-127 is subnormal.
  Value exponent = arith::SubIOp::create(builder, loc, integer(127), log);
  Value isSubnormal = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, exponent, integer(0));
  Value normal = arith::ShLIOp::create(builder, loc, exponent, integer(kMantissaBits));
  return arith::BitcastOp::create(builder, loc, builder.getF32Type(),
                                  s.select(isSubnormal, integer(1 << (kMantissaBits - 1)), normal));
}
