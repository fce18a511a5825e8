// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cost model of fusion and of the report: the bytes that operations on tensors read and
// write, if each reads every distinct operand once and writes every result once.

#ifndef FP8_ANALYSIS_MEMORYTRAFFIC_H
#define FP8_ANALYSIS_MEMORYTRAFFIC_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SetVector.h"
#include <optional>

namespace fp8 {

/// The assumed size of a dynamic dimension.
constexpr int64_t kAssumedSize = 1024;

struct MemoryTraffic {
  int64_t read = 0, written = 0; ///< in bytes
  /// A size was assumed, or code may run more or less often than was counted.
  bool estimated = false;

  int64_t total() const { return read + written; }
  MemoryTraffic &operator+=(const MemoryTraffic &other);
};

/// Returns the bytes of a tensor, 0 for all other types.
int64_t countBytes(mlir::Type type);

/// Returns the tensors of which `op` itself reads the elements, each once, also those that code in its region
/// gathers from; none for views (slices, reshapes, casts) and tensor.empty, which move nothing, and for
/// tensor.extract, which reads one element.
llvm::SetVector<mlir::Value> getTensorsRead(mlir::Operation *op);

/// Returns how often the body of `op`, a loop or a branch, runs each time `op` does; unset if unknown.
std::optional<int64_t> countRuns(mlir::Operation *op);

/// Returns the bytes that `op` itself reads and writes. Views (slices, reshapes, casts) and
/// tensor.empty move nothing; the code in regions of loops and branches is not counted.
MemoryTraffic countTraffic(mlir::Operation *op);

/// Returns the sum over all operations of `region`. The body of a loop counts as often as it runs,
/// once if that is unknown; both branches of a condition count.
MemoryTraffic countTraffic(mlir::Region &region);

} // namespace fp8

#endif // FP8_ANALYSIS_MEMORYTRAFFIC_H
