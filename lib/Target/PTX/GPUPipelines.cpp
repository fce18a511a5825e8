// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pipelines of stages 6 and 7 for GPUs.

#include "fp8/Target/PTX/PTXTarget.h"

#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace fp8;

void fp8::buildGPUKernelsPipeline(OpPassManager &manager, const GPUKernelsOptions &options) {}

void fp8::buildGPUCodePipeline(OpPassManager &manager, const GPUCodeOptions &options) {}

void fp8::registerGPUPipelines() {
  PassPipelineRegistration<GPUKernelsOptions>("fp8-gpu-kernels-pipeline",
                                              "Stage 6 for GPUs: fp8 and linalg to kernels and launches",
                                              buildGPUKernelsPipeline);
  PassPipelineRegistration<GPUCodeOptions>("fp8-gpu-code-pipeline",
                                           "Stage 7 for GPUs: PTX, and host code in the LLVM dialect",
                                           buildGPUCodePipeline);
}
