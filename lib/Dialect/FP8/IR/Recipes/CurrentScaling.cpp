// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #fp8.current_scaling: one scale per tensor, from the tensor itself.

#include "RecipeParts.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

LogicalResult CurrentScalingAttr::verify(function_ref<InFlightDiagnostic()> emitError, FormatPolicy,
                                         APFloat eps, bool, bool, AccumulationPolicy) {
  return verifyEps(emitError, eps);
}

FloatType CurrentScalingAttr::getFormat(TensorKind kind) const {
  return formatOf(getContext(), getFormat(), kind);
}
bool CurrentScalingAttr::isStateful() const { return false; }
SmallVector<int64_t> CurrentScalingAttr::getBlockShape(TensorKind, ArrayRef<bool>) const { return {}; }
FloatType CurrentScalingAttr::getScaleType() const { return Float32Type::get(getContext()); }
Accumulation CurrentScalingAttr::getAccumulation(Role role) const {
  return accumulationOf(getAccumulation(), role);
}
StringRef CurrentScalingAttr::getRecipeName() const { return "current"; }
RecipeAttrInterface CurrentScalingAttr::getScaling() const {
  return get(getContext(), FormatPolicy::hybrid, getEps(), getPower_2Scale(), getReduceAmax(),
             AccumulationPolicy::by_role);
}
SmallVector<NamedAttribute> CurrentScalingAttr::getParameters() const {
  return ParameterList(getContext())
      .add("format", getFormat())
      .add("eps", getEps())
      .add("power_2_scale", getPower_2Scale())
      .add("reduce_amax", getReduceAmax())
      .add("accumulation", getAccumulation());
}

Value CurrentScalingAttr::buildScale(OpBuilder &builder, Location loc, Operation *,
                                     const ScaleInputs &inputs) const {
  return buildQuotient(ScalarBuilder(builder, loc), inputs, getEps(), getPower_2Scale());
}

StringRef CurrentScalingAttr::findOverruled(bool scale, bool) const {
  if (scale && !getEps().isZero())
    return "eps";
  return scale && getPower_2Scale() ? "power_2_scale" : "";
}
