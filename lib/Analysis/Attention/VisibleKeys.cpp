// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The proof is by ranges of values: no pattern of masks is known here. A smaller count claims more, so that
// the least one that can be proved is found by halving.

#include "fp8/Analysis/Attention/VisibleKeys.h"
#include "fp8/Analysis/Attention/RangeEvaluator.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace fp8;
using Kind = CodeNode::Kind;

namespace {
class Proof {
public:
  Proof(const ElementCode &code, ArrayRef<const CodeNode *> raw, ArrayRef<const CodeNode *> outputs,
        unsigned row, unsigned key, bool boundsInputs);

  /// Returns whether a row i sees no key from i + `count` on.
  bool holds(int64_t count);
  ArrayRef<Value> getBounded() const { return evaluator.getBounded(); }

private:
  void visit(const CodeNode *node);
  bool isIdle(const CodeNode *reduction, const ScoreArea &hidden);

  llvm::SetVector<const CodeNode *> nodes;
  SmallVector<const CodeNode *> rows; ///< outputs that are one
  unsigned key;
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

Proof::Proof(const ElementCode &code, ArrayRef<const CodeNode *> raw, ArrayRef<const CodeNode *> outputs,
             unsigned row, unsigned key, bool boundsInputs)
    : key(key), evaluator(code, row, key, bound(raw), boundsInputs) {
  for (const CodeNode *output : outputs) {
    visit(output);
    if (output->isFunctionOf(key))
      rows.push_back(output);
  }
  // Every row has key 0, and its own key where there are as many keys as rows.
  ScoreArea first = evaluator.everywhere(), own = first;
  first.key = {0, 0};
  evaluator.addSeen(first);
  own.difference = {0, 0};
  int64_t numRows = code.getSizes()[row], numKeys = code.getSizes()[key];
  if (!ShapedType::isDynamic(numRows) && !ShapedType::isDynamic(numKeys) && numRows <= numKeys)
    evaluator.addSeen(own);
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
  if (reduction->type.isInteger(1) && isa<arith::AndIOp, arith::OrIOp>(combiner))
    return range.isExactly(isa<arith::AndIOp>(combiner));
  return false;
}

bool Proof::holds(int64_t count) {
  ScoreArea hidden = evaluator.everywhere();
  hidden.difference.low = static_cast<double>(count);
  hidden.key.low = static_cast<double>(count);
  return !rows.empty() && llvm::all_of(rows, [&](const CodeNode *output) {
    return evaluator.compute(output, hidden).isExactly(0);
  }) && llvm::all_of(nodes, [&](const CodeNode *node) {
    return node->kind != Kind::reduction || !llvm::is_contained(node->bound, key) || isIdle(node, hidden);
  });
}

/// Returns the least count that can be proved for `row`; nothing if it sees all keys.
static std::optional<int64_t> findLeastCount(Proof &proof, int64_t numKeys) {
  // A mask over an unknown number of keys can hide those behind the row's own.
  int64_t visible = ShapedType::isDynamic(numKeys) ? 1 : numKeys - 1, tooFew = 0;
  if (visible < 1 || !proof.holds(visible))
    return std::nullopt;
  while (visible - tooFew > 1) {
    int64_t count = (tooFew + visible) / 2;
    (proof.holds(count) ? visible : tooFew) = count;
  }
  return visible;
}

static std::optional<VisibleKeys> findBest(const ElementCode &code, ArrayRef<const CodeNode *> raw,
                                           ArrayRef<const CodeNode *> outputs, ArrayRef<unsigned> rows,
                                           unsigned key, bool boundsInputs) {
  std::optional<VisibleKeys> best;
  int64_t least = 0; // twice the mean of visible keys
  for (unsigned row : rows) {
    int64_t size = code.getSizes()[row];
    Proof proof(code, raw, outputs, row, key, boundsInputs);
    std::optional<int64_t> count = findLeastCount(proof, code.getSizes()[key]);
    if (size == 1 || !count)
      continue;
    int64_t seen = 2 * *count + (ShapedType::isDynamic(size) ? 0 : size);
    if (!best || seen < least) {
      best = VisibleKeys{row, *count, llvm::to_vector(proof.getBounded())};
      least = seen;
    }
  }
  return best;
}

std::optional<VisibleKeys> fp8::findVisibleKeys(const ElementCode &code, ArrayRef<const CodeNode *> raw,
                                                ArrayRef<const CodeNode *> outputs, ArrayRef<unsigned> rows,
                                                unsigned key) {
  std::optional<VisibleKeys> found = findBest(code, raw, outputs, rows, key, /*boundsInputs=*/false);
  return found ? found : findBest(code, raw, outputs, rows, key, /*boundsInputs=*/true);
}
