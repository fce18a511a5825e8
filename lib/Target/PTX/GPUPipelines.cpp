// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pipelines of stages 6 and 7 for GPUs. Stage 6 makes kernels of operations that have one, lowers the
// rest to linalg and loops as on the CPU, and maps these to threads.

#include "fp8/Conversion/Passes.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/FP8/Transforms/PipelineSteps.h"
#include "fp8/Target/Host/Passes.h"
#include "fp8/Target/ModulePipeline.h"
#include "fp8/Target/PTX/PTXTarget.h"
#include "fp8/Target/PTX/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Affine/Transforms/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace fp8;

void fp8::buildGPUKernelsPipeline(OpPassManager &manager, const GPUKernelsOptions &options) {
  AttachChipOptions attach;
  attach.chip = options.chip;
  manager.addPass(createAttachChip(attach));
  addStageVerifier(manager, "bufferize"); // upstream's passes crash on loops over tensors
  manager.addNestedPass<func::FuncOp>(createOverlapCollectives());
  manager.addNestedPass<func::FuncOp>(createBindElements());
  manager.addNestedPass<func::FuncOp>(createParallelizeRows());
  manager.addPass(createForallToForLoopPass());
  manager.addNestedPass<func::FuncOp>(createPadRows());
  manager.addPass(createSplitMatmuls());
  manager.addNestedPass<func::FuncOp>(createChooseConfigs());
  manager.addPass(createConvertFP8ToGPU());
  manager.addPass(createExpandScaling());
  manager.addPass(createConvertFP8ToLinalg());
  manager.addPass(createExpandCasts());
  manager.addPass(createSymbolDCEPass()); // functions of recipes are inlined now
  addStageVerifier(manager, "kernels");
  manager.addNestedPass<func::FuncOp>(createSplitReductions());
  manager.addNestedPass<func::FuncOp>(createOutlineScalars());
  manager.addPass(createOutlineKernels());
  manager.addPass(createMarkCosts());
  OpPassManager &functions = manager.nest<func::FuncOp>();
  functions.addPass(createLinalgToLoops());
  functions.addPass(affine::createAffineExpandIndexOpsPass());
  functions.addPass(createLowerAffinePass());
  addCanonicalizer(functions);
  functions.addPass(createCSEPass());
  functions.addPass(createMapReductions());
  manager.addPass(createVectorizeThreads());
  manager.addPass(createMapThreads());
  if (options.batchLaunches)
    manager.addPass(createBatchLaunches());
  manager.addPass(createCountKernels());
  addStageVerifier(manager, "gpu-kernels");
}

/// Computes math functions of bf16 and f16, and their arithmetic, in f32 with a rounding after every
/// operation. The conversion to bf16 is an instruction, which keeps denormals as the CPU's code does.
static void addMathPasses(OpPassManager &functions) {
  functions.addPass(affine::createAffineExpandIndexOpsPass());
  functions.addPass(createLowerAffinePass());
  functions.addPass(math::createMathExtendToSupportedTypes(math::MathExtendToSupportedTypesOptions()));
  functions.addPass(createExpandMath());
  arith::ArithEmulateUnsupportedFloatsOptions emulate;
  emulate.sourceTypeStrs = {"bf16", "f16"};
  emulate.targetTypeStr = "f32";
  functions.addPass(arith::createArithEmulateUnsupportedFloats(emulate));
  functions.addPass(createKeepRoundings());
  functions.addPass(arith::createArithExpandOpsPass());
}

void fp8::buildPTXPipeline(OpPassManager &manager, const GPUCodeOptions &options) {
  OpPassManager &kernels = manager.nest<gpu::GPUModuleOp>();
  OpPassManager &functions = kernels.nest<func::FuncOp>();
  addMathPasses(functions);
  addCanonicalizer(functions);
  functions.addPass(createCSEPass());
  kernels.addPass(createCheckKernels());
  OpPassManager &lowered = kernels.nest<func::FuncOp>();
  lowered.addPass(memref::createExpandStridedMetadataPass());
  lowered.addPass(createLowerAffinePass());
  lowered.addPass(createConvertVectorToLLVMPass());
  lowered.addPass(createSCFToControlFlowPass());
  lowered.addPass(createConvertMathToLLVMPass());
  lowered.addPass(createArithToLLVMConversionPass()); // most operations: here in a thread for each kernel
  kernels.addPass(createConvertToLLVMPass());
  kernels.addPass(createReconcileUnrealizedCastsPass());
  kernels.addNestedPass<LLVM::LLVMFuncOp>(createGuardDivisions());
  kernels.addPass(createFinishKernels());
  SerializeKernelsOptions text;
  text.cache = options.cache;
  manager.addPass(createSerializeKernels(text));
  AssembleKernelsOptions assembler;
  assembler.ptxas = options.ptxas;
  assembler.cache = options.cache;
  manager.addNestedPass<gpu::GPUModuleOp>(createAssembleKernels(assembler));
}

/// Adds the way from entry points to the LLVM dialect.
static void addHostPasses(OpPassManager &manager) {
  EmitEntryPointsOptions entryPoints;
  entryPoints.onDevice = true;
  manager.addPass(createEmitEntryPoints(entryPoints));
  EmitProfileOptions profile;
  profile.onDevice = true;
  manager.addPass(createEmitProfile(profile));
  OpPassManager &functions = manager.nest<func::FuncOp>();
  addCanonicalizer(functions);
  functions.addPass(createCSEPass());
  functions.addPass(memref::createExpandStridedMetadataPass());
  functions.addPass(createLowerAffinePass());
  functions.addPass(createSCFToControlFlowPass());
  functions.addPass(arith::createArithExpandOpsPass());
  manager.addPass(createReturnErrors());
  manager.addPass(createConvertToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
  manager.addNestedPass<LLVM::LLVMFuncOp>(createGuardDivisions());
}

void fp8::buildGPUCodePipeline(OpPassManager &manager, const GPUCodeOptions &options) {
  manager.addNestedPass<func::FuncOp>(createPlanWorkspace({/*reuse=*/!options.separateTemporaries}));
  manager.addPass(createAllocateDynamic());
  manager.addPass(createLowerCollectives());
  manager.addPass(createLowerLaunches());
  buildPTXPipeline(manager, options);
  manager.addPass(createEmitDeviceCode());
  addHostPasses(manager);
}

void fp8::registerGPUPipelines() {
  registerModulePipeline<GPUKernelsOptions>("fp8-gpu-kernels-pipeline",
                                            "Stage 6 for GPUs: fp8 and linalg to kernels and launches",
                                            buildGPUKernelsPipeline);
  registerModulePipeline<GPUCodeOptions>("fp8-gpu-code-pipeline",
                                         "Stage 7 for GPUs: PTX, and host code in the LLVM dialect",
                                         buildGPUCodePipeline);
  registerModulePipeline<GPUCodeOptions>(
      "fp8-ptx-pipeline", "Stage 7 for GPUs, kernels alone: their PTX in the attribute fp8.ptx",
      buildPTXPipeline);
}
