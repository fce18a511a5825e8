// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The proof is by ranges of values: no pattern of masks is known here. A range of fewer keys claims more, so
// that the least one that can be proved is found by halving, first its end, then its beginning.

#include "fp8/Analysis/Attention/VisibleKeys.h"
#include "fp8/Analysis/Attention/RangeEvaluator.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace fp8;
using Kind = CodeNode::Kind;

/// Truths that are tried, at most.
static constexpr size_t kMostTruths = 6;

namespace {
/// The code of a proof, and the indices that it is about.
struct Problem {
  const ElementCode &code;
  ArrayRef<const CodeNode *> raw, outputs;
  unsigned row, key;
  bool boundsInputs;

  int64_t countRows() const { return code.getSizes()[row]; }
  int64_t countKeys() const { return code.getSizes()[key]; }
};

class Proof {
public:
  Proof(const Problem &problem);

  /// States that all rows i have key i + `distance`, which bounds their maxima from below.
  void addDiagonal(int64_t distance);
  /// States that all rows have the first key.
  void addFirst();
  void addTruth(const KeyTruth &truth) { evaluator.addTruth(truth.node, truth.value, truth.isOfFirst); }
  /// Returns truths that may be so for the first key, of nodes that are not known and no part of others.
  SmallVector<KeyTruth> findTruths();
  /// Returns whether a row i sees no key from i + `end` on. All stated keys are before.
  bool hidesFrom(int64_t end);
  /// Returns whether a row i sees no key before i + `first`. All stated keys are there or behind.
  bool hidesBefore(int64_t first);
  ArrayRef<Value> getBounded() const { return evaluator.getBounded(); }

private:
  void visit(const CodeNode *node);
  bool isIdle(const CodeNode *reduction, const ScoreArea &hidden);
  bool hides(const ScoreArea &hidden);

  Problem problem;
  llvm::SetVector<const CodeNode *> nodes;
  SmallVector<const CodeNode *> rows; ///< outputs that are one
  RangeEvaluator evaluator;
};
} // namespace

static SmallVector<std::pair<const CodeNode *, NumberRange>> bound(ArrayRef<const CodeNode *> raw) {
  SmallVector<std::pair<const CodeNode *, NumberRange>> bounds;
  for (auto [number, node] : llvm::enumerate(raw)) {
    double most = limitToType(number == 0 ? kMostScore : kMostGradient, node->type);
    bounds.push_back({node, {-most, most}});
  }
  return bounds;
}

Proof::Proof(const Problem &problem)
    : problem(problem),
      evaluator(problem.code, problem.row, problem.key, bound(problem.raw), problem.boundsInputs) {
  for (const CodeNode *output : problem.outputs) {
    visit(output);
    if (output->isFunctionOf(problem.key))
      rows.push_back(output);
  }
}

void Proof::addDiagonal(int64_t distance) {
  ScoreArea area = evaluator.everywhere();
  area.difference = {static_cast<double>(distance), static_cast<double>(distance)};
  evaluator.addSeen(area);
}

void Proof::addFirst() {
  ScoreArea area = evaluator.everywhere();
  area.key = {0, 0};
  evaluator.addSeen(area);
}

SmallVector<KeyTruth> Proof::findTruths() {
  auto isCandidate = [&](const CodeNode *node) {
    return node->type.isInteger(1) && !(node->isFunctionOf(problem.key) && node->isFunctionOf(problem.row)) &&
           evaluator.isIndependent(node);
  };
  llvm::SetVector<const CodeNode *> candidates;
  for (const CodeNode *node : nodes)
    if (!isCandidate(node))
      for (const CodeNode *operand : node->operands)
        if (isCandidate(operand))
          candidates.insert(operand);
  ScoreArea ofFirst = evaluator.everywhere();
  ofFirst.key = {0, 0};
  SmallVector<KeyTruth> truths;
  for (const CodeNode *node : candidates) {
    NumberRange range = evaluator.compute(node, evaluator.everywhere());
    NumberRange first = evaluator.compute(node, ofFirst);
    for (bool value : {true, false})
      if (range.low != range.high && first.low <= value && value <= first.high)
        truths.push_back({node, value, /*isOfFirst=*/true});
  }
  return truths;
}

void Proof::visit(const CodeNode *node) {
  if (nodes.insert(node))
    for (const CodeNode *operand : node->operands)
      visit(operand);
}

