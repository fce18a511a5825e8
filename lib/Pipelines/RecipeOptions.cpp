// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns the options of the command line into a recipe attribute, and lists the values of all
// options for reports.

#include "fp8/Pipelines/Pipelines.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace fp8;
using llvm::StringRef;

static constexpr llvm::StringLiteral kAllRecipes = "delayed current block row mxfp8";

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
  };
  return parameters;
}

static llvm::SmallVector<StringRef> splitList(StringRef text, char separator) {
  llvm::SmallVector<StringRef> words;
  text.split(words, separator);
  return words;
}

StringRef fp8::getChosenRecipe(const RecipeOptions &options) {
  if (options.recipe != "auto")
    return options.recipe;
  // The tensor cores of Blackwell apply MX scales in hardware. On the other targets current scaling
  // runs at full speed and needs no state.
  return options.target == "sm_100a" || options.target == "sm_120a" ? "mxfp8" : "current";
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// Returns the error for an option that the chosen recipe does not have.
static llvm::Error contradiction(StringRef option, const RecipeOptions &options, StringRef owner) {
  std::string recipe = options.recipe;
  if (recipe == "auto")
    recipe += " (" + getChosenRecipe(options).str() + " for --target=" + options.target + ")";
  if (StringRef(recipe).starts_with("#"))
    owner = "the words delayed, current, … (an attribute says it all itself)";
  return llvm::createStringError("--" + option.str() + " belongs to " + owner.str() +
                                 ", not to --recipe=" + recipe + "; drop one of the two");
}

static llvm::Error checkWord(StringRef option, StringRef value, llvm::ArrayRef<StringRef> words) {
  if (llvm::is_contained(words, value))
    return llvm::Error::success();
  return llvm::createStringError("--" + option.str() + "=" + value.str() + " is none of " +
                                 llvm::join(words, ", "));
}

static llvm::Error checkValue(const RecipeParameter &parameter, StringRef value) {
  std::string given = ("--" + parameter.option + "=" + value).str();
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
  StringRef recipe = getChosenRecipe(options);
  for (const RecipeParameter &parameter : getRecipeParameters()) {
    auto given = options.parameters.find(parameter.option.str());
    if (given == options.parameters.end())
      continue;
    llvm::SmallVector<StringRef> owners = splitList(parameter.recipes, ' ');
    if (!llvm::is_contained(owners, recipe))
      return contradiction(parameter.option, options,
                           parameter.recipes == kAllRecipes ? "recipes that make FP8"
                                                            : "--recipe=" + llvm::join(owners, " and "));
    if (llvm::Error error = checkValue(parameter, given->second))
      return error;
  }
  auto length = options.parameters.find("amax-history-len"), init = options.parameters.find("init");
  if (length != options.parameters.end() && init != options.parameters.end() && length->second == "1" &&
      init->second == "current")
    return llvm::createStringError(
        "--init=current needs an --amax-history-len of 2 or more: one row does not "
        "tell whether there has been an amax");
  return llvm::Error::success();
}

static std::pair<StringRef, StringRef> roleOptions(const RecipeOptions &options, unsigned role) {
  switch (role) {
  case 0:
    return {"fprop", options.fprop};
  case 1:
    return {"dgrad", options.dgrad};
  default:
    return {"wgrad", options.wgrad};
  }
}

static bool isFormat(StringRef word) { return word == "e4m3" || word == "e5m2"; }

static llvm::Error checkRoles(const RecipeOptions &options) {
  for (unsigned role : {0u, 1u, 2u}) {
    auto [option, word] = roleOptions(options, role);
    if (llvm::Error error = checkWord(option, word, {"fp8", "e4m3", "e5m2", "bf16", "f16", "f32", "f64"}))
      return error;
    if (isFormat(word) && (options.recipe == "none" || StringRef(options.recipe).starts_with("#")))
      return contradiction((option + "=" + word).str(), options, "recipes that make FP8");
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// The attribute
//===----------------------------------------------------------------------===//

/// Returns the text of a recipe attribute with the parameters that the user set; `format` replaces
/// their format unless it is empty.
static std::string printRecipe(StringRef mnemonic, const RecipeOptions &options, StringRef format) {
  llvm::SmallVector<std::string> parameters;
  for (const RecipeParameter &parameter : getRecipeParameters()) {
    auto given = options.parameters.find(parameter.option.str());
    std::string value = given == options.parameters.end() ? "" : given->second;
    if (parameter.option == "format" && !format.empty())
      value = format.str();
    if (double number; parameter.values == "X" && !StringRef(value).getAsDouble(number))
      value = llvm::formatv("{0:e10}", number); // an attribute wants a decimal point
    if (!value.empty())
      parameters.push_back((parameter.parameter + " = " + value).str());
  }
  return ("#fp8." + mnemonic).str() + (parameters.empty() ? "" : "<" + llvm::join(parameters, ", ") + ">");
}

/// Returns the format policy that gives the role the format `word`; empty if `base` does.
static StringRef policyOfRole(unsigned role, StringRef word, StringRef base) {
  if (!isFormat(word))
    return "";
  if (role == 0) // both operands, which are E4M3 in either policy of the command line
    return word == "e5m2" ? "e5m2" : "";
  StringRef policy = word == "e5m2" ? "hybrid" : "e4m3";
  return policy == base ? "" : policy;
}

llvm::Expected<std::string> fp8::getRecipeAttribute(const RecipeOptions &options) {
  StringRef recipe = getChosenRecipe(options);
  StringRef mnemonic = llvm::StringSwitch<StringRef>(recipe)
                           .Case("delayed", "delayed_scaling")
                           .Case("current", "current_scaling")
                           .Case("row", "row_scaling")
                           .Case("block", "block_scaling")
                           .Case("mxfp8", "mx_scaling")
                           .Default("");
  if (mnemonic.empty() && recipe != "none" && !recipe.starts_with("#"))
    return llvm::createStringError(
        "--recipe=" + recipe.str() +
        " is none of delayed, current, block, row, mxfp8, auto, none and no attribute");
  if (llvm::Error error = checkParameters(options))
    return error;
  if (llvm::Error error = checkRoles(options))
    return error;
  if (mnemonic.empty())
    return recipe == "none" ? std::string() : recipe.str();

  auto given = options.parameters.find("format");
  bool isHybrid = recipe == "delayed" || recipe == "current";
  StringRef base = given != options.parameters.end() ? StringRef(given->second)
                   : isHybrid                        ? "hybrid"
                                                     : "e4m3";
  std::string roles;
  for (unsigned role : {0u, 1u, 2u}) {
    auto [option, word] = roleOptions(options, role);
    if (StringRef policy = policyOfRole(role, word, base); !policy.empty())
      roles += ", " + option.str() + " = " + printRecipe(mnemonic, options, policy);
  }
  std::string text = printRecipe(mnemonic, options, "");
  return roles.empty() ? text : "#fp8.custom<base = " + text + roles + ">";
}

//===----------------------------------------------------------------------===//
// The values of all options
//===----------------------------------------------------------------------===//

static llvm::json::Value toJSON(mlir::Attribute value) {
  if (auto boolean = llvm::dyn_cast<mlir::BoolAttr>(value))
    return boolean.getValue();
  if (auto integer = llvm::dyn_cast<mlir::IntegerAttr>(value))
    return integer.getInt();
  if (auto real = llvm::dyn_cast<mlir::FloatAttr>(value))
    return real.getValueAsDouble();
  if (auto text = llvm::dyn_cast<mlir::StringAttr>(value))
    return text.getValue();
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

OptionValues fp8::describeOptions(const RecipeOptions &options, RecipeAttrInterface recipe) {
  auto orNull = [](const std::string &text) {
    return text.empty() ? llvm::json::Value(nullptr) : llvm::json::Value(text);
  };
  OptionValues list;
  list.emplace_back("recipe", options.recipe);
  list.emplace_back("recipe_attribute", recipe ? toJSON(recipe) : llvm::json::Value(nullptr));
  if (recipe)
    for (mlir::NamedAttribute parameter : recipe.getParameters())
      list.emplace_back(parameter.getName().str(), toJSON(parameter.getValue()));
  for (unsigned role : {0u, 1u, 2u}) {
    auto [option, word] = roleOptions(options, role);
    list.emplace_back(option.str(), word);
  }
  list.emplace_back("sites", options.sites);
  list.emplace_back("keep", orNull(options.keep));
  list.emplace_back("first", options.first);
  list.emplace_back("last", options.last);
  list.emplace_back("require", orNull(options.require));
  list.emplace_back("calibrate", options.calibrate);
  list.emplace_back("target", options.target);
  return list;
}
