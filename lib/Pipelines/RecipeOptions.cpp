// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns the options of the command line into a recipe attribute, and lists the values of all
// options for reports.

#include "RecipeWords.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace fp8;
using namespace fp8::detail;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// The attributes
//===----------------------------------------------------------------------===//

/// Returns the text of a recipe attribute with the parameters that the user set; `format` and `accumulation`
/// replace theirs unless they are empty. An attribute is returned as it is.
static std::string printRecipe(StringRef recipe, const RecipeOptions &options, StringRef format = "",
                               StringRef accumulation = "") {
  if (isAttribute(recipe))
    return recipe.str();
  llvm::SmallVector<std::string> parameters;
  for (const RecipeParameter &parameter : getRecipeParameters()) {
    if (parameter.parameter.empty() || !hasParameter(recipe, parameter))
      continue;
    std::string value = getGiven(options, parameter.option).str();
    if (parameter.option == "format" && !format.empty())
      value = format.str();
    if (parameter.option == "accumulation" && !accumulation.empty())
      value = accumulation.str();
    if (double number; parameter.values == "X" && !StringRef(value).getAsDouble(number))
      value = llvm::formatv("{0:e10}", number); // an attribute wants a decimal point
    if (!value.empty())
      parameters.push_back((parameter.parameter + " = " + value).str());
  }
  return ("#fp8." + getMnemonic(recipe)).str() +
         (parameters.empty() ? "" : "<" + llvm::join(parameters, ", ") + ">");
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

/// Returns the recipe of a role whose matmuls become FP8; `word` is the value of its option.
static std::string printRole(unsigned role, StringRef word, StringRef base, const RecipeOptions &options) {
  StringRef recipe = isRecipe(word) ? word : base;
  StringRef policy = getGiven(options, "format");
  if (policy.empty())
    policy = recipe == "delayed" || recipe == "current" ? "hybrid" : "e4m3";
  std::string sums = (getRoleOption(options, role).first + "-accumulation").str();
  return printRecipe(recipe, options, policyOfRole(role, word, policy), getGiven(options, sums));
}

/// Returns the text of the attribute of `recipe`, a name or an attribute, with what the options say about
/// roles; without `roleWords` only about their accumulation.
static std::string printWithRoles(StringRef recipe, const RecipeOptions &options, bool roleWords) {
  std::string text = printRecipe(recipe, options), roles;
  for (unsigned role : {0u, 1u, 2u}) {
    auto [option, word] = getRoleOption(options, role);
    if (!roleWords || isKept(word))
      word = "fp8";
    if (std::string own = printRole(role, word, recipe, options); own != text)
      roles += (", " + option + " = " + own).str();
  }
  return roles.empty() ? text : "#fp8.custom<base = " + text + roles + ">";
}

llvm::Expected<std::string> fp8::getRecipeAttribute(const RecipeOptions &options) {
  if (llvm::Error error = checkOptions(options))
    return error;
  StringRef recipe = getChosenRecipe(options);
  return recipe == "none" ? std::string() : printWithRoles(recipe, options, /*roleWords=*/true);
}

llvm::Expected<std::string> fp8::getSiteRecipeText(const RecipeOptions &options, StringRef siteRecipe) {
  if (llvm::Error error = checkOptions(options))
    return error;
  StringRef word = splitSiteRecipe(siteRecipe).second;
  return isKept(word) ? std::string() : printWithRoles(word, options, /*roleWords=*/false);
}

static std::string quote(StringRef text) {
  std::string quoted;
  llvm::raw_string_ostream os(quoted);
  os << '"';
  llvm::printEscapedString(text, os);
  os << '"';
  return quoted;
}

llvm::Expected<std::string> fp8::getSiteRecipesAttribute(const RecipeOptions &options) {
  llvm::SmallVector<std::string> pairs;
  for (StringRef text : options.siteRecipes) {
    llvm::Expected<std::string> recipe = getSiteRecipeText(options, text);
    if (!recipe)
      return recipe.takeError();
    auto [regex, word] = splitSiteRecipe(text);
    pairs.push_back("[" + quote(regex) + ", " + (recipe->empty() ? quote(word) : *recipe) + "]");
  }
  return pairs.empty() ? std::string() : "[" + llvm::join(pairs, ", ") + "]";
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

static llvm::json::Value toJSON(const std::string &text) {
  return text.empty() ? llvm::json::Value(nullptr) : llvm::json::Value(text);
}
static llvm::json::Value toJSON(bool flag) { return flag; }
static llvm::json::Value toJSON(int64_t number) { return number; }
static llvm::json::Value toJSON(const std::vector<std::string> &texts) { return llvm::json::Array(texts); }

OptionValues fp8::describeOptions(const RecipeOptions &options, RecipeAttrInterface recipe) {
  OptionValues list;
  auto add = [&](StringRef name, llvm::json::Value value) {
    list.emplace_back(llvm::join(llvm::split(name, '-'), "_"), std::move(value));
  };
#define FP8_RECIPE_OPTION(Kind, field, name, initial, values, help) add(name, toJSON(options.field));
#include "fp8/Pipelines/RecipeOptions.def"
  add("unused-options", options.allowUnused ? "report" : "error");
  add("recipe-attribute", recipe ? toJSON(recipe) : llvm::json::Value(nullptr));
  if (recipe)
    for (mlir::NamedAttribute parameter : recipe.getParameters())
      add(parameter.getName(), toJSON(parameter.getValue()));
  for (const RecipeParameter &parameter : getRecipeParameters())
    if (parameter.parameter.empty())
      add(parameter.option, toJSON(getGiven(options, parameter.option).str()));
  return list;
}
