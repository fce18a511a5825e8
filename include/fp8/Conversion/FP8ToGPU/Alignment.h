// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The alignment of what kernels access.

#ifndef FP8_CONVERSION_FP8TOGPU_ALIGNMENT_H
#define FP8_CONVERSION_FP8TOGPU_ALIGNMENT_H

#include "mlir/IR/Value.h"

namespace fp8 {

/// The widest access of a thread in bytes. Allocations, parts of the workspace and the memory of entry
/// points' arguments and results (fp8rt_prepare_on) are aligned to it.
inline constexpr int64_t kAccessBytes = 16;

/// Returns the bytes that an element of `type` takes in memory: a whole number, 8 for an index.
int64_t countElementBytes(mlir::Type type);

/// Returns a power of two, at most kAccessBytes, that divides the address of the first element of `memref`.
int64_t findBaseAlignment(mlir::Value memref);

} // namespace fp8

#endif // FP8_CONVERSION_FP8TOGPU_ALIGNMENT_H
