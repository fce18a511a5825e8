// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prints a recipe, parsed by the dialect.

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/MLIRContext.h"

int main() {
  mlir::MLIRContext context;
  context.loadDialect<fp8::FP8Dialect>();
  mlir::Attribute attribute = mlir::parseAttribute("#fp8.delayed_scaling<margin = 1>", &context);
  auto recipe = llvm::dyn_cast_or_null<fp8::RecipeAttrInterface>(attribute);
  if (!recipe)
    return 1;
  llvm::outs() << recipe.getRecipeName() << "\n";
  return 0;
}
