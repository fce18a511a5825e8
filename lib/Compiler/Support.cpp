// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of --print-support.

#include "fp8/Compiler/Support.h"
#include "fp8/Dialect/FP8/IR/GroupedMatmulSupport.h"
#include "fp8/Dialect/FP8/IR/TargetNames.h"
#include "fp8/Pipelines/Pipelines.h"
#include "mlir/AsmParser/AsmParser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace fp8;

static RecipeAttrInterface parseRecipe(StringRef name, StringRef format, MLIRContext &context) {
  RecipeOptions options;
  options.recipe = name.str();
  options.parameters["format"] = format.str();
  std::string text = llvm::cantFail(getRecipeAttribute(options)); // every recipe has both formats
  return cast<RecipeAttrInterface>(parseAttribute(text, &context));
}

std::vector<SupportRecord> fp8::listSupport(MLIRContext &context) {
  std::vector<SupportRecord> records;
  for (TargetAttrInterface target : listTargets(context))
    for (StringRef recipe : {"delayed", "current", "row", "block", "mxfp8"})
      for (StringRef format : {"hybrid", "e4m3"})
        for (bool isGrouped : {false, true})
          for (Role role : {Role::fprop, Role::dgrad, Role::wgrad}) {
            RecipeAttrInterface own = parseRecipe(recipe, format, context).getRecipeFor(role);
            records.push_back(
                {target.getTargetName().str(), recipe.str(), format.str(), isGrouped, role,
                 isGrouped ? describeGroupedMatmul(target, own, role) : target.describeMatmul(own, role)});
          }
  return records;
}

std::string fp8::printSupportJSON(ArrayRef<SupportRecord> records) {
  auto orNull = [](const std::string &text) {
    return text.empty() ? llvm::json::Value(nullptr) : llvm::json::Value(text);
  };
  llvm::json::Array list;
  for (const SupportRecord &record : records)
    list.push_back(llvm::json::Object{{"target", record.target},
                                      {"recipe", record.recipe},
                                      {"format", record.format},
                                      {"product", record.isGrouped ? "grouped" : "plain"},
                                      {"role", stringifyRole(record.role)},
                                      {"code", orNull(record.support.code)},
                                      {"reason", orNull(record.support.reason)}});
  return llvm::formatv("{0:2}", llvm::json::Value(std::move(list))).str() + "\n";
}

/// Returns what the table says about one role.
static std::string describe(const MatmulSupport &support) {
  if (!support.reason.empty())
    return "no: " + support.reason;
  return support.code.empty() ? "yes" : support.code;
}

std::string fp8::printSupportText(ArrayRef<SupportRecord> records) {
  std::string text;
  llvm::raw_string_ostream os(text);
  const SupportRecord *above = nullptr;
  for (const SupportRecord &record : records) {
    if (!above || above->target != record.target)
      os << (above ? "\n" : "") << record.target << "\n";
    bool isNew = !above || (record.role == Role::fprop && !record.isGrouped);
    bool isRefused = !record.support.reason.empty();
    if (isNew || !isRefused || record.support.reason != above->support.reason)
      os << "  " << llvm::left_justify(isNew ? record.recipe : "", 8)
         << llvm::left_justify(isNew ? record.format : "", 8)
         << (isRefused ? ""
                       : ((record.isGrouped ? "grouped " : "") + stringifyRole(record.role) + "  ").str())
         << describe(record.support) << "\n";
    above = &record;
  }
  return text;
}
