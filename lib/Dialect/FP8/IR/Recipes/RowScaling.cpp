// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #fp8.row_scaling: one scale per row of the first operand and per column of the second.

#include "RecipeParts.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

LogicalResult RowScalingAttr::verify(function_ref<InFlightDiagnostic()> emitError, FormatPolicy, APFloat eps,
                                     bool, AccumulationPolicy) {
  return verifyEps(emitError, eps);
}

FloatType RowScalingAttr::getFormat(TensorKind kind) const {
  return formatOf(getContext(), getFormat(), kind);
}
bool RowScalingAttr::isStateful() const { return false; }
SmallVector<int64_t> RowScalingAttr::getBlockShape(TensorKind, ArrayRef<bool> contracted) const {
  return llvm::map_to_vector(contracted, [](bool isContracted) -> int64_t { return isContracted ? 0 : 1; });
}
FloatType RowScalingAttr::getScaleType() const { return Float32Type::get(getContext()); }
Accumulation RowScalingAttr::getAccumulation(Role role) const {
  return accumulationOf(getAccumulation(), role);
}
StringRef RowScalingAttr::getRecipeName() const { return "row"; }
RecipeAttrInterface RowScalingAttr::getScaling() const {
  return get(getContext(), FormatPolicy::e4m3, getEps(), getPower_2Scale(), AccumulationPolicy::by_role);
}
SmallVector<NamedAttribute> RowScalingAttr::getParameters() const {
  return ParameterList(getContext())
      .add("format", getFormat())
      .add("eps", getEps())
      .add("power_2_scale", getPower_2Scale())
      .add("accumulation", getAccumulation());
}

Value RowScalingAttr::buildScale(OpBuilder &builder, Location loc, Operation *,
                                 const ScaleInputs &inputs) const {
  return buildQuotient(ScalarBuilder(builder, loc), inputs, getEps(), getPower_2Scale());
}
