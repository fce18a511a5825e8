// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Regular expressions for names of sites, and the recipes that options give to the sites they match.
// Private to the library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SITEPATTERNS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SITEPATTERNS_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Regex.h"
#include <optional>
#include <vector>

namespace fp8 {

/// A regex option; unset where the option is empty.
class SitePattern {
public:
  /// Reports an invalid regex at `op`.
  mlir::LogicalResult compile(mlir::Operation *op, llvm::StringRef option, llvm::StringRef pattern);
  bool matches(llvm::StringRef site) const { return regex && regex->match(site); }
  /// Returns whether a matmul in `module` is of a site that matches.
  bool isUsed(mlir::Operation *module) const;

private:
  std::optional<llvm::Regex> regex;
};

/// The parts of `--site-recipe=REGEX=VALUE`.
struct SiteRecipe {
  SitePattern pattern;
  std::string option;         ///< "--site-recipe=REGEX="
  RecipeAttrInterface recipe; ///< null where matmuls stay in high precision
  std::string word;           ///< the name of the recipe, none, or the type in which matmuls stay
};

/// The recipes of sites, in the order of the options.
class SiteRecipes {
public:
  /// Reads the option `site-recipes` of fp8-select-sites; an error is reported at `module`. A pair that is
  /// for no site is an error unless `allowUnused`.
  mlir::LogicalResult parse(mlir::ModuleOp module, llvm::StringRef text, bool allowUnused);
  /// Returns the first that matches, or null.
  const SiteRecipe *find(llvm::StringRef site) const;
  auto begin() const { return recipes.begin(); }
  auto end() const { return recipes.end(); }

private:
  mlir::LogicalResult checkUsed(mlir::ModuleOp module, const SiteRecipe &recipe, int64_t place,
                                bool allowUnused) const;

  std::vector<SiteRecipe> recipes;
};

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SITEPATTERNS_H
