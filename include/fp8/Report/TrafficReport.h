// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bytes that a step reads and writes, before and after fusion, for the report.

#ifndef FP8_REPORT_TRAFFICREPORT_H
#define FP8_REPORT_TRAFFICREPORT_H

#include "fp8/Analysis/MemoryTraffic.h"
#include "fp8/Report/RepeatedReadReport.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace fp8 {

/// The traffic of one entry point: `before` if every operation of the program reads and writes
/// memory separately, `after` with fusion.
struct TrafficRecord {
  std::string entry;
  MemoryTraffic before, after;
  std::vector<RepeatedReadRecord> repeated; ///< with fusion; those that cost most bytes first
};

/// Counts all entry points of `module` after stage 2. `after` and `repeated` stay empty.
std::vector<TrafficRecord> collectTrafficBefore(mlir::ModuleOp module);

/// Fills in `after` and `repeated` from `module` after stage 3.
void collectTrafficAfter(mlir::ModuleOp module, std::vector<TrafficRecord> &records);

llvm::json::Array trafficToJSON(const std::vector<TrafficRecord> &records);
/// Prints the bytes of each entry point, and what it reads more than once.
void printTraffic(const std::vector<TrafficRecord> &records, llvm::raw_ostream &os);

} // namespace fp8

#endif // FP8_REPORT_TRAFFICREPORT_H
