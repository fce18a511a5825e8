// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Candidates for the score are the scalars without reductions that depend on the raw score; for the softmax,
// those on the way from the probability to the first operation that joins two parts that depend on it.

#include "fp8/Analysis/Attention/SoftmaxProof.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include <cmath>

using namespace mlir;
using namespace fp8;
using Kind = CodeNode::Kind;

namespace {

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
};

constexpr Trial kTrials[] = {
    {4, 0, 0, false},   {1, 0, 0.3, false},   {4, 0, 0.3, false},  {4, 0.3, 0, false},   {4, 0.3, 0.3, false},
    {4, 0, 0.7, false}, {4, 0, 0, true},      {4, 0, 0.5, true},   {1, 0, 0.1, false},   {0.01, 0, 0, false},
    {4, 0, 1, false},   {8, 0.5, 0.1, false}, {2000, 0, 0, false}, {2000, 0, 0.3, false}};
constexpr unsigned kRepetitions = 4;
constexpr double kLargeScale = 1000; ///< exponentials of larger scores overflow even in f64

/// Evaluates candidates on the rows of one trial.
class Row {
public:
  Row(const ElementCode &code, const CodeNode *raw, ArrayRef<unsigned> keys, const Trial &trial,
      uint64_t seed);

  /// Returns the value of `node` for each key of the row; nothing if one is not known.
  std::optional<SmallVector<double>> compute(const CodeNode *node);
  Operation *getUnknown() const { return evaluator.getUnknown(); }

private:
  std::optional<ScalarValue> read(const CodeNode &element, ArrayRef<int64_t> at);
  std::optional<ScalarValue> makeNumber(Type type, bool isRaw, Numbers &numbers) const;
  SmallVector<int64_t> chooseRange(unsigned dim, int64_t size, Numbers &numbers) const;

  const ElementCode &code;
  const CodeNode *raw;
  SmallVector<unsigned> keys;
  const Trial &trial;
  uint64_t seed;
  SmallVector<int64_t> indices;
  std::vector<SmallVector<int64_t>> ranges;
  llvm::MapVector<const void *, unsigned> tensors; ///< in the order in which they are read
  CodeEvaluator evaluator;
};
} // namespace

static constexpr int64_t kUnknownSize = 24;

Row::Row(const ElementCode &code, const CodeNode *raw, ArrayRef<unsigned> keys, const Trial &trial,
         uint64_t seed)
    : code(code), raw(raw), keys(keys), trial(trial), seed(seed),
      evaluator([this](const CodeNode &element, ArrayRef<int64_t> at) { return read(element, at); },
                [this](unsigned dim) { return ArrayRef(ranges[dim]); }, Rounding::none) {
  Numbers numbers(seed);
  for (int64_t size : code.getSizes())
    indices.push_back(numbers.next() %
                      std::max<int64_t>(1, ShapedType::isDynamic(size) ? kUnknownSize : size));
  for (auto [dim, size] : llvm::enumerate(code.getSizes()))
    ranges.push_back(chooseRange(dim, ShapedType::isDynamic(size) ? kUnknownSize : size, numbers));
}

/// Some numbers of the range, in order: both ends, those around the indices of the row, where causal masks
/// and windows end, and random ones.
SmallVector<int64_t> Row::chooseRange(unsigned dim, int64_t size, Numbers &numbers) const {
  bool isKey = llvm::is_contained(keys, dim);
  SmallVector<int64_t> chosen;
  auto add = [&](int64_t index) {
    if (index >= 0 && index < size && !llvm::is_contained(chosen, index))
      chosen.push_back(index);
  };
  if (isKey && trial.hasOneKey) {
    add(numbers.next() % std::max<int64_t>(size, 1));
    return chosen;
  }
  for (int64_t index : indices) {
    add(index);
    add(index - 1);
  }
  for (unsigned i = 0; i < 3; ++i)
    add(numbers.next() % std::max<int64_t>(size, 1));
  add(0);
  add(size - 1);
  llvm::sort(chosen);
  return chosen;
}

std::optional<ScalarValue> Row::makeNumber(Type type, bool isRaw, Numbers &numbers) const {
  if (auto floats = dyn_cast<FloatType>(type)) {
    double number = 0;
    for (unsigned i = 0; i < 4; ++i)
      number += numbers.uniform() / 2;
    if (isRaw && numbers.chance(trial.infinite))
      return numbers.chance(0.9) ? -INFINITY : INFINITY;
    if (!isRaw && numbers.chance(trial.masked / 2))
      return numbers.chance(0.5) ? -INFINITY
                                 : APFloat::getLargest(floats.getFloatSemantics(), true).convertToDouble();
    return number * (isRaw ? trial.scale : 1);
  }
  if (type.isInteger(1))
    return APInt(1, !numbers.chance(trial.masked));
  // Small numbers, which are equal now and then, as segments are; or of the size of indices, as lengths are.
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  int64_t size = keys.empty() ? ShapedType::kDynamic : code.getSizes()[keys[0]];
  uint64_t most = seed % 2 ? 2 : ShapedType::isDynamic(size) ? kUnknownSize : size + 1;
  return APInt(width, numbers.next() % most, false, true);
}

