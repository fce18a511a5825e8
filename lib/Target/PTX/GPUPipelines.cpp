// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pipelines of stages 6 and 7 for GPUs. Stage 6 makes kernels of operations that have one, lowers the
// rest to linalg and loops as on the CPU, and maps these to threads.

#include "fp8/Conversion/Passes.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Target/Host/Passes.h"
#include "fp8/Target/PTX/PTXTarget.h"
#include "fp8/Target/PTX/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Affine/Transforms/Passes.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace fp8;

static void verifyStage(OpPassManager &manager, StringRef stage) {
  VerifyStageOptions options;
  options.stage = stage.str();
  manager.addPass(createVerifyStage(options));
}

/// Adds upstream's canonicalizer without its simplification of regions, which is for blocks and branches.
static void addCanonicalizer(OpPassManager &manager) {
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  manager.addPass(createCanonicalizerPass(config));
}

void fp8::buildGPUKernelsPipeline(OpPassManager &manager, const GPUKernelsOptions &options) {
  verifyStage(manager, "bufferize"); // upstream's passes crash on loops over tensors
  manager.addNestedPass<func::FuncOp>(createBindElements());
  manager.addNestedPass<func::FuncOp>(createParallelizeRows());
  manager.addPass(createForallToForLoopPass());
  manager.addPass(createConvertFP8ToGPU());
  manager.addPass(createExpandScaling());
  manager.addPass(createConvertFP8ToLinalg());
  manager.addPass(createExpandCasts());
  manager.addPass(createSymbolDCEPass()); // functions of recipes are inlined now
  verifyStage(manager, "kernels");
  manager.addNestedPass<func::FuncOp>(createOutlineScalars());
  manager.addPass(createOutlineKernels());
  manager.addPass(createCountKernels());
  OpPassManager &functions = manager.nest<func::FuncOp>();
  functions.addPass(createLinalgToLoops());
  functions.addPass(affine::createAffineExpandIndexOpsPass());
  functions.addPass(createLowerAffinePass());
  addCanonicalizer(functions);
  functions.addPass(createCSEPass());
  manager.addPass(createMapThreads());
  manager.addPass(createBatchLaunches());
  verifyStage(manager, "gpu-kernels");
}

void fp8::buildGPUCodePipeline(OpPassManager &manager, const GPUCodeOptions &options) {}

void fp8::registerGPUPipelines() {
  PassPipelineRegistration<GPUKernelsOptions>("fp8-gpu-kernels-pipeline",
                                              "Stage 6 for GPUs: fp8 and linalg to kernels and launches",
                                              buildGPUKernelsPipeline);
  PassPipelineRegistration<GPUCodeOptions>("fp8-gpu-code-pipeline",
                                           "Stage 7 for GPUs: PTX, and host code in the LLVM dialect",
                                           buildGPUCodePipeline);
}
