// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Candidates for the score are the scalars without reductions that depend on the raw score; for the softmax,
// those on the way from the probability to the first operation that joins two parts that depend on it; for a
// sink, numbers of the row that do not depend on it.

#include "fp8/Analysis/Attention/SoftmaxProof.h"
#include "TrialRows.h"
#include "llvm/ADT/SetVector.h"
#include <cmath>

using namespace mlir;
using namespace fp8;
using Kind = CodeNode::Kind;

//===----------------------------------------------------------------------===//
// Candidates
//===----------------------------------------------------------------------===//

namespace {
/// Tells whether a node depends on the raw score, and on a reduction of it.
class Dependence {
public:
  explicit Dependence(const CodeNode *raw) : raw(raw) {}
  struct Facts {
    bool onScore, onReduction;
  };
  Facts get(const CodeNode *node) {
    if (auto it = known.find(node); it != known.end())
      return it->second;
    Facts facts{node->kind == Kind::element && node->value == raw->value, false};
    for (const CodeNode *operand : node->operands) {
      Facts part = get(operand);
      facts.onScore |= part.onScore;
      facts.onReduction |= part.onReduction;
    }
    facts.onReduction |= facts.onScore && node->kind == Kind::reduction;
    return known[node] = facts;
  }

private:
  const CodeNode *raw;
  DenseMap<const CodeNode *, Facts> known;
};
} // namespace

/// Adds `node` and what it is computed from, each after what reads it, as far as it depends on the score.
static void collect(const CodeNode *node, Dependence &dependence,
                    llvm::SetVector<const CodeNode *> &operandsFirst) {
  if (operandsFirst.contains(node) || !dependence.get(node).onScore)
    return;
  for (const CodeNode *operand : node->operands)
    collect(operand, dependence, operandsFirst);
  operandsFirst.insert(node);
}

static SmallVector<const CodeNode *> findScores(const CodeNode *probability, Dependence &dependence,
                                                uint64_t keys) {
  llvm::SetVector<const CodeNode *> all;
  collect(probability, dependence, all);
  SmallVector<const CodeNode *> scores;
  for (const CodeNode *node : llvm::reverse(all))
    if (!dependence.get(node).onReduction && !node->accumulates && (node->dims & keys) == keys &&
        isa<FloatType>(node->type))
      scores.push_back(node);
  return scores;
}

/// Returns the candidates, the innermost first.
static SmallVector<const CodeNode *> findResults(const CodeNode *probability, Dependence &dependence) {
  SmallVector<const CodeNode *> results;
  while (isa<FloatType>(probability->type)) {
    results.push_back(probability);
    SmallVector<const CodeNode *> dependent;
    for (const CodeNode *operand : probability->operands)
      if (dependence.get(operand).onScore)
        dependent.push_back(operand);
    if (dependent.size() != 1 || probability->kind == Kind::reduction)
      break;
    probability = dependent.front();
  }
  std::reverse(results.begin(), results.end());
  return results;
}

