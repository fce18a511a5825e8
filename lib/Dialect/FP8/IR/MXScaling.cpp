// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #fp8.mx_scaling: MXFP8, an E8M0 scale per 32 elements along the contracted dimension.

#include "RecipeParts.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

LogicalResult MXScalingAttr::verify(function_ref<InFlightDiagnostic()>, FormatPolicy) { return success(); }

FloatType MXScalingAttr::getFormat(TensorKind kind) const {
  return formatOf(getContext(), getFormat(), kind);
}
bool MXScalingAttr::isStateful() const { return false; }
SmallVector<int64_t> MXScalingAttr::getBlockShape(TensorKind, ArrayRef<bool> contracted) const {
  return blocksAlong(contracted, /*extent=*/32, /*other=*/1);
}
FloatType MXScalingAttr::getScaleType() const { return Float8E8M0FNUType::get(getContext()); }
Accumulation MXScalingAttr::getAccumulation(Role role) const { return accumulationOf(role); }
StringRef MXScalingAttr::getRecipeName() const { return "mxfp8"; }
RecipeAttrInterface MXScalingAttr::getScaling() const { return get(getContext(), FormatPolicy::e4m3); }
SmallVector<NamedAttribute> MXScalingAttr::getParameters() const {
  return ParameterList(getContext()).add("format", getFormat());
}

/// Builds the multiplier 2^(127 - e) of the E8M0 byte e = clamp(127 + ceil(log2(amax / fp8_max)), 0,
/// 254) (OCP Microscaling Formats 1.0, rounded up). The bits of a positive float are 2^23 times the
/// exponent plus the mantissa, so the difference of the bits of amax and fp8_max, divided by 2^23 and
/// rounded up, is the rounded logarithm. For subnormals it is out of range, and the clamp applies.
Value MXScalingAttr::buildScale(OpBuilder &builder, Location loc, Operation *,
                                const ScaleInputs &inputs) const {
  ScalarBuilder s(builder, loc);
  auto bits = [&](Value value) -> Value {
    return arith::BitcastOp::create(builder, loc, builder.getI32Type(), value);
  };
  auto integer = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(value));
  };
  Value difference = arith::SubIOp::create(builder, loc, bits(inputs.amax), bits(inputs.fp8Max));
  Value log = arith::ShRSIOp::create(
      builder, loc, arith::AddIOp::create(builder, loc, difference, integer((1 << 23) - 1)), integer(23));
  Value isFinite = s.compare(arith::CmpFPredicate::OLT, inputs.amax, s.real(INFINITY));
  log = s.select(isFinite, log, integer(127));
  log = arith::MaxSIOp::create(builder, loc, log, integer(-127));
  log = arith::MinSIOp::create(builder, loc, log, integer(127));
  // Build 2^-log from its exponent bits; 2^-127 is subnormal.
  Value exponent = arith::SubIOp::create(builder, loc, integer(127), log);
  Value isSubnormal = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, exponent, integer(0));
  Value normal = arith::ShLIOp::create(builder, loc, exponent, integer(23));
  return arith::BitcastOp::create(builder, loc, builder.getF32Type(),
                                  s.select(isSubnormal, integer(1 << 22), normal));
}
