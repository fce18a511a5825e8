// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The report of attention: which places are one operation, and why others are not.

#ifndef FP8_REPORT_ATTENTIONREPORT_H
#define FP8_REPORT_ATTENTIONREPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <string>
#include <vector>

namespace fp8 {

/// A place that is attention, with its backward pass where the program has it, or that looks like it.
struct AttentionRecord {
  std::string entry;  ///< the function that contains it
  std::string site;   ///< of the matmul of queries and keys
  std::string reason; ///< why it stays written out; empty if it is one operation
  /// The bytes of scores, probabilities and their gradients, each once, that no longer exist as a whole;
  /// unset if it stays written out or a size is dynamic.
  std::optional<int64_t> scoreBytes;
  std::string mask; ///< "causal" if it is one operation and each row is known to see only the first keys
  /// The share of the scores that are behind those keys; unset if a size is dynamic. Blocks of rows leave out
  /// the keys that are hidden from all of their rows.
  std::optional<double> keysSkipped;
  std::string location; ///< where the user wrote it

  bool isFused() const { return reason.empty(); }
};

/// Returns what fp8-fuse-attention has noted in `module`, and removes the notes.
std::vector<AttentionRecord> takeAttentionSites(mlir::ModuleOp module);

llvm::json::Array attentionToJSON(const std::vector<AttentionRecord> &records);
/// Prints how many places are fused, and a line for those that are written out for the same reason.
void printAttention(const std::vector<AttentionRecord> &records, llvm::raw_ostream &os);

} // namespace fp8

#endif // FP8_REPORT_ATTENTIONREPORT_H