std::optional<ScalarValue> Row::read(const CodeNode &element, ArrayRef<int64_t> at) {
  auto type = dyn_cast<RankedTensorType>(element.value.getType());
  int64_t position = 0;
  for (auto [dim, index] : llvm::enumerate(at)) {
    int64_t size = type ? type.getDimSize(dim) : 1;
    if (index < 0 || (!ShapedType::isDynamic(size) && index >= size))
      return std::nullopt;
    position = position * (ShapedType::isDynamic(size) ? int64_t(1) << 20 : size) + index;
  }
  if (DenseElementsAttr constants; matchPattern(element.value, m_Constant(&constants)))
    return getScalarValue(constants.getValues<Attribute>()[position]);
  unsigned number = tensors.insert({element.value.getAsOpaquePointer(), tensors.size()}).first->second;
  Numbers numbers(seed ^ Numbers(number * uint64_t(0x10001) + position * uint64_t(0x100000001)).next());
  return makeNumber(element.type, element.value == raw->value, numbers);
}

std::optional<SmallVector<double>> Row::compute(const CodeNode *node) {
  SmallVector<double> row;
  SmallVector<int64_t> at = indices;
  std::function<bool(unsigned)> visit = [&](unsigned number) {
    if (number == keys.size()) {
      std::optional<ScalarValue> value = evaluator.compute(node, at);
      if (!value || !std::holds_alternative<double>(*value))
        return false;
      row.push_back(std::get<double>(*value));
      return true;
    }
    return llvm::all_of(ranges[keys[number]], [&](int64_t index) {
      at[keys[number]] = index;
      return visit(number + 1);
    });
  };
  return visit(0) ? std::optional(row) : std::nullopt;
}

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

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

/// Returns the softmax of a row; nothing if it has none.
static std::optional<SmallVector<double>> softmax(ArrayRef<double> scores, bool isBaseTwo) {
  double largest = -INFINITY, sum = 0;
  for (double score : scores) {
    if (std::isnan(score))
      return std::nullopt;
    largest = std::max(largest, score);
  }
  if (std::isinf(largest))
    return std::nullopt;
  SmallVector<double> row;
  for (double score : scores) {
    row.push_back(isBaseTwo ? std::exp2(score - largest) : std::exp(score - largest));
    sum += row.back();
  }
  for (double &probability : row)
    probability /= sum;
  return row;
}

static bool areClose(ArrayRef<double> x, ArrayRef<double> y) {
  return llvm::all_of(llvm::zip_equal(x, y), [](auto pair) {
    auto [a, b] = pair;
    return std::fabs(a - b) <= 1e-12 + 1e-9 * std::fabs(b);
  });
}

namespace {
/// A pair of candidates, and how the rows so far agreed.
struct Candidate {
  const CodeNode *score, *result;
  bool isBaseTwo;
  bool isSafe = true;
  unsigned rows = 0; ///< in which several keys have a probability

  /// Compares one row; returns false if it refutes the candidate.
  bool accept(ArrayRef<double> scores, ArrayRef<double> results, const Trial &trial) {
    std::optional<SmallVector<double>> expected = softmax(scores, isBaseTwo);
    if (!expected)
      return true;
    bool agrees = areClose(results, *expected);
    if (trial.scale > kLargeScale) {
      isSafe &= agrees;
      return true;
    }
    rows += llvm::count_if(*expected, [](double p) { return p > 1e-6; }) > 1;
    return agrees;
  }
};
} // namespace

static constexpr unsigned kLeastRows = 6;

std::optional<SoftmaxForm> fp8::findSoftmax(const ElementCode &code, const CodeNode *probability,
                                            const CodeNode *raw, ArrayRef<unsigned> keys,
                                            std::string &reason) {
  Dependence dependence(raw);
  uint64_t keyDims = 0;
  for (unsigned key : keys)
    keyDims |= uint64_t(1) << key;
  SmallVector<Candidate> candidates;
  SmallVector<const CodeNode *> scores = findScores(probability, dependence, keyDims);
  for (const CodeNode *result : findResults(probability, dependence))
    for (const CodeNode *score : scores)
      for (bool isBaseTwo : {false, true})
        if (dependence.get(result).onReduction)
          candidates.push_back({score, result, isBaseTwo});
  bool isEvaluated = false;
  uint64_t seed = 1;
  for (const Trial &trial : kTrials)
    for (unsigned i = 0; i < kRepetitions && !candidates.empty(); ++i) {
      Row row(code, raw, keys, trial, seed++);
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
        std::optional<SmallVector<double>> score = compute(candidate.score),
                                           result = compute(candidate.result);
        return !score || !result || !candidate.accept(*score, *result, trial);
      });
    }
  for (const Candidate &candidate : candidates)
    if (candidate.rows >= kLeastRows)
      return SoftmaxForm{candidate.score, candidate.result, candidate.isBaseTwo, candidate.isSafe};
  reason = !isEvaluated         ? "the code between its matmuls cannot be evaluated"
           : candidates.empty() ? "the code between its matmuls is no softmax of the scores along the keys"
                                : "its masks leave no row of numbers to evaluate";
  return std::nullopt;
}
