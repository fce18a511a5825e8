// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The words in options about recipes. Private to the library.

#ifndef FP8_LIB_PIPELINES_RECIPEWORDS_H
#define FP8_LIB_PIPELINES_RECIPEWORDS_H

#include "fp8/Pipelines/Pipelines.h"

namespace fp8::detail {

/// Returns the value that the user gave to a recipe parameter; empty if none.
llvm::StringRef getGiven(const RecipeOptions &options, llvm::StringRef option);

/// Whether a word is e4m3 or e5m2.
bool isFormat(llvm::StringRef word);
/// Whether a role or site with this word stays in high precision.
bool isKept(llvm::StringRef word);
bool isAttribute(llvm::StringRef word);
/// Whether a word is the name of a recipe, or an attribute.
bool isRecipe(llvm::StringRef word);

/// Returns the name of the attribute of a recipe; empty for a word that names none.
llvm::StringRef getMnemonic(llvm::StringRef recipe);
bool hasParameter(llvm::StringRef recipe, const RecipeParameter &parameter);

/// Returns the name and the value of the option of a role: 0 for fprop, 1 for dgrad, 2 for wgrad.
std::pair<llvm::StringRef, llvm::StringRef> getRoleOption(const RecipeOptions &options, unsigned role);

/// Splits REGEX=RECIPE. A regex may contain =, and so may an attribute, which starts with #.
std::pair<llvm::StringRef, llvm::StringRef> splitSiteRecipe(llvm::StringRef text);

/// Returns the first error in the options, a sentence that says what to change.
llvm::Error checkOptions(const RecipeOptions &options);

} // namespace fp8::detail

#endif // FP8_LIB_PIPELINES_RECIPEWORDS_H
