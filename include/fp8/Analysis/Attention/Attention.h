// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds attention: two matmuls, and between them a softmax along the dimension that the second one sums over.
// The scales, masks, biases, casts and dropout around the softmax may have any order and type, and be divided
// into operations in any way.

#ifndef FP8_ANALYSIS_ATTENTION_ATTENTION_H
#define FP8_ANALYSIS_ATTENTION_ATTENTION_H

#include "fp8/Analysis/Attention/SoftmaxProof.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include <memory>

namespace fp8 {

/// Two matmuls with code on rows of scores between them.
struct AttentionSite {
  mlir::Operation *scores = nullptr; ///< fp8.matmul or fp8.scaled_matmul of queries and keys
  mlir::Operation *output = nullptr; ///< that of probabilities and values
  mlir::Value probabilities;
  /// Why it is no attention that could be one operation; empty if it is. The rest is set only then.
  std::string reason;

  /// The code of an element of `probabilities`, at the indices d0, d1, …; at 0 in dimensions of size 1,
  /// except for keys.
  std::shared_ptr<ElementCode> code;
  const CodeNode *probability = nullptr;
  const CodeNode *raw = nullptr;    ///< in that code: the element of the result of `scores`
  llvm::SmallVector<unsigned> keys; ///< the dimensions of `probabilities` that `output` sums over
  SoftmaxForm form{};
};

/// Looks whether a matmul is the second one of a place that is attention, or looks like it: a softmax between
/// two matmuls, or other code on rows of scores between two matmuls without weights. Gradients are no places
/// of their own.
std::optional<AttentionSite> findAttention(mlir::Operation *output);

} // namespace fp8

#endif // FP8_ANALYSIS_ATTENTION_ATTENTION_H
