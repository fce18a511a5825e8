// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Puts the matmuls of attention into one iteration space: the dimensions of the probabilities, then depth,
// then width. Two matmuls read the same tensor if it is the same value; what does not fit has a reason.

#include "AttentionParts.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;
using Kind = CodeNode::Kind;

namespace {
/// The dimensions of one matmul in the iteration space of attention.
class Fit {
public:
  explicit Fit(MatmulOp matmul)
      : maps(matmul.getIndexingMapsArray()), ranges(matmul.getStaticLoopRanges()),
        context(matmul.getContext()), dims(maps[0].getNumDims()) {}

  /// Says where operand `number` (2: the result) lies. Returns false if that contradicts what is known.
  bool assign(unsigned number, ArrayRef<AffineExpr> places) {
    for (auto [expr, place] : llvm::zip_equal(maps[number].getResults(), places)) {
      AffineExpr &dim = dims[cast<AffineDimExpr>(expr).getPosition()];
      if (isa<AffineConstantExpr>(place))
        continue; // of size 1
      if (dim && dim != place)
        return false;
      dim = place;
    }
    return true;
  }
  /// Gives the dimensions that are not known new ones, from `next` on.
  void addDims(unsigned &next) {
    for (AffineExpr &dim : dims)
      if (!dim)
        dim = getAffineDimExpr(next++, context);
  }
  bool isComplete() const {
    return llvm::all_of(dims, [](AffineExpr dim) { return static_cast<bool>(dim); });
  }
  AffineMap getMap(unsigned number, unsigned numDims) const {
    return AffineMap::get(
        numDims, 0,
        llvm::map_to_vector(maps[number].getResults(),
                            [&](AffineExpr expr) { return dims[cast<AffineDimExpr>(expr).getPosition()]; }),
        context);
  }
  /// Returns whether the matmul sums in the order of the iteration space. Dimensions of size 1 have no order.
  bool sumsInOrder() const {
    SmallVector<unsigned> order;
    for (unsigned dim : inferContractionDims(maps)->k)
      if (ranges[dim] != 1)
        order.push_back(cast<AffineDimExpr>(dims[dim]).getPosition());
    return llvm::is_sorted(order);
  }

private:
  SmallVector<AffineMap> maps;
  SmallVector<int64_t> ranges;
  MLIRContext *context;
  SmallVector<AffineExpr> dims;
};
} // namespace

static bool hasDimOf(AffineMap map, ArrayRef<unsigned> dims) {
  return llvm::any_of(dims, [&](unsigned dim) { return map.isFunctionOfDim(dim); });
}

/// Replaces places of dimensions of size 1 by such dimensions of the probabilities, in order. Returns nothing
/// if there are more of them.
static std::optional<Places> nameUnits(ArrayRef<AffineExpr> places, const AttentionSite &site) {
  auto shape = cast<RankedTensorType>(site.probabilities.getType()).getShape();
  Places named(places);
  unsigned next = 0;
  for (AffineExpr &place : named) {
    if (!isa<AffineConstantExpr>(place))
      continue;
    while (next < shape.size() && (shape[next] != 1 || llvm::is_contained(site.keys, next)))
      ++next;
    if (next == shape.size())
      return std::nullopt;
    place = getAffineDimExpr(next++, place.getContext());
  }
  return named;
}

static SmallVector<AffineExpr> resultsOf(AffineMap map) { return llvm::to_vector(map.getResults()); }

AttentionParts::AttentionParts(const AttentionSite &site, const AttentionReaders &readers, bool isOrdered)
    : isOrdered(isOrdered) {
  reason = fitForward(site);
  if (reason.empty() && !readers.matmuls.empty())
    reason = fitBackward(site, readers);
  if (reason.empty())
    reason = fitFurther(site, readers);
}

/// Returns whether a matmul is nothing but one: it adds to no tensor, and has no epilogue.
static bool isAlone(MatmulOp matmul) {
  return matmul.isPlain() && !matmul.getAccumulate() && !matmul.getResume();
}

