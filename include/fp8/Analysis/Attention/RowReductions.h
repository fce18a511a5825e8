// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tells what code on rows of attention computes, in terms of the softmax: by evaluation on rows of numbers,
// and never because of what the code looks like.

#ifndef FP8_ANALYSIS_ATTENTION_ROWREDUCTIONS_H
#define FP8_ANALYSIS_ATTENTION_ROWREDUCTIONS_H

#include "fp8/Analysis/Attention/Attention.h"

namespace fp8 {

class TrialRow;

/// A reduction along the keys of a row, in terms of the softmax.
struct RowReduction {
  enum class Kind {
    maximum,   ///< `factor` times the maximum of the scores
    sum,       ///< `factor` times the sum of the exponentials of the scores less their maximum
    product,   ///< `factor` times the sum of the probability times its gradient, times `sum` to the `power`
    emptiness, ///< whether all scores are -Inf; whether they are not, if `factor` is negative
    zero,      ///< a difference that is 0 but for roundings, as the gradient of a maximum that is subtracted
    unknown
  };
  Kind kind = Kind::unknown;
  double factor = 1;
  int power = 0;
};

/// The probabilities, in the program, of rows whose scores are all -Inf.
enum class EmptyRows { none, zero, nan, mixed };

/// Evaluates the code of one place of attention. Rows without a softmax (all keys masked, +Inf, NaN) may have
/// any reductions, except for `emptiness`.
class RowReductions {
public:
  /// `gradient` is the element of the gradient of the probability; null without a backward pass.
  RowReductions(const AttentionSite &site, const CodeNode *gradient);
  ~RowReductions();

  RowReduction classify(const CodeNode *node) const;
  /// Returns whether a number or row is 0 but for roundings.
  bool isZero(const CodeNode *node) const;
  /// Returns whether the probability is its softmax times what its code makes of the number 1.
  bool hasFactor() const;
  /// Tells of rows that nothing is visible in; if there are none, of those whose raw scores are -Inf.
  EmptyRows getEmptyRows() const { return emptyRows; }
  /// Returns whether `node` has the same value on such rows, if these reductions are those of rows whose sums
  /// are 0.
  bool isSameOnEmptyRows(const CodeNode *node,
                         llvm::ArrayRef<std::pair<const CodeNode *, RowReduction>> reductions) const;

private:
  /// A row that has a softmax. Numbers that are not known or not finite are NaN.
  struct Sample {
    std::unique_ptr<TrialRow> row;
    double maximum, sum, product;
    double gradient; ///< the largest gradient of a probability
  };
  /// A row whose scores are all -Inf. Rows of the least rank tell most.
  struct EmptyRow {
    std::unique_ptr<TrialRow> row;
    unsigned rank;
  };

  void addSample(std::unique_ptr<TrialRow> row);
  void addEmptyRow(std::unique_ptr<TrialRow> row, unsigned (&counts)[3][3]);
  bool isEmpty(TrialRow &row) const;
  bool agrees(llvm::ArrayRef<double> values, llvm::function_ref<double(const Sample &)> number,
              double &factor) const;

  const AttentionSite &site;
  llvm::SmallVector<const CodeNode *, 2> matmuls;
  std::vector<Sample> samples;
  std::vector<EmptyRow> empty;
  unsigned decisive = 0; ///< the least rank of an empty row
  EmptyRows emptyRows = EmptyRows::none;
};

} // namespace fp8

#endif // FP8_ANALYSIS_ATTENTION_ROWREDUCTIONS_H
