// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The range of values that code on elements can have on an area of rows and keys.

#ifndef FP8_ANALYSIS_ATTENTION_RANGEEVALUATOR_H
#define FP8_ANALYSIS_ATTENTION_RANGEEVALUATOR_H

#include "fp8/Analysis/Attention/ElementCode.h"
#include "fp8/Analysis/Attention/NumberRanges.h"
#include "llvm/ADT/SetVector.h"

namespace fp8 {

/// An area of the scores: indices of keys, and their differences to the index of the row.
struct ScoreArea {
  NumberRange key, difference;
};

class RangeEvaluator {
public:
  /// `row` and `key` are indices of `code`, `raw` the nodes whose ranges are given: results of matmuls.
  /// `boundsInputs`: floats of all other tensors are within ±kMostScore.
  RangeEvaluator(const ElementCode &code, unsigned row, unsigned key,
                 llvm::ArrayRef<std::pair<const CodeNode *, NumberRange>> raw, bool boundsInputs)
      : code(code), row(row), key(key), raw(raw), boundsInputs(boundsInputs) {}

  /// Returns the range of `node` on the area. A reduction along keys has the range that it has for a row
  /// with one of the areas `seen`: a row has a key in one of them.
  NumberRange compute(const CodeNode *node, const ScoreArea &area);
  /// Lists an area of which each row has a key: it bounds maxima from below.
  void addSeen(const ScoreArea &area) { seen.push_back(area); }
  /// States that the i1 `node` has `value`, for the first key or for all rows and keys.
  void addTruth(const CodeNode *node, bool value, bool isOfFirst) { truths[node] = {value, isOfFirst}; }
  /// Returns what a reduction combines with its accumulator; null if it does that in an unknown way.
  static const CodeNode *getAddend(const CodeNode *reduction);
  ScoreArea everywhere() const;
  /// Returns whether a node is computed without scores.
  bool isIndependent(const CodeNode *node);
  /// Returns the tensors whose floats were taken to be bounded: inputs of the code, and numbers of rows or
  /// keys that nothing else is known of.
  llvm::ArrayRef<mlir::Value> getBounded() const { return bounded.getArrayRef(); }

private:
  NumberRange visit(const CodeNode *node, const ScoreArea &area);
  NumberRange bound(const CodeNode *node, mlir::Value tensor);
  NumberRange visitOperation(const CodeNode *node, const ScoreArea &area);
  bool areSame(const CodeNode *x, const CodeNode *y, const ScoreArea &area) const;
  NumberRange compareIntegers(const CodeNode *node, const ScoreArea &area);
  NumberRange computeInteger(const CodeNode *node, llvm::ArrayRef<NumberRange> x, const ScoreArea &area);
  NumberRange reduce(const CodeNode *node);
  const CodeNode *findChosen(const CodeNode *node);
  const CodeNode *skip(const CodeNode *node);
  NumberRange getIndexRange(mlir::AffineExpr expr, const ScoreArea &area) const;
  void collectMaximum(const CodeNode *node, llvm::SmallVectorImpl<const CodeNode *> &parts);
  void collectSum(const CodeNode *node, llvm::SmallVectorImpl<const CodeNode *> &parts);
  const CodeNode *findBelowMaximum(const CodeNode *node, const CodeNode *&top);
  bool isSoftmaxSum(const CodeNode *node);

  const ElementCode &code;
  unsigned row, key;
  llvm::SmallVector<std::pair<const CodeNode *, NumberRange>> raw;
  bool boundsInputs;
  llvm::SetVector<mlir::Value> bounded;
  llvm::DenseMap<const CodeNode *, bool> independent;
  llvm::SmallVector<ScoreArea, 2> seen;
  /// The value of nodes, and whether only for the first key.
  llvm::DenseMap<const CodeNode *, std::pair<bool, bool>> truths;
  std::map<std::tuple<const CodeNode *, double, double, double, double>, NumberRange> known;
};

} // namespace fp8

#endif // FP8_ANALYSIS_ATTENTION_RANGEEVALUATOR_H