std::string AttentionParts::fitForward(const AttentionSite &site) {
  auto scores = cast<MatmulOp>(site.scores), matmul = cast<MatmulOp>(site.output);
  if (!isAlone(scores) || !isAlone(matmul))
    return "its matmuls add to another tensor, or have an epilogue";
  auto shape = cast<RankedTensorType>(site.probabilities.getType()).getShape();
  MLIRContext *context = site.output->getContext();
  unsigned next = shape.size();
  std::optional<Places> places = nameUnits(site.raw->at, site);
  Fit first(scores), second(matmul);
  Places own;
  for (unsigned dim = 0; dim < shape.size(); ++dim)
    own.push_back(getAffineDimExpr(dim, context));
  unsigned operand = matmul.getRhs() == site.probabilities;
  if (!places || !first.assign(2, *places) || !second.assign(operand, own))
    return "its matmuls have other dimensions than its rows";
  first.addDims(next);
  second.addDims(next);
  numDims = next;
  if (isOrdered && !second.sumsInOrder())
    return "its second matmul sums over keys in another order than its rows have them";
  bool keysInRhs = hasDimOf(first.getMap(1, next), site.keys);
  if (keysInRhs == hasDimOf(first.getMap(0, next), site.keys))
    return "its keys are in both operands of its first matmul";
  key = {scores->getOperand(keysInRhs), first.getMap(keysInRhs, next)};
  query = {scores->getOperand(!keysInRhs), first.getMap(!keysInRhs, next)};
  value = {matmul->getOperand(!operand), second.getMap(!operand, next)};
  output = {matmul.getResult(0), second.getMap(2, next)};
  std::optional<AttentionDims> inferred = inferAttentionDims(query.map, key.map, value.map, output.map);
  if (!inferred || ArrayRef(inferred->keys) != ArrayRef(site.keys) ||
      inferred->outer.size() + inferred->keys.size() != shape.size())
    return "its matmuls have other dimensions than queries, keys, depth and width";
  dims = *inferred;
  return "";
}

/// Fits the matmul that makes the gradients of the probabilities.
std::string AttentionParts::fitProbabilityGrad(const AttentionSite &site) {
  Fit fit(probabilityGrad);
  unsigned operand = probabilityGrad.getRhs() == value.tensor;
  std::optional<Places> places = nameUnits(probabilityGradNode->at, site);
  if (probabilityGrad->getOperand(operand) != value.tensor)
    return "its backward pass multiplies by other values than its forward pass";
  if (!isAlone(probabilityGrad) || !places || !fit.assign(2, *places) ||
      !fit.assign(operand, resultsOf(value.map)) || !fit.isComplete() || (isOrdered && !fit.sumsInOrder()))
    return "its backward pass has other dimensions than its forward pass";
  outputGrad = {probabilityGrad->getOperand(!operand), fit.getMap(!operand, numDims)};
  if (inferAttentionDims(query.map, key.map, value.map, outputGrad.map) == std::nullopt)
    return "its backward pass has other dimensions than its forward pass";
  return "";
}

/// Returns the matmul elements that `node` reads, besides `raw`.
static void findMatmuls(const CodeNode *node, const CodeNode *raw,
                        llvm::SmallSetVector<const CodeNode *, 2> &found,
                        llvm::SmallPtrSetImpl<const CodeNode *> &seen) {
  if (!seen.insert(node).second)
    return;
  if (node->kind == Kind::element && node->value != raw->value) {
    auto matmul = node->value.getDefiningOp<MatmulOp>();
    if (matmul &&
        (matmul.getLhsKind() == TensorKind::grad_output || matmul.getRhsKind() == TensorKind::grad_output))
      found.insert(node);
  }
  for (const CodeNode *operand : node->operands)
    findMatmuls(operand, raw, found, seen);
}

