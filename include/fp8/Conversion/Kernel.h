// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes that mark an operation as one kernel, and say how kernels sum.

#ifndef FP8_CONVERSION_KERNEL_H
#define FP8_CONVERSION_KERNEL_H

#include "llvm/ADT/StringRef.h"

namespace fp8 {

/// Attribute on an operation with regions that fp8-outline-kernels must outline as one kernel.
inline constexpr llvm::StringLiteral kKernelAttrName = "fp8.kernel";

/// Unit attribute on a module: products of bf16 and FP8 may be summed as the processor does, by the dot
/// products of AVX512_BF16, and not by one f32 sum in the order of K.
inline constexpr llvm::StringLiteral kHardwareSumsAttrName = "fp8.hardware_sums";

} // namespace fp8

#endif // FP8_CONVERSION_KERNEL_H
