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
                                       int64_t block, APFloat eps, bool, int64_t xDim, int64_t wDim,
                                       int64_t gradDim) {
  if (block < 1)
    return emitError() << "block must be at least 1, got " << block;
  if (failed(verifyBlockDim(emitError, "x_block_scaling_dim", xDim)) ||
      failed(verifyBlockDim(emitError, "w_block_scaling_dim", wDim)) ||
      failed(verifyBlockDim(emitError, "grad_block_scaling_dim", gradDim)))
    return failure();
  return verifyEps(emitError, eps);
}

FloatType BlockScalingAttr::getFormat(TensorKind kind) const {
  return formatOf(getContext(), getFormat(), kind);
}
bool BlockScalingAttr::isStateful() const { return false; }

/// Returns 1 or 2, the dimensions of the blocks of a tensor, and the parameter that says so.
static std::pair<int64_t, StringRef> getBlockDim(BlockScalingAttr recipe, TensorKind kind) {
  switch (kind) {
  case TensorKind::input:
    return {recipe.getXBlockScalingDim(), "x_block_scaling_dim"};
  case TensorKind::weight:
    return {recipe.getWBlockScalingDim(), "w_block_scaling_dim"};
  case TensorKind::grad_output:
    return {recipe.getGradBlockScalingDim(), "grad_block_scaling_dim"};
  }
  llvm_unreachable("all kinds are listed");
}

SmallVector<int64_t> BlockScalingAttr::getBlockShape(TensorKind kind, ArrayRef<bool> contracted) const {
  return blocksAlong(contracted, getBlock(), getBlockDim(*this, kind).first == 2 ? getBlock() : 1);
}
std::string BlockScalingAttr::getUnfitReason(TensorKind lhs, TensorKind rhs) const {
  auto [lhsDim, lhsName] = getBlockDim(*this, lhs);
  auto [rhsDim, rhsName] = getBlockDim(*this, rhs);
  if (lhsDim != 2 || rhsDim != 2)
    return "";
  std::string names = lhsName.str() + (lhs == rhs ? "" : " or " + rhsName.str());
  return "at most one operand of a matmul has square blocks; set " + names + " = 1";
}
FloatType BlockScalingAttr::getScaleType() const { return Float32Type::get(getContext()); }
Accumulation BlockScalingAttr::getAccumulation(Role) const { return Accumulation::split; }
StringRef BlockScalingAttr::getRecipeName() const { return "block"; }
RecipeAttrInterface BlockScalingAttr::getScaling() const {
  return get(getContext(), FormatPolicy::e4m3, getBlock(), getEps(), getPower_2Scale(), getXBlockScalingDim(),
             getWBlockScalingDim(), getGradBlockScalingDim());
}
SmallVector<NamedAttribute> BlockScalingAttr::getParameters() const {
  return ParameterList(getContext())
      .add("format", getFormat())
      .add("block", getBlock())
      .add("eps", getEps())
      .add("power_2_scale", getPower_2Scale())
      .add("x_block_scaling_dim", getXBlockScalingDim())
      .add("w_block_scaling_dim", getWBlockScalingDim())
      .add("grad_block_scaling_dim", getGradBlockScalingDim());
}

/// A quotient that overflows f32 becomes the largest finite number of the tensor's own type, as in
/// Transformer Engine; one that is larger but finite in f32 stays.
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
