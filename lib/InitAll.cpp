// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers the dialects, passes and pipelines of this project.

#include "fp8/InitAll.h"
#include "fp8/Conversion/Passes.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/Transforms/BufferizableOpInterfaceImpl.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/FP8/Transforms/TilingInterfaceImpl.h"
#include "fp8/Pipelines/Pipelines.h"
#include "fp8/Target/CPU/CPUTarget.h"
#include "fp8/Target/CPU/Passes.h"
#include "fp8/Target/Host/Passes.h"
#include "fp8/Target/PTX/PTXTarget.h"
#include "fp8/Target/PTX/Passes.h"

// In no header: each of the many files that include a header of passes would instantiate what registers all
// of them.
namespace fp8 {
namespace {
#define GEN_PASS_REGISTRATION
#include "fp8/Conversion/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "fp8/Target/CPU/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "fp8/Target/Host/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "fp8/Target/PTX/Passes.h.inc"
} // namespace
} // namespace fp8

void fp8::registerAllDialects(mlir::DialectRegistry &registry) {
  registry.insert<FP8Dialect>();
  registerBufferizableOpInterfaceExternalModels(registry);
  registerTilingInterfaceExternalModels(registry);
  registerCPUBackend(registry);
  registerPTXBackend(registry);
}

void fp8::registerAllPasses() {
  registerFP8TransformsPasses();
  registerFP8ConversionPasses();
  registerFP8TargetHostPasses();
  registerFP8TargetCPUPasses();
  registerFP8TargetPTXPasses();
  registerPipelines();
  registerCPUPipelines();
  registerGPUPipelines();
}
