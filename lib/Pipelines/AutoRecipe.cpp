// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chooses the recipe of --recipe=auto: weighs every recipe by what the target says about the rates of its
// matmuls and of its memory.

#include "fp8/Pipelines/Pipelines.h"
#include "mlir/AsmParser/AsmParser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace fp8;

/// The layer that recipes are weighed by: M, N and K of its matmuls, of bf16 tensors.
static constexpr int64_t kSize = 4096;
/// How much slower than the fastest recipe one with finer scales may be.
static constexpr double kTolerance = 0.15;

/// Returns how many elements of a tensor of this kind share a scale.
static double countSharing(RecipeAttrInterface recipe, TensorKind kind) {
  SmallVector<int64_t> block = recipe.getBlockShape(kind, {false, true});
  double elements = 1;
  for (int64_t dim = 0; dim < 2; ++dim)
    elements *= static_cast<double>(block.empty() || block[dim] == 0 ? kSize : block[dim]);
  return elements;
}

/// Returns the bytes that casts of a tensor read and write. Where a scale needs the amax of more than a
/// block, the tensor is read twice; FP8 bytes are written for matmuls along either dimension.
static double countCastBytes(RecipeAttrInterface recipe, TensorKind kind) {
  constexpr double elements = static_cast<double>(kSize * kSize);
  bool hasBlocks = countSharing(recipe, kind) < static_cast<double>(kSize);
  double reads = recipe.isStateful() || hasBlocks ? 1 : 2;
  double scaleBytes = recipe.getScaleType().getIntOrFloatBitWidth() / 8.0 / countSharing(recipe, kind);
  return elements * (2 * reads + 2 * (1 + scaleBytes));
}

/// Returns the seconds of one layer's step; unset where the target does not say how fast it is.
static std::optional<double> countSeconds(TargetAttrInterface target, RecipeAttrInterface recipe) {
  if (target.getMemoryRate() <= 0)
    return std::nullopt;
  double seconds = 0;
  for (Role role : {Role::fprop, Role::dgrad, Role::wgrad}) {
    double rate = target.getMatmulRate(recipe.getRecipeFor(role), role);
    if (rate <= 0)
      return std::nullopt;
    seconds += static_cast<double>(kSize * kSize * kSize) / rate;
  }
  for (TensorKind kind : {TensorKind::input, TensorKind::weight, TensorKind::grad_output})
    seconds += countCastBytes(recipe, kind) / target.getMemoryRate();
  return seconds;
}

static WeighedRecipe weigh(TargetAttrInterface target, StringRef name) {
  RecipeOptions options;
  options.recipe = name.str();
  std::string text = llvm::cantFail(getRecipeAttribute(options)); // names and defaults are right
  auto recipe = cast<RecipeAttrInterface>(parseAttribute(text, target.getContext()));
  WeighedRecipe weighed;
  weighed.recipe = name.str();
  weighed.reason = target.getUnsupportedReason(recipe);
  if (!weighed.reason.empty())
    return weighed;
  weighed.seconds = countSeconds(target, recipe);
  weighed.sharing = countSharing(recipe, TensorKind::input);
  weighed.isStateful = recipe.isStateful();
  if (!weighed.seconds)
    weighed.reason = (target.getTargetName() + " does not say how fast its matmuls and its memory are").str();
  return weighed;
}

std::string WeighedRecipe::describe() const {
  if (!seconds)
    return recipe + ": no, " + reason;
  std::string text =
      llvm::formatv("{0}: {1:f1} us a step of a layer of 4096 x 4096 x 4096, {2} elements per scale", recipe,
                    *seconds * 1e6, static_cast<int64_t>(sharing));
  return text + (isStateful ? ", of earlier steps" : "") + (isChosen ? "; chosen" : "");
}

std::vector<WeighedRecipe> fp8::weighRecipes(TargetAttrInterface target) {
  std::vector<WeighedRecipe> all;
  for (StringRef name : {"mxfp8", "block", "row", "current", "delayed"})
    all.push_back(weigh(target, name));
  double fastest = std::numeric_limits<double>::infinity();
  for (const WeighedRecipe &weighed : all)
    fastest = std::min(fastest, weighed.seconds.value_or(fastest));
  WeighedRecipe *chosen = nullptr;
  auto isFiner = [](const WeighedRecipe &a, const WeighedRecipe &b) {
    return std::pair(a.sharing, a.isStateful) < std::pair(b.sharing, b.isStateful);
  };
  for (WeighedRecipe &weighed : all)
    if (weighed.seconds && *weighed.seconds <= fastest * (1 + kTolerance) &&
        (!chosen || isFiner(weighed, *chosen)))
      chosen = &weighed;
  if (chosen)
    chosen->isChosen = true;
  return all;
}

llvm::Error fp8::chooseRecipe(TargetAttrInterface target, RecipeOptions &options) {
  if (options.recipe != "auto" || !options.chosenRecipe.empty())
    return llvm::Error::success();
  std::vector<WeighedRecipe> all = weighRecipes(target);
  auto chosen = llvm::find_if(all, [](const WeighedRecipe &weighed) { return weighed.isChosen; });
  for (const WeighedRecipe &weighed : all)
    options.weighedRecipes.push_back(weighed.describe());
  if (chosen == all.end())
    return llvm::createStringError("--recipe=auto finds no recipe for --target=" + target.getTargetName() +
                                   ": " + llvm::join(options.weighedRecipes, "; "));
  options.chosenRecipe = chosen->recipe;
  return llvm::Error::success();
}
