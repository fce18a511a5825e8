// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code that several recipes share.

#include "RecipeParts.h"

using namespace mlir;
using namespace fp8;

std::pair<TensorKind, TensorKind> fp8::getOperandKinds(Role role) {
  switch (role) {
  case Role::fprop:
    return {TensorKind::input, TensorKind::weight};
  case Role::dgrad:
    return {TensorKind::grad_output, TensorKind::weight};
  case Role::wgrad:
    return {TensorKind::input, TensorKind::grad_output};
  case Role::other:
    return {TensorKind::input, TensorKind::input};
  }
  llvm_unreachable("all roles are listed");
}

FloatType fp8::detail::formatOf(MLIRContext *context, FormatPolicy policy, TensorKind kind) {
  if (policy == FormatPolicy::e5m2 || (policy == FormatPolicy::hybrid && kind == TensorKind::grad_output))
    return Float8E5M2Type::get(context);
  return Float8E4M3FNType::get(context);
}

Accumulation fp8::detail::accumulationOf(AccumulationPolicy policy, Role role) {
  if (policy != AccumulationPolicy::by_role)
    return policy == AccumulationPolicy::fast ? Accumulation::fast : Accumulation::split;
  return role == Role::dgrad || role == Role::wgrad ? Accumulation::split : Accumulation::fast;
}

std::string fp8::detail::describeSums(RecipeAttrInterface recipe, Role role) {
  SmallVector<int64_t> block = recipe.getBlockShape(getOperandKinds(role).first, {false, true});
  int64_t extent = block.empty() ? 0 : block.back();
  if (extent > 0 && recipe.getScaleType().isF32())
    return ", scaled sums of blocks of " + std::to_string(extent);
  return (extent > 0 ? ", scales of " + std::to_string(extent) + " elements" : "") +
         std::string(recipe.getAccumulation(role) == Accumulation::split ? ", split sums" : "");
}

SmallVector<int64_t> fp8::detail::blocksAlong(ArrayRef<bool> contracted, int64_t extent, int64_t other) {
  SmallVector<int64_t> block(contracted.size(), 1);
  auto lastWith = [&](bool value) -> int64_t {
    for (int64_t d = contracted.size() - 1; d >= 0; --d)
      if (contracted[d] == value)
        return d;
    return -1;
  };
  if (int64_t d = lastWith(true); d >= 0)
    block[d] = extent;
  if (int64_t d = lastWith(false); d >= 0)
    block[d] = other;
  return block;
}

LogicalResult fp8::detail::verifyBlockDim(function_ref<InFlightDiagnostic()> emitError, StringRef parameter,
                                          int64_t dim) {
  if (dim != 1 && dim != 2)
    return emitError() << parameter << " is 1 (blocks along the contracted dimension) or 2 (square blocks), "
                       << "got " << dim;
  return success();
}

LogicalResult fp8::detail::verifyEps(function_ref<InFlightDiagnostic()> emitError, const APFloat &eps) {
  if (!eps.isFinite() || eps.isNegative())
    return emitError() << "eps must be a finite number, 0 or above";
  return success();
}

Value fp8::detail::buildQuotient(ScalarBuilder s, const ScaleInputs &inputs, const APFloat &eps, bool power2,
                                 float largest) {
  Value amax = inputs.amax;
  if (!eps.isZero()) // maximumf propagates NaN, for which the old scale is kept below
    amax = arith::MaximumFOp::create(s.b, s.loc, amax, s.real(eps.convertToFloat()));
  Value scale = s.saturatingQuotient(inputs.fp8Max, amax, largest);
  if (power2)
    scale = s.floorToPowerOf2(scale);
  return s.select(s.isUsable(amax), scale, inputs.old);
}
