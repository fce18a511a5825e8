// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parameters of recipes, the words that the options take, and the errors of options that are wrong or
// contradict one another.

#include "RecipeWords.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace fp8;
using namespace fp8::detail;
using llvm::StringRef;

static constexpr llvm::StringLiteral kAllRecipes = "delayed current block row mxfp8";
static constexpr llvm::StringLiteral kFreeSums = "delayed current row mxfp8";

llvm::ArrayRef<RecipeParameter> fp8::getRecipeParameters() {
  static constexpr RecipeParameter parameters[] = {
      {"format", "format", "hybrid|e4m3", kAllRecipes,
       "E5M2 for gradients (hybrid, default), or E4M3 throughout (default of block, row, mxfp8)"},
      {"margin", "margin", "N", "delayed", "Binades left free above amax (0)"},
      {"amax-history-len", "amax_history_len", "N", "delayed", "Number of steps in the amax history (1024)"},
      {"amax-compute-algo", "amax_compute_algo", "max|most_recent", "delayed",
       "Which amax of the history the scale is computed from (max)"},
      {"reduce-amax", "reduce_amax", "true|false", "delayed current", "Combine amaxes over all ranks (true)"},
      {"ignore-non-finite", "ignore_non_finite", "true|false", "delayed",
       "Keep Inf and NaN out of the history, where one Inf freezes the scale until it leaves (false)"},
      {"executed-mask", "executed_mask", "true|false", "delayed",
       "An amax of 0 enters the history; by default it means that the site did not run (false)"},
      {"init", "init", "one|current", "delayed",
       "Scale of a tensor with an empty history: 1, or computed from its own amax (one)"},
      {"eps", "eps", "X", "current block row", "Smallest amax that a scale is computed from (0)"},
      {"power-2-scale", "power_2_scale", "true|false", "current block row",
       "Round scales down to powers of two (false; block: true)"},
      {"x-block-scaling-dim", "x_block_scaling_dim", "1|2", "block",
       "Blocks of inputs: 1x128 along the contracted dimension, or 128x128 (1)"},
      {"w-block-scaling-dim", "w_block_scaling_dim", "1|2", "block mxfp8",
       "Blocks of weights, as of inputs; of mxfp8 1x32 or 32x32 (block: 2, mxfp8: 1)"},
      {"grad-block-scaling-dim", "grad_block_scaling_dim", "1|2", "block",
       "Blocks of gradients, as of inputs (1)"},
      {"mx-rounding", "rounding", "up|floor|even|ceil", "mxfp8",
       "E8M0 scales: so that no element saturates (up, default), or from the power of two of the amax, "
       "rounded down as the OCP specification has it (floor), to the format's mantissa (even) or up (ceil)"},
      {"accumulation", "accumulation", "by_role|fast|split", kFreeSums,
       "One sum along K, or sums of 128 that are added: fast forward and split for gradients (by_role, "
       "default)"},
      {"fprop-accumulation", "", "fast|split", kFreeSums, "Accumulation of forward matmuls"},
      {"dgrad-accumulation", "", "fast|split", kFreeSums, "Accumulation of input gradients"},
      {"wgrad-accumulation", "", "fast|split", kFreeSums, "Accumulation of weight gradients"},
  };
  return parameters;
}

static llvm::SmallVector<StringRef> splitList(StringRef text, char separator) {
  llvm::SmallVector<StringRef> words;
  text.split(words, separator);
  return words;
}

StringRef fp8::getChosenRecipe(const RecipeOptions &options) {
  return options.recipe == "auto" ? options.chosenRecipe : options.recipe;
}

