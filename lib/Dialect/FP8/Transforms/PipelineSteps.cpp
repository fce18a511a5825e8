// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fp8/Dialect/FP8/Transforms/PipelineSteps.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void fp8::addStageVerifier(OpPassManager &manager, StringRef stage) {
  VerifyStageOptions options;
  options.stage = stage.str();
  manager.addPass(createVerifyStage(options));
}

void fp8::addCanonicalizer(OpPassManager &manager) {
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  manager.addPass(createCanonicalizerPass(config));
}