/// Returns whether a reduction along keys has the same value without those of an area.
bool Proof::isIdle(const CodeNode *reduction, const ScoreArea &hidden) {
  const CodeNode *addend = RangeEvaluator::getAddend(reduction);
  Operation *combiner = reduction->operands[1]->getOperation();
  if (!addend || reduction->bound.size() != 1 || !combiner)
    return false;
  NumberRange range = evaluator.compute(addend, hidden);
  if (isa<arith::AddFOp>(combiner))
    return range.isExactly(0);
  if (isa<arith::MaximumFOp, arith::MaxNumFOp>(combiner))
    return !range.hasNaN && range.high <= evaluator.compute(reduction, evaluator.everywhere()).low;
  // The place of a maximum: the least of the places with this number, and of a larger one for each other key.
  NumberRange all = evaluator.compute(addend, evaluator.everywhere());
  if (isa<arith::MinSIOp, arith::MaxSIOp>(combiner))
    return !range.hasNaN && !all.hasNaN &&
           (isa<arith::MinSIOp>(combiner) ? range.low >= all.high : range.high <= all.low);
  // Either hidden keys add nothing, or a key that is seen decides.
  if (reduction->type.isInteger(1) && isa<arith::AndIOp, arith::OrIOp>(combiner))
    return range.isExactly(isa<arith::AndIOp>(combiner)) ||
           evaluator.compute(reduction, evaluator.everywhere()).isExactly(isa<arith::OrIOp>(combiner));
  return false;
}

bool Proof::hides(const ScoreArea &hidden) {
  return !rows.empty() && llvm::all_of(rows, [&](const CodeNode *output) {
    return evaluator.compute(output, hidden).isExactly(0);
  }) && llvm::all_of(nodes, [&](const CodeNode *node) {
    // Reductions without scores are inputs, which have seen all keys.
    return node->kind != Kind::reduction || !llvm::is_contained(node->bound, problem.key) ||
           evaluator.isIndependent(node) || isIdle(node, hidden);
  });
}

bool Proof::hidesFrom(int64_t end) {
  ScoreArea hidden = evaluator.everywhere();
  hidden.difference.low = static_cast<double>(end);
  hidden.key.low = static_cast<double>(end);
  return hides(hidden);
}

bool Proof::hidesBefore(int64_t first) {
  ScoreArea hidden = evaluator.everywhere();
  hidden.difference.high = static_cast<double>(first - 1);
  hidden.key.high = std::min(hidden.key.high, static_cast<double>(problem.countRows() - 1 + first - 1));
  return hides(hidden);
}

/// Returns the number between `holding` and `failing` next to `failing` for which `holds` is true; it is true
/// of all numbers between that one and `holding`.
static int64_t search(int64_t holding, int64_t failing, function_ref<bool(int64_t)> holds) {
  while (std::abs(holding - failing) > 1) {
    int64_t middle = holding + (failing - holding) / 2;
    (holds(middle) ? holding : failing) = middle;
  }
  return holding;
}

static bool isStatic(const Problem &problem) {
  return !ShapedType::isDynamic(problem.countRows()) && !ShapedType::isDynamic(problem.countKeys());
}

/// Finds the end of the keys that a row sees, where `truths` are so.
static std::optional<int64_t> findEnd(const Problem &problem, Proof &proof) {
  int64_t numKeys = problem.countKeys();
  // Every row has key 0, and its own key where there are as many keys as rows.
  proof.addFirst();
  if (isStatic(problem) && problem.countRows() <= numKeys)
    proof.addDiagonal(0);
  // A mask over an unknown number of keys can hide those behind the row's own.
  int64_t most = ShapedType::isDynamic(numKeys) ? 1 : numKeys - 1;
  if (most < 1 || !proof.hidesFrom(most))
    return std::nullopt;
  return search(most, 0, [&](int64_t end) { return proof.hidesFrom(end); });
}

/// Finds the first key that a row sees. With a key of each row that is neither before it nor behind `end`,
/// both may be left out together.
static std::optional<int64_t> findFirst(const Problem &problem, Proof &proof, std::optional<int64_t> end) {
  int64_t numRows = problem.countRows(), numKeys = problem.countKeys();
  if (!isStatic(problem) || numKeys < numRows)
    return std::nullopt;
  int64_t seen = std::min(numKeys - numRows, end.value_or(numKeys) - 1);
  proof.addDiagonal(seen);
  int64_t least = 2 - numRows; // which hides the first key from the last row
  if (least > seen || !proof.hidesBefore(least))
    return std::nullopt;
  return search(least, seen + 1, [&](int64_t first) { return proof.hidesBefore(first); });
}

