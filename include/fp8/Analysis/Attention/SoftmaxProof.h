// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Proves that code on rows of scores is a softmax, by evaluating both on rows of numbers: whatever the code
// looks like, and never because of what it looks like.

#ifndef FP8_ANALYSIS_ATTENTION_SOFTMAXPROOF_H
#define FP8_ANALYSIS_ATTENTION_SOFTMAXPROOF_H

#include "fp8/Analysis/Attention/ElementCode.h"

namespace fp8 {

/// A softmax within code: `softmax` is that of the rows of `score`, and of `sink` where there is one: a score
/// without a key, which takes part in the maximum and the sum of each row.
struct SoftmaxForm {
  const CodeNode *score;   ///< the score after scale, bias and mask
  const CodeNode *softmax; ///< the probability before dropout and the like
  bool isBaseTwo;          ///< powers of 2, not of e
  bool isSafe;             ///< right for scores whose exponentials overflow
  const CodeNode *sink;    ///< an attention sink, a function of the row alone; null if there is none
};

/// Finds a softmax within the code of `probability`, which is a function of the score `raw`. Rows are along
/// the indices `keys`. Returns nothing if there is none, and then sets `reason`.
///
/// Each candidate is evaluated in f64, as if no type rounded, on rows of random numbers: scores of both
/// signs, small and large, with infinities; masks that let everything, something and one key pass; biases
/// with infinities and lowest numbers. Rows that have no softmax (all keys masked, +Inf, NaN) may have any
/// value.
std::optional<SoftmaxForm> findSoftmax(const ElementCode &code, const CodeNode *probability,
                                       const CodeNode *raw, llvm::ArrayRef<unsigned> keys,
                                       std::string &reason);

} // namespace fp8

#endif // FP8_ANALYSIS_ATTENTION_SOFTMAXPROOF_H