/// Returns the candidates, the outermost first.
static SmallVector<const CodeNode *> findSinks(const CodeNode *probability, Dependence &dependence,
                                               uint64_t keys) {
  SmallVector<const CodeNode *> sinks;
  llvm::SmallPtrSet<const CodeNode *, 32> seen;
  auto visit = [&](auto &self, const CodeNode *node) -> void {
    if (!seen.insert(node).second)
      return;
    if (!dependence.get(node).onScore && !node->accumulates && !(node->dims & keys) &&
        isa<FloatType>(node->type))
      sinks.push_back(node);
    for (const CodeNode *operand : node->operands)
      self(self, operand);
  };
  visit(visit, probability);
  return sinks;
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

/// Returns the softmax of a row of scores; nothing if it has none.
static std::optional<SmallVector<double>> softmax(ArrayRef<double> scores, bool isBaseTwo) {
  std::optional<RowStatistics> of = computeStatistics(scores, isBaseTwo);
  if (!of)
    return std::nullopt;
  return llvm::map_to_vector(scores, [&](double score) {
    return (isBaseTwo ? std::exp2(score - of->maximum) : std::exp(score - of->maximum)) / of->sum;
  });
}

static bool areAllClose(ArrayRef<double> x, ArrayRef<double> y) {
  return llvm::all_of(llvm::zip_equal(x, y),
                      [](auto pair) { return areClose(std::get<0>(pair), std::get<1>(pair)); });
}

namespace {
/// A form, and how the rows so far agreed.
struct Candidate {
  SoftmaxForm form;
  unsigned rows = 0; ///< in which several keys have a probability

  /// Compares one row; returns false if it refutes the candidate. The softmax of a sink, the last of
  /// `scores`, is no result.
  bool accept(ArrayRef<double> scores, ArrayRef<double> results, const Trial &trial) {
    std::optional<SmallVector<double>> expected = softmax(scores, form.isBaseTwo);
    if (!expected)
      return true;
    expected->truncate(results.size());
    bool agrees = areAllClose(results, *expected);
    if (trial.scale > kLargeScale) {
      form.isSafe &= agrees;
      return true;
    }
    rows += llvm::count_if(*expected, [](double p) { return p > 1e-6; }) > 1;
    return agrees;
  }
};
} // namespace

static constexpr llvm::StringLiteral kNoRows = "its masks leave no row of numbers to evaluate";

/// Returns the first candidate that no row refutes. On failure sets `reason`.
static std::optional<SoftmaxForm> prove(std::vector<Candidate> candidates, const ElementCode &code,
                                        const CodeNode *probability, const CodeNode *raw,
                                        ArrayRef<unsigned> keys, std::string &reason) {
  bool isEvaluated = false;
  uint64_t seed = 1;
  auto needsRows = [&] {
    return !candidates.empty() &&
           llvm::none_of(candidates, [](const Candidate &candidate) { return candidate.rows >= kLeastRows; });
  };
  // Of few rows, masks may leave several keys to hardly any.
  for (unsigned round = 0; round < kMostRounds && (round == 0 || needsRows()); ++round)
    for (unsigned i = 0; i < kRepetitions * std::size(kTrials) && !candidates.empty(); ++i) {
      const Trial &trial = kTrials[i / kRepetitions];
      TrialRow row(code, raw, keys, trial, seed++);
      DenseMap<const CodeNode *, std::optional<SmallVector<double>>> values;
      auto compute = [&](const CodeNode *node) -> const std::optional<SmallVector<double>> & {
        auto [it, isNew] = values.try_emplace(node);
        if (isNew) {
          std::optional<SmallVector<double>> computed = row.compute(node);
          return values[node] = std::move(computed);
        }
        return it->second;
      };
      if (!compute(probability)) {
        if (Operation *unknown = row.getUnknown()) {
          reason = ("'" + unknown->getName().getStringRef() +
                    "' between its matmuls has no value that is known " + "at compile time")
                       .str();
          return std::nullopt;
        }
        continue;
      }
      isEvaluated = true;
      llvm::erase_if(candidates, [&](Candidate &candidate) {
        const SoftmaxForm &form = candidate.form;
        std::optional<SmallVector<double>> scores = computeScores(form, compute),
                                           results = compute(form.softmax);
        return !scores || !results || !candidate.accept(*scores, *results, trial);
      });
    }
  for (const Candidate &candidate : candidates)
    if (candidate.rows >= kLeastRows)
      return candidate.form;
  reason = !isEvaluated         ? "the code between its matmuls cannot be evaluated"
           : candidates.empty() ? "the code between its matmuls is no softmax of the scores along the keys"
                                : kNoRows.str();
  return std::nullopt;
}

std::optional<SoftmaxForm> fp8::findSoftmax(const ElementCode &code, const CodeNode *probability,
                                            const CodeNode *raw, ArrayRef<unsigned> keys,
                                            std::string &reason) {
  Dependence dependence(raw);
  uint64_t keyDims = 0;
  for (unsigned key : keys)
    keyDims |= uint64_t(1) << key;
  SmallVector<const CodeNode *> scores = findScores(probability, dependence, keyDims),
                                results = findResults(probability, dependence);
  auto list = [&](ArrayRef<const CodeNode *> sinks) {
    std::vector<Candidate> candidates;
    for (const CodeNode *result : results)
      for (const CodeNode *score : scores)
        for (bool isBaseTwo : {false, true})
          for (const CodeNode *sink : sinks)
            if (dependence.get(result).onReduction)
              candidates.push_back({{score, result, isBaseTwo, /*isSafe=*/true, sink}});
    return candidates;
  };
  if (std::optional<SoftmaxForm> form = prove(list({nullptr}), code, probability, raw, keys, reason))
    return form;
  std::string withSink;
  std::optional<SoftmaxForm> form =
      prove(list(findSinks(probability, dependence, keyDims)), code, probability, raw, keys, withSink);
  if (withSink == kNoRows)
    reason = withSink;
  return form;
}
