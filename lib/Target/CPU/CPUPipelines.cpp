// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pipelines of stages 6 and 7 for the CPU: stage 6 lowers the fp8 dialect to linalg and loops;
// stage 7 runs our own passes on kernels and memory, then upstream's lowering to the LLVM dialect.

#include "fp8/Conversion/Passes.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/FP8/Transforms/PipelineSteps.h"
#include "fp8/Target/CPU/CPUTarget.h"
#include "fp8/Target/CPU/Passes.h"
#include "fp8/Target/Host/Passes.h"
#include "fp8/Target/ModulePipeline.h"

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

void fp8::buildCPUKernelsPipeline(OpPassManager &manager) {
  addStageVerifier(manager, "bufferize"); // upstream's passes crash on loops over tensors
  manager.addNestedPass<func::FuncOp>(createOverlapCollectives());
  manager.addNestedPass<func::FuncOp>(createParallelizeRows());
  manager.addNestedPass<func::FuncOp>(createParallelizeTasks());
  // Sequential: kernels use all cores themselves, and the workspace is planned for one at a time.
  manager.addPass(createForallToForLoopPass());
  manager.addPass(createExpandScaling());
  manager.addPass(createConvertFP8ToLinalg());
  manager.addPass(createExpandCasts());
  manager.addPass(createSymbolDCEPass()); // functions of recipes are inlined now
  manager.addNestedPass<func::FuncOp>(createGiveTasksMemory());
  addStageVerifier(manager, "kernels");
}

/// Computes math functions of bf16 and f16 in f32, and expands those of f32 where `math` asks for it.
static void addMathPasses(OpPassManager &functions, MathFunctions math) {
  math::MathExtendToSupportedTypesOptions extend;
  functions.addPass(math::createMathExtendToSupportedTypes(extend));
  if (math == MathFunctions::expanded)
    functions.addPass(createExpandMath());
}

/// Expands bf16 and f16 arithmetic to f32 arithmetic with a rounding after every operation, and
/// bf16 conversions to integer operations, because those of the processor flush denormals.
static void addNarrowFloatPasses(OpPassManager &functions) {
  arith::ArithEmulateUnsupportedFloatsOptions emulate;
  emulate.sourceTypeStrs = {"bf16", "f16"};
  emulate.targetTypeStr = "f32";
  functions.addPass(arith::createArithEmulateUnsupportedFloats(emulate));
  functions.addPass(createKeepRoundings());
  functions.addPass(createRoundBF16());
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  functions.addPass(arith::createArithExpandOpsPass(expand));
}

static void addLLVMConversions(OpPassManager &manager) {
  manager.addPass(createConvertSCFToOpenMPPass());
  manager.addNestedPass<func::FuncOp>(createHoistStackBuffers());
  manager.addPass(createSetFloatEnvironment());
  manager.addPass(createConvertMathToFuncs()); // integer powers
  // By function, so that all threads work.
  OpPassManager &functions = manager.nest<func::FuncOp>();
  addCanonicalizer(functions);
  functions.addPass(createCSEPass());
  functions.addPass(memref::createExpandStridedMetadataPass());
  functions.addPass(createLowerAffinePass());
  ConvertVectorToLLVMPassOptions vectors;
  vectors.x86Vector = true;
  vectors.amx = true;
  functions.addPass(createConvertVectorToLLVMPass(vectors));
  functions.addPass(createSCFToControlFlowPass());
  functions.addPass(createConvertMathToLLVMPass());
  manager.addPass(createReturnErrors());
  manager.addPass(createConvertMathToLibmPass());
  manager.addPass(createConvertToLLVMPass());
  manager.addPass(createConvertOpenMPToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
  manager.addNestedPass<LLVM::LLVMFuncOp>(createNarrowFloatBits());
  manager.addNestedPass<LLVM::LLVMFuncOp>(createGuardDivisions());
  manager.addNestedPass<LLVM::LLVMFuncOp>(createAnnotateAliasScopes());
}

void fp8::buildCPUCodePipeline(OpPassManager &manager, const CPUCodeOptions &options) {
  manager.addPass(createOutlineKernels());
  manager.addPass(createCountKernels());
  manager.addNestedPass<func::FuncOp>(createPlanWorkspace({/*reuse=*/!options.separateTemporaries}));
  manager.addPass(createAllocateDynamic());
  manager.addPass(createLowerCollectives());
  LinalgToLoopsOptions loops;
  loops.parallelThreshold = options.parallelThreshold;
  OpPassManager &functions = manager.nest<func::FuncOp>();
  functions.addPass(createLinalgToLoops(loops));
  functions.addPass(affine::createAffineExpandIndexOpsPass());
  functions.addPass(createLowerAffinePass());
  addCanonicalizer(functions);
  functions.addPass(createCSEPass());
  functions.addPass(createSplitSums());
  functions.addPass(createInterleaveRows());
  functions.addPass(createSerializeTasks());
  functions.addPass(createConvertComplexToStandardPass());
  addMathPasses(functions, options.math);
  addNarrowFloatPasses(functions);
  manager.addPass(createEmitEntryPoints());
  manager.addPass(createEmitProfile());
  addLLVMConversions(manager);
}

void fp8::registerCPUPipelines() {
  registerModulePipeline("fp8-cpu-kernels-pipeline", "Stage 6 for the CPU: fp8 to linalg, scf and arith",
                         buildCPUKernelsPipeline);
  registerModulePipeline<CPUCodeOptions>("fp8-cpu-code-pipeline", "Stage 7 for the CPU: the LLVM dialect",
                                         buildCPUCodePipeline);
}
