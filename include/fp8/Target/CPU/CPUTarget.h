// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CPU as a target: stage 6, from the fp8 dialect on memrefs to linalg and loops, and
// stage 7, from those to the LLVM dialect; Target/Host makes code of it.

#ifndef FP8_TARGET_CPU_CPUTARGET_H
#define FP8_TARGET_CPU_CPUTARGET_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace fp8 {

/// Options of stage 7 for the CPU.
struct CPUCodeOptions : public mlir::PassPipelineOptions<CPUCodeOptions> {
  Option<int64_t> parallelThreshold{
      *this, "parallel-threshold",
      llvm::cl::desc("Work of a loop nest, in elements times cost, from which threads are used"),
      llvm::cl::init(32768)};
};

/// Stage 6 for the CPU: no operation of the fp8 dialect is left.
void buildCPUKernelsPipeline(mlir::OpPassManager &manager);

/// Stage 7 for the CPU: linalg and loops on memrefs, public entries that return nothing, to
/// the LLVM dialect with one `fp8_call_<entry>` per entry.
void buildCPUCodePipeline(mlir::OpPassManager &manager, const CPUCodeOptions &options);

/// Registers both as fp8-cpu-kernels-pipeline and fp8-cpu-code-pipeline.
void registerCPUPipelines();

/// Gives #fp8.cpu its TargetBackendInterface.
void registerCPUBackend(mlir::DialectRegistry &registry);

} // namespace fp8

#endif // FP8_TARGET_CPU_CPUTARGET_H
