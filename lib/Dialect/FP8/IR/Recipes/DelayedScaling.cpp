// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #fp8.delayed_scaling: one scale per tensor, from the amaxes of earlier steps.

#include "RecipeParts.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

LogicalResult DelayedScalingAttr::verify(function_ref<InFlightDiagnostic()> emitError, FormatPolicy,
                                         int64_t margin, int64_t historyLen, AmaxComputeAlgo, bool, bool,
                                         bool, InitialScale init, AccumulationPolicy) {
  if (historyLen < 1)
    return emitError() << "amax_history_len must be at least 1, got " << historyLen;
  if (margin < -64 || margin > 64)
    return emitError() << "margin counts binades and must be between -64 and 64, got " << margin;
  // With one row the history is 0 after every update and would always seem empty.
  if (init == InitialScale::current && historyLen < 2)
    return emitError() << "init = current needs an amax_history_len of 2 or more: one row does not tell "
                          "whether there has been an amax";
  return success();
}

FloatType DelayedScalingAttr::getFormat(TensorKind kind) const {
  return formatOf(getContext(), getFormat(), kind);
}
bool DelayedScalingAttr::isStateful() const { return true; }
SmallVector<int64_t> DelayedScalingAttr::getBlockShape(TensorKind, ArrayRef<bool>) const { return {}; }
FloatType DelayedScalingAttr::getScaleType() const { return Float32Type::get(getContext()); }
Accumulation DelayedScalingAttr::getAccumulation(Role role) const {
  return accumulationOf(getAccumulation(), role);
}
StringRef DelayedScalingAttr::getRecipeName() const { return "delayed"; }
int64_t DelayedScalingAttr::getHistoryLength() const { return getAmaxHistoryLen(); }
bool DelayedScalingAttr::startsFromTensor() const { return getInit() == InitialScale::current; }
float DelayedScalingAttr::getNoAmax() const { return getExecutedMask() ? -1.0f : 0.0f; }
RecipeAttrInterface DelayedScalingAttr::getScaling() const {
  return get(getContext(), FormatPolicy::hybrid, getMargin(), getAmaxHistoryLen(), getAmaxComputeAlgo(),
             getReduceAmax(), getIgnoreNonFinite(), getExecutedMask(), getInit(),
             AccumulationPolicy::by_role);
}
SmallVector<NamedAttribute> DelayedScalingAttr::getParameters() const {
  return ParameterList(getContext())
      .add("format", getFormat())
      .add("margin", getMargin())
      .add("amax_history_len", getAmaxHistoryLen())
      .add("amax_compute_algo", getAmaxComputeAlgo())
      .add("reduce_amax", getReduceAmax())
      .add("ignore_non_finite", getIgnoreNonFinite())
      .add("executed_mask", getExecutedMask())
      .add("init", getInit())
      .add("accumulation", getAccumulation());
}

//===----------------------------------------------------------------------===//
// The formulas for one column of the state
//===----------------------------------------------------------------------===//

Value DelayedScalingAttr::buildScale(OpBuilder &builder, Location loc, Operation *,
                                     const ScaleInputs &inputs) const {
  ScalarBuilder s(builder, loc);
  ScaleInputs scaled = inputs;
  if (getMargin() != 0) // exact: a power of two, and the matmul stays within the exponents of f32
    scaled.fp8Max = arith::MulFOp::create(builder, loc, inputs.fp8Max,
                                          s.real(std::ldexp(1.0f, -static_cast<int>(getMargin()))));
  return buildQuotient(s, scaled, APFloat(0.0f), /*power2=*/false);
}

Value DelayedScalingAttr::buildRecorded(OpBuilder &builder, Location loc, Value amax) const {
  return getIgnoreNonFinite() ? ScalarBuilder(builder, loc).finiteOr(amax, getNoAmax()) : amax;
}

Value DelayedScalingAttr::buildPast(OpBuilder &builder, Location loc, Value amax) const {
  return getIgnoreNonFinite() ? ScalarBuilder(builder, loc).finiteOr(amax, 0.0f) : amax;
}

bool DelayedScalingAttr::readsHistory() const { return getAmaxComputeAlgo() == AmaxComputeAlgo::max; }

/// The maximum, which ignores NaN unless both are NaN.
Value DelayedScalingAttr::buildAmaxStep(OpBuilder &builder, Location loc, Value soFar, Value past) const {
  return arith::MaxNumFOp::create(builder, loc, soFar, past);
}

StringRef DelayedScalingAttr::findOverruled(bool scale, bool amax) const {
  if (scale && getMargin() != 0)
    return "margin";
  return amax && getAmaxComputeAlgo() != AmaxComputeAlgo::max ? "amax_compute_algo" : "";
}
