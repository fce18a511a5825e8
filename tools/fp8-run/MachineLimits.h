// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How fast this machine can compute and move data: what a profile compares kernels with.

#ifndef FP8_TOOLS_FP8RUN_MACHINELIMITS_H
#define FP8_TOOLS_FP8RUN_MACHINELIMITS_H

#include "llvm/ADT/StringRef.h"

namespace fp8run {

struct MachineLimits {
  unsigned threads = 1;
  unsigned vectorBits = 128;
  double operationsPerSecond = 0; ///< f32 fused multiply-adds in registers, two operations each
  double bytesPerSecond = 0;      ///< read and written, between arrays larger than caches
};

/// Measures the limits in about half a second, with as many threads as compiled code uses and with the
/// widest vectors that the processor features in `manifest` allow that code.
MachineLimits measureLimits(llvm::StringRef manifest);

} // namespace fp8run

#endif // FP8_TOOLS_FP8RUN_MACHINELIMITS_H
