// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One function per stage, in the order in which they run. fp8-compile, fp8-opt and compilers
// that embed the project all build their pipelines with these functions.

#ifndef FP8_PIPELINES_PIPELINES_H
#define FP8_PIPELINES_PIPELINES_H

#include "fp8/Report/Report.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"
#include <map>
#include <optional>
#include <string>

namespace fp8 {

/// An option of fp8-compile that is a parameter of recipes.
struct RecipeParameter {
  llvm::StringLiteral option;    ///< "amax-history-len"
  llvm::StringLiteral parameter; ///< its name in the attribute, "amax_history_len"; empty for one role's
  llvm::StringLiteral values;    ///< "max|most_recent", N for a whole number or X for a real one
  llvm::StringLiteral recipes;   ///< the values of --recipe that have it, separated by spaces
  llvm::StringLiteral help;
};

/// Returns all recipe parameters. The tools and the pipelines declare their options from this list.
llvm::ArrayRef<RecipeParameter> getRecipeParameters();

/// The types of the values of options, by the words of RecipeOptions.def.
namespace option_kinds {
using Text = std::string;
using Regex = std::string;
using Layers = int64_t;
using Flag = bool;
using Switch = bool;
using List = std::vector<std::string>;
} // namespace option_kinds

/// The options of fp8-compile, under the same names, that decide what becomes FP8 and how. RecipeOptions.def
/// has the fields with their meaning.
struct RecipeOptions {
#define FP8_RECIPE_OPTION(Kind, field, name, initial, values, help) option_kinds::Kind field = initial;
#include "fp8/Pipelines/RecipeOptions.def"
  /// The recipe that `auto` stands for on the target; set by chooseRecipe.
  std::string chosenRecipe;
  std::vector<std::string> weighedRecipes;
  /// The recipe parameters that the user set, by option: {"margin", "1"}.
  std::map<std::string, std::string> parameters;
  /// Allow a recipe that the target has no kernels for, to look at the IR.
  bool allowUnsupported = false;
  /// Options that no matmul fits are part of the report, and are no errors.
  bool allowUnused = false;
};

/// Returns the recipe as the text of an attribute; empty for none. The error names the option
/// that is wrong or contradicts another, and says what to change. The recipe `auto` must be chosen.
llvm::Expected<std::string> getRecipeAttribute(const RecipeOptions &options);

/// Returns `options.siteRecipes` as the text of an array attribute of pairs, the option `site-recipes` of
/// fp8-select-sites; empty for none. Errors as above.
llvm::Expected<std::string> getSiteRecipesAttribute(const RecipeOptions &options);

/// Returns the recipe in `siteRecipe`, one of options.siteRecipes, as the text of an attribute; empty if its
/// sites stay in high precision. Errors as above.
llvm::Expected<std::string> getSiteRecipeText(const RecipeOptions &options, llvm::StringRef siteRecipe);

/// Returns `options.recipe`, with `auto` replaced by the recipe that chooseRecipe has set.
llvm::StringRef getChosenRecipe(const RecipeOptions &options);
/// Returns whether a recipe that the options name combines amaxes over ranks (an attribute may).
bool combinesAmaxes(const RecipeOptions &options);

/// A recipe that `auto` can be, and what it costs.
struct WeighedRecipe {
  std::string recipe;            ///< "mxfp8"
  std::optional<double> seconds; ///< a step of one layer; unset where it cannot be used
  std::string reason;            ///< why it cannot be used
  double sharing = 0;            ///< elements of an input that share a scale
  bool isStateful = false;
  bool isChosen = false;

  /// Returns one line for people.
  std::string describe() const;
};

/// Weighs every recipe with its default parameters for `target`: the time of the three matmuls of a
/// layer at the target's rate, and of the casts of their operands at the rate of its memory. Chosen is the
/// one with the fewest elements per scale among those that take at most 15% longer than the fastest, and of
/// two alike the one without state.
std::vector<WeighedRecipe> weighRecipes(TargetAttrInterface target);

/// Decides what the recipe `auto` is for `target`; does nothing for other recipes. The error says why no
/// recipe can be used.
llvm::Error chooseRecipe(TargetAttrInterface target, RecipeOptions &options);

/// Returns every option with its value, defaults included. `recipe` is the parsed result of
/// getRecipeAttribute; null for none.
OptionValues describeOptions(const RecipeOptions &options, RecipeAttrInterface recipe);

/// The options of stage 1.
struct IngestOptions {
  /// FORWARD:BACKWARD[:K], the two functions of one step: results K… (default 1) of the first are
  /// arguments 0… of the second. Empty if there is no pair, or if the functions have the attributes
  /// already.
  std::string pair;
  /// off, bf16, f16 or tf32: the precision in which a program in f32 runs.
  std::string mixedPrecision = "off";
  /// The initial loss scale of dynamic loss scaling; unset for none.
  std::optional<double> lossScaling;
  /// The result that is the loss; unset for the only scalar of floating point.
  std::optional<int64_t> loss;
  /// Further results whose mean over the ranks is wanted, where arguments are marked `fp8.batch`.
  llvm::SmallVector<int64_t> average;
};

/// Stage 1: inlines functions and turns every contraction into an fp8.matmul with site and role.
void buildIngestPipeline(mlir::OpPassManager &manager, const IngestOptions &options = {});

/// Stage 2, in two halves: the report reads the decisions from the IR in between.
/// `recipe` is the text of a recipe attribute, or empty for none. Options of sites that are wrong are an
/// error when the pipeline runs.
void buildSelectionPipeline(mlir::OpPassManager &manager, llvm::StringRef recipe,
                            const RecipeOptions &options);
void buildApplicationPipeline(mlir::OpPassManager &manager, llvm::StringRef recipe,
                              const RecipeOptions &options);

/// Stage 3: leaves one quantize per tensor, and fuses code into casts and matmuls.
void buildFusionPipeline(mlir::OpPassManager &manager);

/// The options of stage 4.
struct BatchingOptions {
  /// The size up to which reductions of small tensors are joined; 0 joins none.
  int64_t bucketBytes = 1 << 20;
};

/// Stage 4: leaves one history update per update point.
void buildBatchingPipeline(mlir::OpPassManager &manager, const BatchingOptions &options = {});

/// Stage 5: bufferizes; state and carried arguments are updated in place.
void buildBufferizePipeline(mlir::OpPassManager &manager);

/// Registers all of the above as fp8-ingest-pipeline, fp8-recipe-pipeline, fp8-fusion-pipeline,
/// fp8-batching-pipeline and fp8-bufferize-pipeline.
void registerPipelines();

} // namespace fp8

#endif // FP8_PIPELINES_PIPELINES_H