/// Finds the keys that a row sees where `truths` are so; nothing if these may be all.
static std::optional<VisibleKeys> findVisible(const Problem &problem, ArrayRef<KeyTruth> truths) {
  VisibleKeys visible{problem.row, std::nullopt, std::nullopt, {}, llvm::to_vector<1>(truths)};
  for (bool isEnd : {true, false}) {
    Proof proof(problem);
    for (const KeyTruth &truth : truths)
      proof.addTruth(truth);
    std::optional<int64_t> &limit = isEnd ? visible.end : visible.first;
    limit = isEnd ? findEnd(problem, proof) : findFirst(problem, proof, visible.end);
    for (Value tensor : limit ? proof.getBounded() : ArrayRef<Value>())
      if (!llvm::is_contained(visible.bounded, tensor))
        visible.bounded.push_back(tensor);
  }
  return visible.first || visible.end ? std::optional(visible) : std::nullopt;
}

/// Finds the keys that a row sees, where nothing is known or, by trial, as many truths as are needed: of the
/// first key only, which suffices under a causal mask with padding on the right, or of all.
static std::optional<VisibleKeys> findVisible(const Problem &problem) {
  if (std::optional<VisibleKeys> visible = findVisible(problem, {}))
    return visible;
  SmallVector<KeyTruth> truths = Proof(problem).findTruths();
  if (truths.size() > kMostTruths)
    return std::nullopt;
  for (bool isOfFirst : {true, false}) {
    for (KeyTruth &truth : truths) {
      truth.isOfFirst = isOfFirst;
      if (auto visible = findVisible(problem, truth))
        return visible;
    }
    for (auto [number, truth] : llvm::enumerate(truths))
      for (const KeyTruth &other : ArrayRef(truths).drop_front(number + 1))
        if (truth.node != other.node)
          if (auto visible = findVisible(problem, {truth, other}))
            return visible;
  }
  return std::nullopt;
}

double VisibleKeys::countScores(int64_t rows, int64_t keys) const {
  // Row i has the keys before i + distance: none up to a row, all from another one on.
  auto countBefore = [&](int64_t distance) {
    int64_t some = std::clamp<int64_t>(-distance, 0, rows);
    int64_t all = std::clamp<int64_t>(keys - distance, some, rows);
    auto sumBelow = [](int64_t n) { return static_cast<double>(n) * static_cast<double>(n - 1) / 2; };
    return static_cast<double>(all - some) * static_cast<double>(distance) + sumBelow(all) - sumBelow(some) +
           static_cast<double>(rows - all) * static_cast<double>(keys);
  };
  return countBefore(end.value_or(keys)) - (first ? countBefore(*first) : 0);
}

static std::optional<VisibleKeys> findBest(Problem problem, ArrayRef<unsigned> rows) {
  constexpr int64_t assumed = 2048; // of sizes that are not known
  std::optional<VisibleKeys> best;
  double least = 0;
  auto sizeOf = [](int64_t size) { return ShapedType::isDynamic(size) ? assumed : size; };
  for (unsigned row : rows) {
    problem.row = row;
    if (problem.countRows() == 1)
      continue;
    std::optional<VisibleKeys> visible = findVisible(problem);
    if (!visible)
      continue;
    double share = visible->countScores(sizeOf(problem.countRows()), sizeOf(problem.countKeys())) /
                   static_cast<double>(sizeOf(problem.countRows()));
    if (!best || share < least) {
      best = visible;
      least = share;
    }
  }
  return best;
}

std::optional<VisibleKeys> fp8::findVisibleKeys(const ElementCode &code, ArrayRef<const CodeNode *> raw,
                                                ArrayRef<const CodeNode *> outputs, ArrayRef<unsigned> rows,
                                                unsigned key) {
  Problem problem{code, raw, outputs, /*row=*/0, key, /*boundsInputs=*/false};
  std::optional<VisibleKeys> found = findBest(problem, rows);
  problem.boundsInputs = true;
  return found ? found : findBest(problem, rows);
}
