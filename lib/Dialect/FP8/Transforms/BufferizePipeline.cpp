// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stage 5 as a list of passes: what is computed together, where results live, then
// upstream's one-shot bufferization under those decisions.

#include "fp8/Dialect/FP8/Transforms/Bufferize.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

/// Every buffer starts at a cache line, as the workspace and the vector code want.
static constexpr uint64_t kBufferAlignment = 64;

static void addOneShotBufferize(OpPassManager &manager) {
  manager.addPass(bufferization::createEmptyTensorEliminationPass());
  bufferization::OneShotBufferizePassOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  options.bufferAlignment = kBufferAlignment;
  manager.addPass(bufferization::createOneShotBufferizePass(options));
}

static void addCleanUp(OpPassManager &manager) {
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}

void fp8::buildBufferizePipeline(OpPassManager &manager) {
  addCleanUp(manager);
  manager.addNestedPass<func::FuncOp>(createConvertElementwiseToLinalgPass());
  manager.addNestedPass<func::FuncOp>(createFuseElementwise());
  addCleanUp(manager);
  manager.addNestedPass<func::FuncOp>(createBindResults());
  addOneShotBufferize(manager);
  manager.addNestedPass<func::FuncOp>(createDropBoundResults());
  addCleanUp(manager);
}
