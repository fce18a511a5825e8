// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads a module, applies the local rewrites of fp8-mlir in one set of patterns with upstream's greedy
// driver, and prints the result.

#include "fp8/Dialect/FP8/Transforms/Patterns.h"
#include "fp8/InitAll.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/InitAllDialects.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

int main(int, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  fp8::registerAllDialects(registry);
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects(); // of which patterns make operations
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(argv[1], &context);
  if (!module)
    return 1;
  mlir::RewritePatternSet patterns(&context);
  fp8::populateConvertBitcastsPatterns(patterns);
  fp8::populateFoldEmptyReshapesPatterns(patterns);
  fp8::populateFoldTransposesPatterns(patterns);
  fp8::populateFoldUnitReductionsPatterns(patterns);
  fp8::populateReinterpretReshapesPatterns(patterns);
  if (mlir::failed(mlir::applyPatternsGreedily(*module, std::move(patterns))))
    return 1;
  module->print(llvm::outs());
  return 0;
}