/// Takes rows that the program needs elsewhere, if they are of the backward pass and not what its matmuls
/// make.
std::string AttentionParts::fitFurther(const AttentionSite &site, const AttentionReaders &readers) {
  for (const FurtherRows &further : readers.further) {
    const CodeNode *row = site.code->get(further.rows, further.places);
    llvm::SmallSetVector<const CodeNode *, 2> matmuls;
    llvm::SmallPtrSet<const CodeNode *, 32> seen;
    findMatmuls(row, site.raw, matmuls, seen);
    bool isKnownSize = cast<RankedTensorType>(further.result.getType()).hasStaticShape() ||
                       isa<DestinationStyleOpInterface>(further.result.getDefiningOp());
    if (hasGradients && isKnownSize && matmuls.contains(probabilityGradNode)) {
      furtherRows.push_back(row);
      this->further.push_back(
          {further.result, AffineMap::get(numDims, 0, further.resultPlaces, further.result.getContext())});
      continue;
    }
    if (further.reader->hasTrait<OpTrait::IsTerminator>())
      return "its scores or probabilities are results of the program";
    return ("its scores or probabilities are also read by '" + further.reader->getName().getStringRef() + "'")
        .str();
  }
  return "";
}

std::string AttentionParts::fitBackward(const AttentionSite &site, const AttentionReaders &readers) {
  if (readers.matmuls.size() != 3)
    return "its probabilities or their gradients are read by other matmuls than those of its backward pass";
  SmallVector<const CodeNode *> rows;
  for (const RowReader &reader : readers.matmuls)
    rows.push_back(site.code->get(reader.matmul->getOperand(reader.operand), reader.places));
  // Gradients of queries and keys read a row that the gradients of the probabilities are in.
  const RowReader *ofValue = nullptr, *ofQuery = nullptr, *ofKey = nullptr;
  for (auto [reader, row] : llvm::zip_equal(readers.matmuls, rows)) {
    llvm::SmallSetVector<const CodeNode *, 2> matmuls;
    llvm::SmallPtrSet<const CodeNode *, 32> seen;
    findMatmuls(row, site.raw, matmuls, seen);
    Value other = reader.matmul->getOperand(!reader.operand);
    if (matmuls.size() > 1)
      return "its backward pass reads several matmuls";
    if (matmuls.empty()) {
      ofValue = &reader;
      valueRow = row;
    } else if (other == key.tensor && !ofQuery) {
      ofQuery = &reader;
    } else if (other == query.tensor && !ofKey) {
      ofKey = &reader;
    } else {
      return "its backward pass multiplies by other queries or keys than its forward pass";
    }
    if (!matmuls.empty()) {
      if ((scoreGradRow && scoreGradRow != row) ||
          (probabilityGradNode && probabilityGradNode != matmuls.front()))
        return "the gradients of its queries and keys are made of different rows";
      scoreGradRow = row;
      probabilityGradNode = matmuls.front();
    }
  }
  if (!ofValue || !ofQuery || !ofKey)
    return "its backward pass lacks the gradient of its queries, keys or values";
  probabilityGrad = probabilityGradNode->value.getDefiningOp<MatmulOp>();
  if (std::string misfit = fitProbabilityGrad(site); !misfit.empty())
    return misfit;
  auto fit = [&](const RowReader &reader, const Operand &other, GradientMatmul &gradient) -> std::string {
    MatmulOp matmul = reader.matmul;
    Fit dims(matmul);
    if (matmul->getOperand(!reader.operand) != other.tensor)
      return "its backward pass reads several gradients of its output";
    std::optional<Places> places = nameUnits(reader.places, site);
    if (!isAlone(matmul) || !places || !dims.assign(reader.operand, *places) ||
        !dims.assign(!reader.operand, resultsOf(other.map)) || !dims.isComplete())
      return "its backward pass has other dimensions than its forward pass";
    if (isOrdered && !dims.sumsInOrder())
      return "its backward pass sums in another order than that of its rows";
    gradient = {matmul, dims.getMap(2, numDims)};
    return "";
  };
  for (std::string misfit :
       {fit(*ofValue, outputGrad, valueGrad), fit(*ofQuery, key, queryGrad), fit(*ofKey, query, keyGrad)})
    if (!misfit.empty())
      return misfit;
  hasGradients = true;
  return "";
}
