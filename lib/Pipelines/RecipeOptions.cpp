// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the words of a command line to a recipe attribute.

#include "fp8/Pipelines/Pipelines.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace fp8;

/// An option that the chosen recipe does not have.
static llvm::Error contradiction(llvm::StringRef option, llvm::StringRef recipe, llvm::StringRef owner) {
  return llvm::createStringError("--" + option.str() + " belongs to " + owner.str() +
                                 ", not to --recipe=" + recipe.str() + "; drop one of the two");
}

static llvm::Error checkOptions(const RecipeOptions &options) {
  llvm::StringRef recipe = options.recipe;
  bool isAttribute = recipe.starts_with("#");
  llvm::StringRef owner =
      isAttribute ? "the words delayed, current, … (an attribute says it all itself)" : "--recipe=delayed";
  bool isDelayed = recipe == "delayed";
  if (options.margin && !isDelayed)
    return contradiction("margin", recipe, owner);
  if (options.amaxHistoryLen && !isDelayed)
    return contradiction("amax-history-len", recipe, owner);
  if (options.amaxComputeAlgo && !isDelayed)
    return contradiction("amax-compute-algo", recipe, owner);
  if (options.reduceAmax && !isDelayed && recipe != "current")
    return contradiction("reduce-amax", recipe, isAttribute ? owner : "--recipe=delayed and current");
  if (!options.format.empty() && (isAttribute || recipe == "none"))
    return contradiction("format", recipe, isAttribute ? owner : "recipes that make FP8");
  if (!options.format.empty() && options.format != "hybrid" && options.format != "e4m3")
    return llvm::createStringError("--format=" + options.format + " is neither hybrid nor e4m3");
  if (options.amaxComputeAlgo && *options.amaxComputeAlgo != "max" &&
      *options.amaxComputeAlgo != "most_recent")
    return llvm::createStringError("--amax-compute-algo=" + *options.amaxComputeAlgo +
                                   " is neither max nor most_recent");
  if (options.amaxHistoryLen && *options.amaxHistoryLen < 1)
    return llvm::createStringError("--amax-history-len must be at least 1");
  if (options.margin && (*options.margin < -64 || *options.margin > 64))
    return llvm::createStringError("--margin counts binades and must be between -64 and 64");
  return llvm::Error::success();
}

llvm::Expected<std::string> fp8::getRecipeAttribute(const RecipeOptions &options) {
  if (llvm::Error error = checkOptions(options))
    return error;
  llvm::StringRef recipe = options.recipe;
  if (recipe == "none")
    return std::string();
  if (recipe.starts_with("#"))
    return recipe.str();
  if (recipe == "auto")
    return llvm::createStringError("--recipe=auto is not available yet; choose delayed or current");
  llvm::StringRef mnemonic = llvm::StringSwitch<llvm::StringRef>(recipe)
                                 .Case("delayed", "delayed_scaling")
                                 .Case("current", "current_scaling")
                                 .Case("row", "row_scaling")
                                 .Case("block", "block_scaling")
                                 .Case("mxfp8", "mx_scaling")
                                 .Default("");
  if (mnemonic.empty())
    return llvm::createStringError(
        "--recipe=" + recipe.str() +
        " is none of delayed, current, block, row, mxfp8, auto, none and no attribute");

  std::string parameters;
  auto add = [&](llvm::StringRef name, const std::string &value) {
    parameters += (parameters.empty() ? "" : ", ") + name.str() + " = " + value;
  };
  if (!options.format.empty())
    add("format", options.format);
  if (options.margin)
    add("margin", std::to_string(*options.margin));
  if (options.amaxHistoryLen)
    add("amax_history_len", std::to_string(*options.amaxHistoryLen));
  if (options.amaxComputeAlgo)
    add("amax_compute_algo", *options.amaxComputeAlgo);
  if (options.reduceAmax)
    add("reduce_amax", *options.reduceAmax ? "true" : "false");
  return "#fp8." + mnemonic.str() + (parameters.empty() ? "" : "<" + parameters + ">");
}
