// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The GPU targets (#fp8.chip): stage 6 makes a gpu.module of kernels and launches of them, stage 7 makes
// PTX of the kernels, and host code that launches them through fp8rt/device.h.

#ifndef FP8_TARGET_PTX_PTXTARGET_H
#define FP8_TARGET_PTX_PTXTARGET_H

#include "fp8/Target/Host/HostCode.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace fp8 {

/// Options of stage 6 for a GPU.
struct GPUKernelsOptions : public mlir::PassPipelineOptions<GPUKernelsOptions> {
  Option<std::string> chip{*this, "chip",
                           llvm::cl::desc("sm_89, sm_90a, sm_100a or sm_120a, where the module has no "
                                          "attribute fp8.target")};
  Option<bool> batchLaunches{*this, "batch-launches",
                             llvm::cl::desc("join independent launches of one kernel (fp8-batch-launches)"),
                             llvm::cl::init(true)};
};

/// Options of stage 7 for a GPU.
struct GPUCodeOptions : public mlir::PassPipelineOptions<GPUCodeOptions> {
  Option<std::string> ptxas{
      *this, "ptxas",
      llvm::cl::desc("NVIDIA's assembler: a path, or a name on $PATH. none, or nothing, "
                     "leaves its work to the driver that loads the text")};
  Option<std::string> cache{
      *this, "cache",
      llvm::cl::desc("a folder that keeps the text of kernels, and their machine code, for the next "
                     "compilation; nothing keeps none")};
  Option<bool> separateTemporaries{
      *this, "separate-temporaries",
      llvm::cl::desc("give every temporary memory of its own (fp8-plan-workspace)")};
};

/// Adds stage 6 for a GPU: after it, the module is a gpu.module of kernels and entry points that launch them.
void buildGPUKernelsPipeline(mlir::OpPassManager &manager, const GPUKernelsOptions &options);

/// Adds stage 7 for a GPU: PTX, and host code in the LLVM dialect with one `fp8_call_<entry>` per public
/// function.
void buildGPUCodePipeline(mlir::OpPassManager &manager, const GPUCodeOptions &options);

/// Adds the kernels' part of stage 7, for those who launch kernels by host code of their own: the gpu.module
/// has its PTX text in the attribute `fp8.ptx`, and machine code in `fp8.cubin` where there is an assembler.
void buildPTXPipeline(mlir::OpPassManager &manager, const GPUCodeOptions &options);

/// Registers them as fp8-gpu-kernels-pipeline, fp8-gpu-code-pipeline and fp8-ptx-pipeline.
void registerGPUPipelines();

/// Gives #fp8.chip its TargetBackendInterface.
void registerPTXBackend(mlir::DialectRegistry &registry);

} // namespace fp8

#endif // FP8_TARGET_PTX_PTXTARGET_H
