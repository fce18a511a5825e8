// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tensors that a step reads more than once, and why, for the report.

#ifndef FP8_REPORT_REPEATEDREADREPORT_H
#define FP8_REPORT_REPEATEDREADREPORT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/JSON.h"
#include <string>
#include <vector>

namespace fp8 {

/// An operation that reads a tensor.
struct ReaderRecord {
  std::string op;               ///< "fp8.scaled_matmul", …
  std::string site, role;       ///< of a matmul; else empty
  std::string location;         ///< where the user wrote it
  std::optional<int64_t> times; ///< how often it reads the tensor; unset if that is known only at run time
  std::string reason;           ///< why it does not get the elements from the operation that computes them
};

/// A tensor that a step reads more than once.
struct RepeatedReadRecord {
  std::string name; ///< of an argument; else of the operation that writes it, with a matmul's site and role
  std::string type; ///< "16x64xbf16"
  std::string location; ///< where the user wrote it
  int64_t bytes;        ///< of the tensor
  int64_t read;         ///< by all readers, of which both branches count, and a loop of unknown length once
  std::vector<ReaderRecord> readers; ///< in the order of the program

  int64_t readAgain() const { return read - bytes; }
};

/// Returns the tensors that `function` after stage 3 reads more than once, those that cost most bytes first.
std::vector<RepeatedReadRecord> collectRepeatedReads(mlir::func::FuncOp function);

llvm::json::Array repeatedReadsToJSON(const std::vector<RepeatedReadRecord> &records);
/// Prints the tensors that cost most bytes, and the reasons; alike ones together.
void printRepeatedReads(const std::vector<RepeatedReadRecord> &records, llvm::raw_ostream &os);

} // namespace fp8

#endif // FP8_REPORT_REPEATEDREADREPORT_H
