// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes from which kernels get their names, and those with which a profile knows them.

#ifndef FP8_DIALECT_FP8_IR_KERNELMARKS_H
#define FP8_DIALECT_FP8_IR_KERNELMARKS_H

#include "llvm/ADT/StringRef.h"

namespace fp8 {

/// Attribute on a linalg op or a loop: a word for what its code computes, as "quantize" or
/// "epilogue", where the operation itself does not tell. The lowering that creates the code sets it;
/// it becomes the first part of the kernel's name.
inline constexpr llvm::StringLiteral kComputesAttrName = "fp8.computes";

/// Attributes on the call of a kernel in an entry point: the name of the site or argument that it
/// works for, a string; and, on the function of the kernel, its kind (KernelNames.h).
inline constexpr llvm::StringLiteral kKernelSiteAttrName = "fp8.kernel_site";
inline constexpr llvm::StringLiteral kKernelKindAttrName = "fp8.kernel_kind";

/// Attribute on the call of a kernel: its number in the list of kernels, an i32. Attribute on the
/// module: that list, an array of dictionaries {name, kind, sites, read, written, operations}; the
/// last three are per call, and absent where they are not known.
inline constexpr llvm::StringLiteral kKernelNumberAttrName = "fp8.kernel_number";
inline constexpr llvm::StringLiteral kKernelsAttrName = "fp8.kernels";

} // namespace fp8

#endif // FP8_DIALECT_FP8_IR_KERNELMARKS_H
