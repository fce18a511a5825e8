// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of the report about the kernels of a step on a GPU: what they cost, and how long they are
// predicted to take (fp8/Dialect/FP8/IR/KernelTime.h).

#ifndef FP8_REPORT_KERNELREPORT_H
#define FP8_REPORT_KERNELREPORT_H

#include "fp8/Dialect/FP8/IR/KernelTime.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace fp8 {

/// Equal launches of one kernel in a step.
struct KernelRecord {
  std::string name, kind; ///< as in profiles
  std::vector<std::string> sites;
  int64_t launches; ///< in a step
  KernelCost cost;  ///< of one launch
  /// Of one launch; unset if its bytes depend on dynamic sizes.
  std::optional<KernelTime> time;
};

/// The kernels of an entry point, and its time.
struct StepRecord {
  std::string entry;
  std::vector<KernelRecord> kernels; ///< in the order of their first launches
  int64_t launches = 0;              ///< of all kernels
  int64_t unknownLaunches = 0;       ///< of kernels without a time, which no sum contains
  double seconds = 0;                ///< of all kernels and the gaps between them
  double gapSeconds = 0;             ///< of the gaps alone
  /// Seconds that a step takes at least: the matmuls' operations at the chip's rate, or each argument and
  /// result once at the rate of the memory.
  double floorSeconds = 0;
};

/// Describes the entry points of `module` after stage 6 for a GPU; returns an empty list for other targets.
/// A launch in a loop counts as often as the loop runs, once if that is not known; one in a branch counts
/// always. Launches whose steps overlap are not known here: kernels follow each other.
std::vector<StepRecord> collectKernels(mlir::ModuleOp module);

/// Returns [{entry, launches, unknown_launches, microseconds, gap_microseconds, floor_microseconds, kernels:
/// [{name, kind, sites, launches, read, written, operations, microseconds}, …]}, …]. `microseconds` of a
/// kernel are those of one launch: null, or {total, floor, bound, terms, lost}; the last two have memory, l2,
/// tensor, issue and latency.
llvm::json::Array kernelsToJSON(const std::vector<StepRecord> &steps);

} // namespace fp8

#endif // FP8_REPORT_KERNELREPORT_H
