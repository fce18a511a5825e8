// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #fp8.block_scaling: a scale per 1×128 of activations and gradients, per 128×128 of weights.

#include "RecipeParts.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

LogicalResult BlockScalingAttr::verify(function_ref<InFlightDiagnostic()> emitError, FormatPolicy,
                                       int64_t block, APFloat eps, bool) {
  if (block < 1)
    return emitError() << "block must be at least 1, got " << block;
  return verifyEps(emitError, eps);
}

FloatType BlockScalingAttr::getFormat(TensorKind kind) const {
  return formatOf(getContext(), getFormat(), kind);
}
bool BlockScalingAttr::isStateful() const { return false; }
SmallVector<int64_t> BlockScalingAttr::getBlockShape(TensorKind kind, ArrayRef<bool> contracted) const {
  return blocksAlong(contracted, getBlock(), kind == TensorKind::weight ? getBlock() : 1);
}
FloatType BlockScalingAttr::getScaleType() const { return Float32Type::get(getContext()); }
Accumulation BlockScalingAttr::getAccumulation(Role) const { return Accumulation::split; }
StringRef BlockScalingAttr::getRecipeName() const { return "block"; }
RecipeAttrInterface BlockScalingAttr::getScaling() const {
  return get(getContext(), FormatPolicy::e4m3, getBlock(), getEps(), getPower_2Scale());
}
SmallVector<NamedAttribute> BlockScalingAttr::getParameters() const {
  return ParameterList(getContext())
      .add("format", getFormat())
      .add("block", getBlock())
      .add("eps", getEps())
      .add("power_2_scale", getPower_2Scale());
}

/// A scale that overflows becomes the largest finite number of the tensor's own type, so that its
/// products with elements stay finite.
Value BlockScalingAttr::buildScale(OpBuilder &builder, Location loc, Operation *,
                                   const ScaleInputs &inputs) const {
  float largest = FLT_MAX;
  if (inputs.inputType && inputs.inputType.getIntOrFloatBitWidth() < 32) {
    APFloat value = APFloat::getLargest(inputs.inputType.getFloatSemantics());
    bool losesInfo;
    value.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &losesInfo);
    largest = value.convertToFloat();
  }
  return buildQuotient(ScalarBuilder(builder, loc), inputs, getEps(), getPower_2Scale(), largest);
}
