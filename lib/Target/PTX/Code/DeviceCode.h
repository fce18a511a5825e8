// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels of a program and the attributes that the passes of stage 7 leave on their gpu.module.

#ifndef FP8_LIB_TARGET_PTX_CODE_DEVICECODE_H
#define FP8_LIB_TARGET_PTX_CODE_DEVICECODE_H

#include "fp8/Conversion/FP8ToGPU/Kernels.h"
#include "fp8/Dialect/FP8/IR/Chips.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace fp8 {

/// The constant of a library that holds the PTX text, and a NUL.
inline constexpr llvm::StringLiteral kPTXGlobalName = "fp8_device_ptx";

/// Returns the gpu.module of the kernels; null if there is none.
mlir::gpu::GPUModuleOp getKernelModule(mlir::ModuleOp module);

/// Returns the kernels in the order of their numbers. They are func.func, and llvm.func later.
llvm::SmallVector<mlir::FunctionOpInterface> getKernels(mlir::gpu::GPUModuleOp kernels);

/// Returns the version of PTX that the kernels need, times ten: the chip's, or that of FP8 operands of
/// mma.sync.
unsigned getPTXVersion(mlir::gpu::GPUModuleOp kernels, const Chip &chip);

/// Returns the chip that `op` is compiled for. Emits an error if the target is no GPU.
mlir::FailureOr<ChipAttr> getChipOf(mlir::Operation *op);

} // namespace fp8

#endif // FP8_LIB_TARGET_PTX_CODE_DEVICECODE_H
