// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The form of GPU kernels between stages 6 and 7: func.func with gpu.kernel in the gpu.module `kernels`,
// launched by gpu.launch_func.

#ifndef FP8_CONVERSION_FP8TOGPU_KERNELS_H
#define FP8_CONVERSION_FP8TOGPU_KERNELS_H

#include "fp8/Dialect/FP8/IR/Marks.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace fp8 {

/// The gpu.module that holds all kernels of a program.
inline constexpr llvm::StringLiteral kKernelModuleName = "kernels";

/// Address spaces of pointers.
inline constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3;

/// The most that a kernel counts, of rows, columns, batches or bytes along K: in 32 bits, up to a tile beyond
/// the last. Host code that narrows a larger number for a kernel ends with an error.
inline constexpr int64_t kMostOfDimension = (int64_t(1) << 31) - 512;

} // namespace fp8

#endif // FP8_CONVERSION_FP8TOGPU_KERNELS_H
