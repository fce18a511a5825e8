// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The matmuls of groups of rows (mixture of experts) that a target computes group by group, and their code.

#include "fp8/Dialect/FP8/IR/GroupedMatmulSupport.h"

using namespace mlir;
using namespace fp8;

/// Returns whether kernels of grouped matmuls have a scale for each `extent` elements along K.
static bool hasGroupedScales(TargetAttrInterface target, FloatType scaleType, int64_t extent) {
  auto attribute = dyn_cast<ChipAttr>(target);
  if (!attribute)
    return !target.hasManyThreads();
  const Chip &chip = getChip(attribute);
  if (isa<Float8E8M0FNUType>(scaleType))
    return extent == 32 && chip.hasMXScales;
  return scaleType.isF32() && extent % kSmallestBlock == 0;
}

bool fp8::canGroupScales(TargetAttrInterface target, RecipeAttrInterface recipe,
                         const GroupedOperand &operand) {
  SmallVector<int64_t> blocks = recipe.getBlockShape(operand.kind, operand.contracted);
  bool hasSingleRows = true, hasKernels = true;
  for (auto [extent, isContracted] : llvm::zip(blocks, operand.contracted)) {
    if (!isContracted)
      hasSingleRows &= extent == 1;
    else if (extent != 0)
      hasKernels &= !operand.areRowsSummed && hasGroupedScales(target, recipe.getScaleType(), extent);
  }
  return hasKernels && (hasSingleRows || !operand.hasRows);
}

MatmulFamily fp8::getGroupedFamily(const Chip &chip, bool isFP8) {
  return isFP8 ? chip.family : MatmulFamily::mma;
}

/// Returns whether `target` computes grouped matmuls with these scales on masked rows.
static bool areMasked(TargetAttrInterface target, RecipeAttrInterface recipe, Role role) {
  auto [lhs, rhs] = getOperandKinds(role);
  bool isWeightGradient = role == Role::wgrad;
  GroupedOperand operands[] = {
      {lhs, {isWeightGradient, !isWeightGradient}, /*hasRows=*/true, isWeightGradient},
      {rhs, {true, false}, /*hasRows=*/isWeightGradient, isWeightGradient}};
  return !llvm::all_of(
      operands, [&](const GroupedOperand &operand) { return canGroupScales(target, recipe, operand); });
}

MatmulSupport fp8::describeGroupedMatmul(TargetAttrInterface target, RecipeAttrInterface recipe, Role role) {
  MatmulSupport support = target.describeMatmul(recipe, role);
  if (support.code.empty())
    return support;
  if (recipe && areMasked(target, recipe, role))
    return {support.code + ", of masked rows", ""};
  if (auto chip = dyn_cast<ChipAttr>(target))
    return describeMatmulOf(chip, getGroupedFamily(getChip(chip), /*isFP8=*/bool(recipe)), recipe, role);
  StringRef code = support.code;
  return code.consume_back(" (CPU)") ? MatmulSupport{(code + ", a product per group (CPU)").str(), ""}
                                     : support;
}
