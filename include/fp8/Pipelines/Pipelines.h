// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One function per stage, in the order a program meets them. fp8-compile, fp8-opt and
// compilers that embed the project all build the same pipelines from here.

#ifndef FP8_PIPELINES_PIPELINES_H
#define FP8_PIPELINES_PIPELINES_H

#include "fp8/Pipelines/Report.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"
#include <map>
#include <string>

namespace fp8 {

/// An option of fp8-compile that is a parameter of recipes.
struct RecipeParameter {
  llvm::StringLiteral option;    ///< "amax-history-len"
  llvm::StringLiteral parameter; ///< the same in the attribute: "amax_history_len"
  llvm::StringLiteral values;    ///< "max|most_recent", N for a whole number or X for a real one
  llvm::StringLiteral recipes;   ///< the words of --recipe that have it, separated by spaces
  llvm::StringLiteral help;
};

/// All of them; the tools and the pipelines declare their options from this list.
llvm::ArrayRef<RecipeParameter> getRecipeParameters();

/// What becomes FP8 and how: the options of fp8-compile, under the same names.
struct RecipeOptions {
  /// delayed, current, block, row, mxfp8, auto, none, or a recipe attribute.
  std::string recipe = "delayed";
  /// The name of the target, or its attribute: what auto chooses for.
  std::string target = "cpu";
  /// Parameters of the recipe that were given, by option: {"margin", "1"}.
  std::map<std::string, std::string> parameters;
  /// fp8, e4m3 or e5m2 (the format of the role's gradient operand; of fprop's both), or the
  /// type in which the role's products stay: bf16, f16, f32, f64.
  std::string fprop = "fp8", dgrad = "fp8", wgrad = "fp8";
  /// linear, all, or a regex searched in site names.
  std::string sites = "linear";
  /// Regex of sites that stay as they are; empty for none.
  std::string keep;
  /// Layers at either end whose sites stay as they are.
  int64_t first = 0, last = 0;
  /// all, or a regex of sites that must become FP8; empty for none.
  std::string require;
  /// Functions without gradients update the state too.
  bool calibrate = false;
  /// A recipe that the target has no kernels for is no error: for looking at the IR.
  bool allowUnsupported = false;
};

/// The recipe as the text of an attribute; empty for none. An error names the option that
/// is wrong or contradicts another, and what to change.
llvm::Expected<std::string> getRecipeAttribute(const RecipeOptions &options);

/// The word or attribute that was asked for, with what auto became in its place.
llvm::StringRef getChosenRecipe(const RecipeOptions &options);

/// Every option with the value in force, defaults included, in the order of the help. `recipe`
/// is what getRecipeAttribute gave, parsed; null for none.
OptionValues describeOptions(const RecipeOptions &options, RecipeAttrInterface recipe);

/// Stage 1: functions inlined, every contraction an fp8.matmul with site and role. `pair`,
/// FORWARD:BACKWARD[:K], names two functions of one step: results K… (default 1) of the
/// first are arguments 0… of the second; empty where there are none, or they are marked.
void buildIngestPipeline(mlir::OpPassManager &manager, llvm::StringRef pair = "");

/// Stage 2 has two halves, between which the decisions can be read off the IR.
/// `recipe` is a recipe attribute, or empty for none.
void buildSelectionPipeline(mlir::OpPassManager &manager, llvm::StringRef recipe,
                            const RecipeOptions &options);
void buildApplicationPipeline(mlir::OpPassManager &manager, llvm::StringRef recipe,
                              const RecipeOptions &options);

/// Stage 3: one quantize per tensor.
void buildFusionPipeline(mlir::OpPassManager &manager);

/// Stage 4: one history update per update point.
void buildBatchingPipeline(mlir::OpPassManager &manager);

/// Stage 5: memrefs, state and carried arguments updated in place.
void buildBufferizePipeline(mlir::OpPassManager &manager);

/// Registers all of the above as fp8-ingest-pipeline, fp8-recipe-pipeline, fp8-fusion-pipeline,
/// fp8-batching-pipeline and fp8-bufferize-pipeline.
void registerPipelines();

} // namespace fp8

#endif // FP8_PIPELINES_PIPELINES_H
