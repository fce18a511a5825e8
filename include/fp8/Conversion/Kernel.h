// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes that mark an operation as one kernel, and say how kernels sum.

#ifndef FP8_CONVERSION_KERNEL_H
#define FP8_CONVERSION_KERNEL_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"

namespace fp8 {

/// Attribute on an operation with regions that fp8-outline-kernels must outline as one kernel.
inline constexpr llvm::StringLiteral kKernelAttrName = "fp8.kernel";

/// Unit attribute on an argument of a kernel that takes descriptors, as of buffers of dynamic shape: no other
/// argument has its memory. Where all arguments are pointers, LLVM's own attribute says so.
inline constexpr llvm::StringLiteral kOwnMemoryAttrName = "fp8.own_memory";

/// Unit attribute on a module: products of bf16 and FP8 may be summed as the processor does, by the dot
/// matmuls of AVX512_BF16, and not by one f32 sum in the order of K.
inline constexpr llvm::StringLiteral kHardwareSumsAttrName = "fp8.hardware_sums";

/// Unit attribute on a module: kernels for GPUs add up every sum in the order of the program, one element
/// after another, and not in parts.
inline constexpr llvm::StringLiteral kProgramOrderAttrName = "fp8.program_order";

/// Unit attribute on a module: sums of `split` matmuls are added in parts of 128 also where the tensor cores
/// sum exactly enough without.
inline constexpr llvm::StringLiteral kStrictAccumulationAttrName = "fp8.strict_accumulation";

/// Returns whether the module of `op` has the unit attribute `name`.
inline bool hasModuleAttr(mlir::Operation *op, llvm::StringRef name) {
  auto module = op->getParentOfType<mlir::ModuleOp>();
  return module && module->hasAttr(name);
}

} // namespace fp8

#endif // FP8_CONVERSION_KERNEL_H
