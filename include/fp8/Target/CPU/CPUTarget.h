// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CPU target: stage 6 lowers the fp8 dialect on memrefs to linalg and loops, stage 7 lowers
// these to the LLVM dialect. Target/Host generates the code.

#ifndef FP8_TARGET_CPU_CPUTARGET_H
#define FP8_TARGET_CPU_CPUTARGET_H

#include "fp8/Target/Host/HostCode.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace fp8 {

/// Options of stage 7 for the CPU.
struct CPUCodeOptions : public mlir::PassPipelineOptions<CPUCodeOptions> {
  Option<int64_t> parallelThreshold{
      *this, "parallel-threshold",
      llvm::cl::desc("smallest work of a loop nest, in elements times cost, that runs on threads"),
      llvm::cl::init(32768)};
  Option<MathFunctions> math{
      *this, "math", llvm::cl::desc("which code computes the math functions of f32"),
      llvm::cl::init(MathFunctions::expanded),
      llvm::cl::values(clEnumValN(MathFunctions::expanded, "expanded", "fp8-expand-math"),
                       clEnumValN(MathFunctions::libm, "libm", "calls of the C library"))};
  Option<bool> separateTemporaries{
      *this, "separate-temporaries",
      llvm::cl::desc("give every temporary memory of its own (fp8-plan-workspace)")};
};

/// Adds stage 6 for the CPU, after which no operation of the fp8 dialect is left.
void buildCPUKernelsPipeline(mlir::OpPassManager &manager);

/// Adds stage 7 for the CPU, from linalg and loops on memrefs to the LLVM dialect with one
/// `fp8_call_<entry>` per public function.
void buildCPUCodePipeline(mlir::OpPassManager &manager, const CPUCodeOptions &options);

/// Registers both as fp8-cpu-kernels-pipeline and fp8-cpu-code-pipeline.
void registerCPUPipelines();

/// Gives #fp8.cpu its TargetBackendInterface.
void registerCPUBackend(mlir::DialectRegistry &registry);

} // namespace fp8

#endif // FP8_TARGET_CPU_CPUTARGET_H
