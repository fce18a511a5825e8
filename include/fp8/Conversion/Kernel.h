// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attribute that marks an operation as one kernel.

#ifndef FP8_CONVERSION_KERNEL_H
#define FP8_CONVERSION_KERNEL_H

#include "llvm/ADT/StringRef.h"

namespace fp8 {

/// Attribute on an operation with regions that fp8-outline-kernels must outline as one kernel.
inline constexpr llvm::StringLiteral kKernelAttrName = "fp8.kernel";

} // namespace fp8

#endif // FP8_CONVERSION_KERNEL_H
