// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cost model of fusion, and what the report counts: bytes that operations on tensors
// read and write, if each reads every distinct tensor once and writes every result once.

#ifndef FP8_ANALYSIS_MEMORYTRAFFIC_H
#define FP8_ANALYSIS_MEMORYTRAFFIC_H

#include "mlir/IR/Operation.h"

namespace fp8 {

/// A dimension of unknown size counts as this many elements, for comparisons.
constexpr int64_t kAssumedSize = 1024;

struct MemoryTraffic {
  int64_t read = 0, written = 0;
  /// Sizes were assumed, or code may run more or less often than was counted.
  bool estimated = false;

  int64_t total() const { return read + written; }
  MemoryTraffic &operator+=(const MemoryTraffic &other);
};

/// Bytes of a tensor; of anything else 0.
int64_t countBytes(mlir::Type type);

/// What `op` itself reads and writes. Views (slices, reshapes, casts) and tensor.empty move
/// nothing; code in regions of loops and branches is not counted here.
MemoryTraffic countTraffic(mlir::Operation *op);

/// All operations of `region`, loops as often as they run: once where that is unknown. Both
/// branches of a condition count.
MemoryTraffic countTraffic(mlir::Region &region);

} // namespace fp8

#endif // FP8_ANALYSIS_MEMORYTRAFFIC_H
