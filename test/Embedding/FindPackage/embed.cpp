// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads a module, runs our pipelines through the public headers, and prints the decision about
// every matrix product.

#include "fp8/InitAll.h"
#include "fp8/Pipelines/Pipelines.h"
#include "fp8/Report/Report.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  fp8::registerAllDialects(registry);
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(argc > 1 ? argv[1] : "-", &context);
  if (!module)
    return 1;

  fp8::RecipeOptions options;
  options.recipe = "current";
  llvm::Expected<std::string> recipe = fp8::getRecipeAttribute(options);
  if (!recipe) {
    llvm::errs() << llvm::toString(recipe.takeError()) << "\n";
    return 1;
  }
  mlir::PassManager manager(&context);
  fp8::buildIngestPipeline(manager);
  fp8::buildSelectionPipeline(manager, *recipe, options);
  if (mlir::failed(manager.run(*module)))
    return 1;

  auto attribute = llvm::cast<fp8::RecipeAttrInterface>(mlir::parseAttribute(*recipe, &context));
  for (const fp8::SiteRecord &record : fp8::collectSites(*module))
    llvm::outs() << record.site << " " << stringifyRole(record.role) << " "
                 << (record.isFP8 ? record.recipe : record.reason) << "\n";
  return 0;
}