StringRef fp8::detail::getGiven(const RecipeOptions &options, StringRef option) {
  auto given = options.parameters.find(option.str());
  return given == options.parameters.end() ? StringRef() : StringRef(given->second);
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

bool fp8::detail::isFormat(StringRef word) { return word == "e4m3" || word == "e5m2"; }
bool fp8::detail::isKept(StringRef word) {
  return llvm::is_contained({"none", "bf16", "f16", "f32", "f64"}, word);
}
bool fp8::detail::isAttribute(StringRef word) { return word.starts_with("#"); }

StringRef fp8::detail::getMnemonic(StringRef recipe) {
  return llvm::StringSwitch<StringRef>(recipe)
      .Case("delayed", "delayed_scaling")
      .Case("current", "current_scaling")
      .Case("row", "row_scaling")
      .Case("block", "block_scaling")
      .Case("mxfp8", "mx_scaling")
      .Default("");
}
bool fp8::detail::isRecipe(StringRef word) { return isAttribute(word) || !getMnemonic(word).empty(); }

bool fp8::detail::hasParameter(StringRef recipe, const RecipeParameter &parameter) {
  return llvm::is_contained(splitList(parameter.recipes, ' '), recipe);
}

std::pair<StringRef, StringRef> fp8::detail::getRoleOption(const RecipeOptions &options, unsigned role) {
  switch (role) {
  case 0:
    return {"fprop", options.fprop};
  case 1:
    return {"dgrad", options.dgrad};
  default:
    return {"wgrad", options.wgrad};
  }
}

std::pair<StringRef, StringRef> fp8::detail::splitSiteRecipe(StringRef text) {
  size_t attribute = text.find("=#");
  return attribute != StringRef::npos ? std::pair(text.take_front(attribute), text.drop_front(attribute + 1))
                                      : text.rsplit('=');
}

/// Returns the recipes that the options name: of the program, of roles and of sites.
static llvm::SmallVector<StringRef> listRecipes(const RecipeOptions &options) {
  llvm::SmallVector<StringRef> recipes = {getChosenRecipe(options)};
  for (unsigned role : {0u, 1u, 2u})
    recipes.push_back(getRoleOption(options, role).second);
  for (StringRef text : options.siteRecipes)
    recipes.push_back(splitSiteRecipe(text).second);
  return recipes;
}

bool fp8::combinesAmaxes(const RecipeOptions &options) {
  return llvm::any_of(listRecipes(options), [](StringRef recipe) {
    return recipe == "delayed" || recipe == "current" || isAttribute(recipe);
  });
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// Returns the error for an option that belongs to `owner`, not to what `given` says.
static llvm::Error contradiction(const llvm::Twine &option, StringRef owner, const llvm::Twine &given) {
  return llvm::createStringError("--" + option + " belongs to " + owner + ", not to " + given +
                                 "; drop one of the two");
}

/// Returns the error for an option that the chosen recipe does not have.
static llvm::Error contradiction(const llvm::Twine &option, const RecipeOptions &options, StringRef owner) {
  std::string recipe = options.recipe;
  if (recipe == "auto")
    recipe += " (" + getChosenRecipe(options).str() + " for --target=" + options.target + ")";
  if (isAttribute(recipe))
    owner = "the words delayed, current, … (an attribute says it all itself)";
  return contradiction(option, owner, "--recipe=" + recipe);
}

static std::string describeOwners(const RecipeParameter &parameter) {
  return parameter.recipes == kAllRecipes
             ? "recipes that make FP8"
             : "--recipe=" + llvm::join(splitList(parameter.recipes, ' '), " and ");
}

static llvm::Error checkWord(StringRef option, StringRef value, llvm::ArrayRef<StringRef> words) {
  if (llvm::is_contained(words, value))
    return llvm::Error::success();
  return llvm::createStringError("--" + option + "=" + value + " is none of " + llvm::join(words, ", "));
}

static llvm::Error checkValue(const RecipeParameter &parameter, StringRef value) {
  std::string given = ("--" + parameter.option + "=" + value).str();
  if (given == "--format=e5m2")
    return llvm::createStringError(given + " is none of hybrid, e4m3: E5M2 has too few bits for activations "
                                           "and weights; hybrid gives it to gradients");
  if (parameter.values == "X") {
    double number;
    if (value.getAsDouble(number) || !(number >= 0 && number <= 3e38))
      return llvm::createStringError(given + " is not a finite number, 0 or above");
    return llvm::Error::success();
  }
  if (parameter.values != "N")
    return checkWord(parameter.option, value, splitList(parameter.values, '|'));
  int64_t number;
  if (value.getAsInteger(10, number))
    return llvm::createStringError(given + " is not a whole number");
  if (parameter.option == "amax-history-len" && number < 1)
    return llvm::createStringError(given + ": the length must be at least 1");
  if (parameter.option == "margin" && (number < -64 || number > 64))
    return llvm::createStringError(given + " counts binades and must be between -64 and 64");
  return llvm::Error::success();
}

static llvm::Error checkParameters(const RecipeOptions &options) {
  llvm::SmallVector<StringRef> recipes = listRecipes(options);
  for (const RecipeParameter &parameter : getRecipeParameters()) {
    auto given = options.parameters.find(parameter.option.str());
    if (given == options.parameters.end())
      continue;
    if (llvm::none_of(recipes, [&](StringRef recipe) { return hasParameter(recipe, parameter); }))
      return contradiction(parameter.option, options, describeOwners(parameter));
    if (llvm::Error error = checkValue(parameter, given->second))
      return error;
  }
  if (getGiven(options, "amax-history-len") == "1" && getGiven(options, "init") == "current")
    return llvm::createStringError(
        "--init=current needs an --amax-history-len of 2 or more: one row does not "
        "tell whether there has been an amax");
  return llvm::Error::success();
}

/// Checks the option of a role, and the option for its accumulation.
static llvm::Error checkRole(const RecipeOptions &options, unsigned role) {
  auto [option, word] = getRoleOption(options, role);
  StringRef base = getChosenRecipe(options);
  if (!isRecipe(word) && !isKept(word) && !isFormat(word) && word != "fp8")
    return llvm::createStringError("--" + option + "=" + word +
                                   " is none of fp8, e4m3, e5m2, bf16, f16, f32, f64, none, " +
                                   llvm::join(splitList(kAllRecipes, ' '), ", ") + " and no attribute");
  bool needsBase = isRecipe(word) && (base == "none" || base.starts_with("#fp8.custom"));
  if (needsBase || (isFormat(word) && (base == "none" || isAttribute(base))))
    return contradiction(option + "=" + word, options, "recipes that make FP8");
  std::string sums = (option + "-accumulation").str();
  StringRef own = isRecipe(word) ? word : base;
  if (getGiven(options, sums).empty() ||
      (!isKept(word) && !isAttribute(own) && own != "block" && own != "none"))
    return llvm::Error::success();
  std::string given =
      isKept(word) || isRecipe(word) ? ("--" + option + "=" + word).str() : "--recipe=" + options.recipe;
  return contradiction(sums,
                       own == "block" ? "recipes other than block, whose parts have scales of their own"
                                      : "delayed, current, row and mxfp8",
                       given);
}

static llvm::Error checkSiteRecipe(StringRef text) {
  auto [regex, word] = splitSiteRecipe(text);
  if (regex.empty() || word.empty())
    return llvm::createStringError("--site-recipe=" + text + " is not REGEX=RECIPE");
  if (isRecipe(word) || isKept(word))
    return llvm::Error::success();
  return llvm::createStringError("--site-recipe=" + text + ": " + word + " is none of " +
                                 llvm::join(splitList(kAllRecipes, ' '), ", ") +
                                 ", none, bf16, f16, f32, f64 and no attribute");
}

llvm::Error fp8::detail::checkOptions(const RecipeOptions &options) {
  StringRef recipe = getChosenRecipe(options);
  if (options.recipe == "auto" && recipe.empty())
    return llvm::createStringError(
        "--recipe=auto is not chosen yet; call chooseRecipe with the target first");
  if (!isRecipe(recipe) && recipe != "none")
    return llvm::createStringError(
        "--recipe=" + recipe +
        " is none of delayed, current, block, row, mxfp8, auto, none and no attribute");
  for (StringRef text : options.siteRecipes)
    if (llvm::Error error = checkSiteRecipe(text))
      return error;
  if (recipe == "none" && options.siteRecipes.empty())
    for (auto [option, isGiven] : {std::pair("stochastic-rounding=true", options.stochasticRounding),
                                   std::pair("fp8-attention", options.attention)})
      if (isGiven)
        return contradiction(option, options, "recipes that make FP8");
  if (options.keepParameters && recipe == "none" && options.siteRecipes.empty())
    return llvm::createStringError("--fp8-parameters keeps weights in FP8, and --recipe=none casts none to "
                                   "FP8: choose another recipe, or leave out --fp8-parameters");
  if (options.attention && options.sites != "linear" && options.sites != "all")
    return contradiction("fp8-attention", "--sites=linear", "--sites=" + options.sites);
  if (options.attentionForm != "fused" && options.attentionForm != "written")
    return llvm::createStringError("--attention=" + options.attentionForm + " must be fused or written");
  if (!options.requireAttention.empty() && options.attentionForm == "written")
    return contradiction("require-attention", "--attention=fused", "--attention=written");
  if (llvm::Error error = checkParameters(options))
    return error;
  for (unsigned role : {0u, 1u, 2u})
    if (llvm::Error error = checkRole(options, role))
      return error;
  return llvm::Error::success();
}
