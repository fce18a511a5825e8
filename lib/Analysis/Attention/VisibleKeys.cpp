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
  if (reduction->type.isInteger(1) && isa<arith::AndIOp, arith::OrIOp>(combiner))
    return range.isExactly(isa<arith::AndIOp>(combiner));
  return false;
}

bool Proof::hides(const ScoreArea &hidden) {
  return !rows.empty() && llvm::all_of(rows, [&](const CodeNode *output) {
    return evaluator.compute(output, hidden).isExactly(0);
  }) && llvm::all_of(nodes, [&](const CodeNode *node) {
    return node->kind != Kind::reduction || !llvm::is_contained(node->bound, problem.key) ||
           isIdle(node, hidden);
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

static void addBounded(const Proof &proof, VisibleKeys &visible) {
  for (Value tensor : proof.getBounded())
    if (!llvm::is_contained(visible.bounded, tensor))
      visible.bounded.push_back(tensor);
}

/// Finds the end of the keys that a row sees.
static void findEnd(const Problem &problem, VisibleKeys &visible) {
  Proof proof(problem);
  int64_t numRows = problem.countRows(), numKeys = problem.countKeys();
  // Every row has key 0, and its own key where there are as many keys as rows.
  proof.addFirst();
  bool isKnown = !ShapedType::isDynamic(numRows) && !ShapedType::isDynamic(numKeys);
  if (isKnown && numRows <= numKeys)
    proof.addDiagonal(0);
  // A mask over an unknown number of keys can hide those behind the row's own.
  int64_t most = ShapedType::isDynamic(numKeys) ? 1 : numKeys - 1;
  if (most < 1 || !proof.hidesFrom(most))
    return;
  visible.end = search(most, 0, [&](int64_t end) { return proof.hidesFrom(end); });
  addBounded(proof, visible);
}

/// Finds the first key that a row sees. With a key of each row that is neither before it nor behind the end,
/// both may be left out together.
static void findFirst(const Problem &problem, VisibleKeys &visible) {
  int64_t numRows = problem.countRows(), numKeys = problem.countKeys();
  if (ShapedType::isDynamic(numRows) || ShapedType::isDynamic(numKeys) || numKeys < numRows)
    return;
  int64_t seen = std::min(numKeys - numRows, visible.end.value_or(numKeys) - 1);
  Proof proof(problem);
  proof.addDiagonal(seen);
  int64_t least = 2 - numRows; // which hides the first key from the last row
  if (least > seen || !proof.hidesBefore(least))
    return;
  visible.first = search(least, seen + 1, [&](int64_t first) { return proof.hidesBefore(first); });
  addBounded(proof, visible);
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
    VisibleKeys visible{row, std::nullopt, std::nullopt, {}};
    findEnd(problem, visible);
    findFirst(problem, visible);
    double share = visible.countScores(sizeOf(problem.countRows()), sizeOf(problem.countKeys())) /
                   static_cast<double>(sizeOf(problem.countRows()));
    if ((visible.first || visible.end) && (!best || share < least)) {
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
