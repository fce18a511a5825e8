// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of numbers that look random, on which code on rows of scores is evaluated: scores of both signs, small
// and large, with infinities; masks that let everything, something and one key pass; biases with infinities
// and lowest numbers. Private to the library.

#ifndef FP8_LIB_ANALYSIS_ATTENTION_TRIALROWS_H
#define FP8_LIB_ANALYSIS_ATTENTION_TRIALROWS_H

#include "fp8/Analysis/Attention/SoftmaxProof.h"

namespace fp8 {

/// Numbers that look random and are the same in every run.
class Numbers {
public:
  explicit Numbers(uint64_t seed) : state(seed) {}
  uint64_t next() { // splitmix64
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// From -1 to 1.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-52 - 1; }
  bool chance(double probability) { return uniform() < 2 * probability - 1; }

private:
  uint64_t state;
};

/// The kind of numbers in a row.
struct Trial {
  double scale = 4;    ///< of the raw scores
  double infinite = 0; ///< share of infinite raw scores
  double masked = 0.3; ///< share of false bits, and of lowest or infinite biases
  bool hasOneKey = false;
  bool isEmpty = false; ///< infinite scores and biases are all -Inf, so that the row has no probabilities
};

inline constexpr Trial kTrials[] = {
    {4, 0, 0, false},   {1, 0, 0.3, false},   {4, 0, 0.3, false},  {4, 0.3, 0, false},   {4, 0.3, 0.3, false},
    {4, 0, 0.7, false}, {4, 0, 0, true},      {4, 0, 0.5, true},   {1, 0, 0.1, false},   {0.01, 0, 0, false},
    {4, 0, 1, false},   {8, 0.5, 0.1, false}, {2000, 0, 0, false}, {2000, 0, 0.3, false}};
inline constexpr Trial kEmptyTrials[] = {
    {4, 0, 1, false, true}, {4, 0, 0.7, true, true}, {4, 1, 0, false, true}, {4, 1, 0.5, false, true}};
inline constexpr unsigned kRepetitions = 4;
inline constexpr unsigned kMostRounds = 8;  ///< of all trials, until enough rows agree
inline constexpr double kLargeScale = 1000; ///< exponentials of larger scores overflow even in f64
inline constexpr unsigned kLeastRows = 6;   ///< that must agree

/// Evaluates code on the row of one trial.
class TrialRow {
public:
  using FixedNode = std::pair<const CodeNode *, ScalarValue>;

  /// `matmuls` are the raw score and, where there is one, the gradient of the probability.
  TrialRow(const ElementCode &code, llvm::ArrayRef<const CodeNode *> matmuls, llvm::ArrayRef<unsigned> keys,
           const Trial &trial, uint64_t seed);
  TrialRow(const TrialRow &) = delete;
  TrialRow &operator=(const TrialRow &) = delete;

  /// Returns the value of `node`, a float, for each key of the row; nothing if one is not known. The nodes
  /// `fixed` have the values given for them.
  std::optional<llvm::SmallVector<double>> compute(const CodeNode *node,
                                                   llvm::ArrayRef<FixedNode> fixed = {});
  /// Returns the value of `node`, which is the same for all keys.
  std::optional<ScalarValue> computeScalar(const CodeNode *node) { return evaluator.compute(node, indices); }
  mlir::Operation *getUnknown() const { return evaluator.getUnknown(); }
  const Trial &getTrial() const { return trial; }

private:
  CodeEvaluator makeEvaluator();
  std::optional<ScalarValue> read(const CodeNode &element, llvm::ArrayRef<int64_t> at);
  std::optional<ScalarValue> makeNumber(mlir::Type type, mlir::Value tensor, Numbers &numbers) const;
  llvm::SmallVector<int64_t> chooseRange(unsigned dim, int64_t size, Numbers &numbers) const;

  const ElementCode &code;
  llvm::SmallVector<const CodeNode *, 2> matmuls;
  llvm::SmallVector<unsigned> keys;
  const Trial &trial;
  uint64_t seed;
  llvm::SmallVector<int64_t> indices;
  std::vector<llvm::SmallVector<int64_t>> ranges;
  llvm::MapVector<const void *, unsigned> tensors; ///< in the order in which they are read
  CodeEvaluator evaluator;
};

/// The numbers of a row of scores that its softmax is made of.
struct RowStatistics {
  double maximum;
  double sum; ///< of the exponentials of scores less the maximum
};

/// Computes the scores that the softmax of a row sees: `form.score` for each key, then `form.sink`, if there
/// is one. `compute` gives the values of a node for all keys. Returns nothing if one is not known.
std::optional<llvm::SmallVector<double>>
computeScores(const SoftmaxForm &form,
              llvm::function_ref<std::optional<llvm::SmallVector<double>>(const CodeNode *)> compute);

/// Returns the numbers of a row; nothing if it has no softmax: all scores are -Inf, or one is +Inf or NaN.
std::optional<RowStatistics> computeStatistics(llvm::ArrayRef<double> scores, bool isBaseTwo);

/// Returns whether two numbers that were computed in f64 are the same but for rounding.
bool areClose(double x, double y);

} // namespace fp8

#endif // FP8_LIB_ANALYSIS_ATTENTION_TRIALROWS_H
