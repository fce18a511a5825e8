// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Regular expressions for names of sites, and the recipes of sites that they match.

#include "SitePatterns.h"
#include "fp8/Dialect/FP8/Transforms/UnusedOptions.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace fp8;

LogicalResult SitePattern::compile(Operation *op, StringRef option, StringRef pattern) {
  if (pattern.empty())
    return success();
  regex.emplace(pattern);
  std::string reason;
  if (!regex->isValid(reason))
    return op->emitError() << "--" << option << "=" << pattern << " is not a regular expression: " << reason;
  return success();
}

/// Returns whether a matmul in `module` is of a site that fits.
static bool hasSite(Operation *module, function_ref<bool(StringRef)> fits) {
  return module
      ->walk([&](Operation *op) {
        std::optional<StringRef> site;
        if (auto matmul = dyn_cast<MatmulOp>(op))
          site = matmul.getSite();
        else if (auto scaled = dyn_cast<ScaledMatmulOp>(op))
          site = scaled.getSite();
        return site && fits(*site) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool SitePattern::isUsed(Operation *module) const {
  return hasSite(module, [&](StringRef site) { return matches(site); });
}

/// Reads one pair of the option `site-recipes`, [regex, recipe or word].
static FailureOr<SiteRecipe> parsePair(Operation *module, Attribute attribute) {
  auto pair = dyn_cast<ArrayAttr>(attribute);
  auto regex = pair && pair.size() == 2 ? dyn_cast<StringAttr>(pair[0]) : StringAttr();
  auto recipe = regex ? dyn_cast<RecipeAttrInterface>(pair[1]) : RecipeAttrInterface();
  auto word = regex ? dyn_cast<StringAttr>(pair[1]) : StringAttr();
  if (!recipe && !word)
    return module->emitError() << "site-recipes has " << attribute
                               << ", which is no pair of a regex and a recipe or word";
  std::string name = recipe ? recipe.getRecipeName().str() : word.str();
  SiteRecipe result{{}, ("--site-recipe=" + regex.getValue() + "=").str(), recipe, name};
  if (regex.empty())
    return module->emitError() << result.option << name << " needs a regex before the recipe";
  if (failed(result.pattern.compile(module, "site-recipe", regex)))
    return failure();
  return result;
}

/// Checks that a site has the recipe.
LogicalResult SiteRecipes::checkUsed(ModuleOp module, const SiteRecipe &recipe, int64_t place,
                                     bool allowUnused) const {
  if (hasSite(module, [&](StringRef site) { return recipe.pattern.matches(site) && !find(site); }))
    return success();
  if (!recipe.pattern.isUsed(module))
    return checkUnused(
        module, allowUnused,
        {"site-recipe", place, "no site matches " + StringRef(recipe.option).drop_back().str()},
        "; the report lists the sites");
  return checkUnused(
      module, allowUnused,
      {"site-recipe", place,
       recipe.option + recipe.word + " is for no site: earlier --site-recipe options match the same ones"},
      ", and the first holds; drop it, or give it first");
}

LogicalResult SiteRecipes::parse(ModuleOp module, StringRef text, bool allowUnused) {
  if (text.empty())
    return success();
  auto list = dyn_cast_or_null<ArrayAttr>(parseAttribute(text, module->getContext()));
  if (!list)
    return module->emitError() << "site-recipes=" << text << " is not an array attribute of pairs";
  for (auto [place, attribute] : llvm::enumerate(list)) {
    FailureOr<SiteRecipe> recipe = parsePair(module, attribute);
    if (failed(recipe) || failed(checkUsed(module, *recipe, place, allowUnused)))
      return failure();
    recipes.push_back(std::move(*recipe));
  }
  return success();
}

const SiteRecipe *SiteRecipes::find(StringRef site) const {
  auto found = llvm::find_if(recipes, [&](const SiteRecipe &recipe) { return recipe.pattern.matches(site); });
  return found == recipes.end() ? nullptr : &*found;
}
