// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The keys that a row of attention sees under its mask.

#ifndef FP8_ANALYSIS_ATTENTION_VISIBLEKEYS_H
#define FP8_ANALYSIS_ATTENTION_VISIBLEKEYS_H

#include "fp8/Analysis/Attention/ElementCode.h"

namespace fp8 {

/// A truth that is computed from other tensors than scores, as that a token is no padding.
struct KeyTruth {
  const CodeNode *node; ///< an i1, no function of both the row and the key
  bool value;
  bool isOfFirst; ///< so for the first key; otherwise for all rows and keys
};

/// Row i sees the keys from i + `first` on, and before i + `end`; without one of them, from the first key on,
/// or all later ones.
struct VisibleKeys {
  unsigned row; ///< the index that is i
  std::optional<int64_t> first, end;
  /// It holds where the floats of these tensors, too, are numbers within ±kMostScore: biases and sinks.
  llvm::SmallVector<mlir::Value> bounded;
  /// It holds where these are so.
  llvm::SmallVector<KeyTruth, 1> truths;

  /// Returns how many of `rows` times `keys` scores are seen.
  double countScores(int64_t rows, int64_t keys) const;
};

/// Proves that keys before and behind those that a row sees take no part in it, whatever the scores there
/// are, if they are numbers within ±kMostScore and the gradients of probabilities within ±kMostGradient: rows
/// of `outputs` are zeros there, and no reduction along keys differs with and without them. Returns the index
/// and numbers that leave the fewest keys visible, without conditions if there are some; nothing
/// if no mask limits them. `raw`: the row of scores and, where there is one, that of gradients. `rows`: the
/// indices that may be i.
std::optional<VisibleKeys> findVisibleKeys(const ElementCode &code, llvm::ArrayRef<const CodeNode *> raw,
                                           llvm::ArrayRef<const CodeNode *> outputs,
                                           llvm::ArrayRef<unsigned> rows, unsigned key);

} // namespace fp8

#endif // FP8_ANALYSIS_ATTENTION_VISIBLEKEYS_H
