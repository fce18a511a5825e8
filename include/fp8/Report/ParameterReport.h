// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The weights that are kept in FP8 (--fp8-parameters), and why others are not, for the report.

#ifndef FP8_REPORT_PARAMETERREPORT_H
#define FP8_REPORT_PARAMETERREPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"
#include <string>
#include <vector>

namespace fp8 {

/// One cast of a weight in one entry point.
struct ParameterRecord {
  std::string entry;
  std::string site; ///< the first that reads it
  bool isKept;
  std::string reason;    ///< why it is not kept
  int64_t bytes = 0;     ///< of what is kept; 0 where another entry point or cast has told it
  int64_t copyBytes = 0; ///< of the copy in the program's type that a step no longer makes; 0 likewise
};

/// Returns what fp8-keep-parameters has noted; empty without --fp8-parameters.
std::vector<ParameterRecord> collectParameters(mlir::ModuleOp module);

llvm::json::Array parametersToJSON(const std::vector<ParameterRecord> &records);
/// Prints how many are kept, and one line for each reason why others are not.
void printParameters(const std::vector<ParameterRecord> &records, llvm::raw_ostream &os);

} // namespace fp8

#endif // FP8_REPORT_PARAMETERREPORT_H
