// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Concatenations that end in sums or maxima along their dimension are never put together: what is computed
// from them is computed on each part. An attention sink in a softmax (one more score in each row, whose
// probability is cut off) becomes a number beside the rows of scores.
//
// A concatenation goes whole or not at all: everything computed from it must be code on elements, a reduction
// along its dimension, or a slice of one part. Reductions go on from one part to the next, so that every
// result has the bits it had before.

#include "Concatenation.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <numeric>

namespace fp8 {
#define GEN_PASS_DEF_DIVIDECONCATENATIONS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

/// Returns the dimension of a tensor that a loop runs along; nothing if there is none.
static std::optional<unsigned> findDim(AffineMap map, unsigned loop) {
  return map.getResultPosition(getAffineDimExpr(loop, map.getContext()));
}

namespace {
/// The tensors that depend on a concatenation, and on others that are divided at the same places.
class Group {
public:
  explicit Group(ArrayRef<int64_t> sizes) : sizes(sizes) {}

  /// Adds `value`, which is divided along `dim`, and all that depends on it. Returns false if that cannot be
  /// divided.
  bool add(Value value, unsigned dim);
  bool reduces() const { return !reductions.empty(); }
  /// Computes everything on each part.
  void divide(RewriterBase &rewriter);

private:
  bool addReader(OpOperand &use, unsigned dim);
  bool addOperation(linalg::LinalgOp op, unsigned loop);
  bool addSources(Value value, unsigned dim);
  /// Returns the part that a slice is taken from.
  std::optional<unsigned> findPart(tensor::ExtractSliceOp slice, unsigned dim) const;

  int64_t getStart(unsigned part) const {
    return std::accumulate(sizes.begin(), sizes.begin() + part, int64_t(0));
  }
  Value getPart(RewriterBase &rewriter, Value value, unsigned dim, unsigned part);
  Value slicePart(RewriterBase &rewriter, Value value, unsigned dim, unsigned part);
  Operation *clonePart(RewriterBase &rewriter, linalg::LinalgOp op, unsigned loop, unsigned part,
                       ValueRange inits);
  SmallVector<Value> addUnit(RewriterBase &rewriter, linalg::LinalgOp op, unsigned loop, unsigned part,
                             ValueRange inits);
  void divideReduction(RewriterBase &rewriter, linalg::LinalgOp op, unsigned loop);
  void divideSlice(RewriterBase &rewriter, tensor::ExtractSliceOp slice, unsigned dim);

  SmallVector<int64_t> sizes;
  llvm::MapVector<Value, unsigned> tensors;               ///< with the dimension that is divided
  llvm::MapVector<Operation *, unsigned> operations;      ///< on elements, with the loop
  llvm::MapVector<Operation *, unsigned> reductions;      ///< with the loop
  llvm::MapVector<Operation *, unsigned> slices;          ///< with the dimension
  llvm::DenseSet<std::pair<Value, unsigned>> seenSources; ///< whose concatenations have been added
  llvm::DenseMap<std::pair<Value, unsigned>, Value> parts;
  llvm::SetVector<Operation *> copied; ///< operands first
};
} // namespace

//===----------------------------------------------------------------------===//
// Members
//===----------------------------------------------------------------------===//

bool Group::add(Value value, unsigned dim) {
  auto [known, isNew] = tensors.try_emplace(value, dim);
  if (!isNew)
    return known->second == dim;
  return llvm::all_of(value.getUses(), [&](OpOperand &use) { return addReader(use, dim); });
}

bool Group::addReader(OpOperand &use, unsigned dim) {
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(use.getOwner())) {
    slices.try_emplace(slice, dim);
    return findPart(slice, dim).has_value();
  }
  auto op = dyn_cast<linalg::LinalgOp>(use.getOwner());
  if (!op || !op.hasPureTensorSemantics() || !op.payloadUsesValueFromOperand(&use))
    return false;
  auto loop = dyn_cast<AffineDimExpr>(op.getMatchingIndexingMap(&use).getResult(dim));
  return loop && addOperation(op, loop.getPosition());
}

std::optional<unsigned> Group::findPart(tensor::ExtractSliceOp slice, unsigned dim) const {
  if (!slice.hasUnitStride() || slice.getType().getRank() != slice.getSourceType().getRank())
    return std::nullopt;
  std::optional<int64_t> offset = getConstantIntValue(slice.getMixedOffsets()[dim]),
                         size = getConstantIntValue(slice.getMixedSizes()[dim]);
  if (!offset || !size)
    return std::nullopt;
  int64_t start = 0;
  for (auto [part, length] : llvm::enumerate(sizes)) {
    if (*offset >= start && *offset + *size <= start + length)
      return part;
    start += length;
  }
  return std::nullopt;
}

bool Group::addOperation(linalg::LinalgOp op, unsigned loop) {
  bool isReduction = op.getIteratorTypesArray()[loop] == utils::IteratorType::reduction;
  auto &known = isReduction ? reductions : operations;
  auto [entry, isNew] = known.try_emplace(op, loop);
  if (!isNew)
    return entry->second == loop;
  bool isOnElements = llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) {
    return map.isProjectedPermutation(/*allowZeroInResults=*/true);
  });
  if (!isOnElements)
    return false;
  if (isReduction)
    for (auto [other, kind, size] : llvm::enumerate(op.getIteratorTypesArray(), op.getStaticLoopRanges()))
      if (other != loop && kind == utils::IteratorType::reduction && size != 1)
        return false; // sums over both in an order of their own
  for (OpOperand &operand : op->getOpOperands())
    if (std::optional<unsigned> dim = findDim(op.getMatchingIndexingMap(&operand), loop);
        dim && op.payloadUsesValueFromOperand(&operand) && !addSources(operand.get(), *dim))
      return false;
  if (isReduction)
    return true;
  return llvm::all_of(op->getResults(), [&](OpResult result) {
    std::optional<unsigned> dim = findDim(op.getIndexingMapMatchingResult(result), loop);
    return dim && add(result, *dim);
  });
}

/// Adds the concatenations that `value` is computed from. Returns false if one of them cannot be divided at
/// the same places.
bool Group::addSources(Value value, unsigned dim) {
  if (auto *known = tensors.find(value); known != tensors.end())
    return known->second == dim;
  if (!seenSources.insert({value, dim}).second)
    return true;
  if (std::optional<Concatenation> concatenation = matchConcatenation(value))
    return concatenation->dim == dim && concatenation->getSizes() == sizes && add(value, dim);
  auto op = value.getDefiningOp<linalg::LinalgOp>();
  if (!op || !op.hasPureTensorSemantics())
    return true;
  auto loop = dyn_cast<AffineDimExpr>(op.getIndexingMapMatchingResult(cast<OpResult>(value)).getResult(dim));
  return !loop || llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    std::optional<unsigned> of = findDim(op.getMatchingIndexingMap(&operand), loop.getPosition());
    return !of || addSources(operand.get(), *of);
  });
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

/// Returns `type` with another size along `dim`.
static RankedTensorType resize(Value value, unsigned dim, int64_t size) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  return type.clone(shape);
}

/// Returns a part of a tensor that is not computed on parts.
Value Group::slicePart(RewriterBase &rewriter, Value value, unsigned dim, unsigned part) {
  rewriter.setInsertionPointAfterValue(value);
  Location loc = value.getLoc();
  SmallVector<OpFoldResult> all = tensor::getMixedSizes(rewriter, loc, value),
                            offsets(all.size(), rewriter.getIndexAttr(0)),
                            strides(all.size(), rewriter.getIndexAttr(1));
  if (value.getDefiningOp<tensor::EmptyOp>()) {
    all[dim] = rewriter.getIndexAttr(sizes[part]);
    return tensor::EmptyOp::create(rewriter, loc, all, getElementTypeOrSelf(value));
  }
  DenseElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)) && elements.isSplat())
    return arith::ConstantOp::create(rewriter, loc, elements.resizeSplat(resize(value, dim, sizes[part])));
  offsets[dim] = rewriter.getIndexAttr(getStart(part));
  all[dim] = rewriter.getIndexAttr(sizes[part]);
  return tensor::ExtractSliceOp::create(rewriter, loc, value, offsets, all, strides);
}

Value Group::getPart(RewriterBase &rewriter, Value value, unsigned dim, unsigned part) {
  std::pair<Value, unsigned> key{value, part};
  if (Value known = parts.lookup(key))
    return known;
  std::optional<Concatenation> concatenation = matchConcatenation(value);
  if (concatenation && tensors.contains(value)) {
    Value own = concatenation->parts[part].value;
    auto type = dyn_cast<RankedTensorType>(own.getType());
    if (type && type.getDimSize(dim) != sizes[part]) { // a tensor that another one is inserted into
      own = getPart(rewriter, own, dim, part);
    } else if (!type) { // padding
      rewriter.setInsertionPointAfterValue(value);
      if (own.getParentBlock() != value.getParentBlock() && matchPattern(own, m_Constant()))
        own = rewriter.clone(*own.getDefiningOp())->getResult(0); // a constant within the pad
      Value empty = tensor::EmptyOp::create(rewriter, value.getLoc(),
                                            resize(value, dim, sizes[part]).getShape(), own.getType());
      own = linalg::FillOp::create(rewriter, value.getLoc(), own, empty).getResult(0);
    }
    return parts[key] = own;
  }
  auto op = value.getDefiningOp<linalg::LinalgOp>();
  auto result = dyn_cast<OpResult>(value);
  auto loop = op && op.hasPureTensorSemantics()
                  ? dyn_cast<AffineDimExpr>(op.getIndexingMapMatchingResult(result).getResult(dim))
                  : AffineDimExpr(nullptr);
  bool isMember = op && operations.contains(op);
  // Code on elements that depends on no concatenation is computed on parts, too.
  if (!loop || (!isMember && op.getNumReductionLoops() != 0))
    return parts[key] = slicePart(rewriter, value, dim, part);
  Operation *clone = clonePart(rewriter, op, loop.getPosition(), part, op.getDpsInits());
  for (auto [old, own] : llvm::zip_equal(op->getResults(), clone->getResults()))
    parts[{old, part}] = own;
  return parts[key];
}

/// Copies an operation that runs along `loop` for one part. `inits` of a reduction are those of the copy.
Operation *Group::clonePart(RewriterBase &rewriter, linalg::LinalgOp op, unsigned loop, unsigned part,
                            ValueRange inits) {
  SmallVector<Value> operands;
  SmallVector<Type> types;
  for (OpOperand *input : op.getDpsInputOperands()) {
    std::optional<unsigned> dim = findDim(op.getMatchingIndexingMap(input), loop);
    operands.push_back(dim ? getPart(rewriter, input->get(), *dim, part) : input->get());
  }
  for (auto [number, init] : llvm::enumerate(inits)) {
    OpOperand *operand = op.getDpsInitOperand(number);
    std::optional<unsigned> dim = findDim(op.getMatchingIndexingMap(operand), loop);
    Value own = init;
    if (dim && op.payloadUsesValueFromOperand(operand)) {
      own = getPart(rewriter, init, *dim, part);
    } else if (dim) { // memory
      rewriter.setInsertionPoint(op);
      SmallVector<OpFoldResult> all = tensor::getMixedSizes(rewriter, op.getLoc(), init);
      all[*dim] = rewriter.getIndexAttr(sizes[part]);
      own = tensor::EmptyOp::create(rewriter, op.getLoc(), all, getElementTypeOrSelf(init));
    }
    operands.push_back(own);
    types.push_back(own.getType());
  }
  copied.insert(op);
  rewriter.setInsertionPoint(op);
  Operation *clone = mlir::clone(rewriter, op, types, operands);
  if (int64_t start = getStart(part))
    clone->walk([&](linalg::IndexOp index) {
      if (index.getDim() != loop)
        return;
      rewriter.setInsertionPointAfter(index);
      Value by = arith::ConstantIndexOp::create(rewriter, index.getLoc(), start);
      auto sum = arith::AddIOp::create(rewriter, index.getLoc(), index, by);
      rewriter.replaceAllUsesExcept(index, sum, sum);
    });
  return clone;
}

/// Adds a part of one element to `inits`: code on elements, without the loop.
SmallVector<Value> Group::addUnit(RewriterBase &rewriter, linalg::LinalgOp op, unsigned loop, unsigned part,
                                  ValueRange inits) {
  // A dimension of a result that has no loop, of size 1, gets one.
  unsigned numLoops = op.getNumLoops() - 1, numUnits = 0;
  auto isConstant = llvm::IsaPred<AffineConstantExpr>;
  for (OpOperand &init : op.getDpsInitsMutable())
    numUnits = std::max<unsigned>(numUnits,
                                  llvm::count_if(op.getMatchingIndexingMap(&init).getResults(), isConstant));
  SmallVector<AffineExpr> loops;
  for (unsigned other = 0; other <= numLoops; ++other)
    loops.push_back(other == loop ? rewriter.getAffineConstantExpr(0)
                                  : rewriter.getAffineDimExpr(other - (other > loop)));
  SmallVector<Value> inputs, outs;
  SmallVector<AffineMap> maps;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    Value own = input->get();
    if (std::optional<unsigned> dim = findDim(map, loop)) {
      own = getPart(rewriter, own, *dim, part);
      auto type = cast<RankedTensorType>(own.getType());
      auto flat = RankedTensorType::Builder(type).dropDim(*dim);
      rewriter.setInsertionPoint(op);
      auto groups = getReassociationIndicesForReshape(type, RankedTensorType(flat));
      own = tensor::CollapseShapeOp::create(rewriter, op.getLoc(), RankedTensorType(flat), own, *groups);
      map = map.dropResult(*dim);
    }
    inputs.push_back(own);
    maps.push_back(map.replaceDimsAndSymbols(loops, {}, numLoops + numUnits, 0));
  }
  rewriter.setInsertionPoint(op);
  SmallVector<AffineMap> outMaps;
  for (auto [init, operand] : llvm::zip_equal(inits, op.getDpsInitsMutable())) {
    inputs.push_back(init);
    outs.push_back(tensor::EmptyOp::create(rewriter, op.getLoc(),
                                           tensor::getMixedSizes(rewriter, op.getLoc(), init),
                                           getElementTypeOrSelf(init)));
    SmallVector<AffineExpr> exprs;
    unsigned next = numLoops;
    for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults())
      exprs.push_back(isConstant(expr) ? rewriter.getAffineDimExpr(next++) : expr.replaceDims(loops));
    outMaps.push_back(AffineMap::get(numLoops + numUnits, 0, exprs, rewriter.getContext()));
  }
  maps.append(outMaps);
  maps.append(outMaps);
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  iterators.erase(iterators.begin() + loop);
  iterators.append(numUnits, utils::IteratorType::parallel);
  auto generic =
      linalg::GenericOp::create(rewriter, op.getLoc(), TypeRange(outs), inputs, outs, maps, iterators);
  rewriter.cloneRegionBefore(op->getRegion(0), generic.getRegion(), generic.getRegion().begin());
  for (Value out : outs)
    generic.getBody()->addArgument(getElementTypeOrSelf(out), op.getLoc());
  generic.walk([&](linalg::IndexOp index) {
    rewriter.setInsertionPoint(index);
    if (index.getDim() == loop)
      rewriter.replaceOpWithNewOp<arith::ConstantIndexOp>(index, getStart(part));
    else if (index.getDim() > loop)
      rewriter.replaceOpWithNewOp<linalg::IndexOp>(index, index.getDim() - 1);
  });
  return SmallVector<Value>(generic.getResults());
}

void Group::divideReduction(RewriterBase &rewriter, linalg::LinalgOp op, unsigned loop) {
  SmallVector<Value> sums(op.getDpsInits());
  for (unsigned part = 0; part < sizes.size(); ++part)
    sums = sizes[part] == 1 ? addUnit(rewriter, op, loop, part, sums)
                            : SmallVector<Value>(clonePart(rewriter, op, loop, part, sums)->getResults());
  copied.remove(op);
  rewriter.replaceOp(op, sums);
}

void Group::divideSlice(RewriterBase &rewriter, tensor::ExtractSliceOp slice, unsigned dim) {
  unsigned part = *findPart(slice, dim);
  Value own = getPart(rewriter, slice.getSource(), dim, part);
  if (own.getType() != slice.getType()) {
    SmallVector<OpFoldResult> offsets = slice.getMixedOffsets();
    offsets[dim] = rewriter.getIndexAttr(*getConstantIntValue(offsets[dim]) - getStart(part));
    rewriter.setInsertionPoint(slice);
    own = tensor::ExtractSliceOp::create(rewriter, slice.getLoc(), slice.getType(), own, offsets,
                                         slice.getMixedSizes(), slice.getMixedStrides());
  }
  rewriter.replaceOp(slice, own);
}

void Group::divide(RewriterBase &rewriter) {
  for (auto [op, loop] : reductions)
    divideReduction(rewriter, cast<linalg::LinalgOp>(op), loop);
  for (auto [op, dim] : slices)
    divideSlice(rewriter, cast<tensor::ExtractSliceOp>(op), dim);
  // Nothing reads the whole tensors any more but each other.
  llvm::SmallSetVector<Operation *, 16> dead;
  for (auto [value, dim] : tensors)
    dead.insert(value.getDefiningOp());
  for (Operation *op : dead)
    op->dropAllUses();
  for (Operation *op : dead)
    rewriter.eraseOp(op);
  for (Operation *op : llvm::reverse(copied))
    if (!dead.contains(op) && isOpTriviallyDead(op))
      rewriter.eraseOp(op);
}

/// Divides the first concatenation that can be divided. Returns false if there is none.
static bool divideFirst(Operation *root) {
  IRRewriter rewriter(root->getContext());
  WalkResult walk = root->walk([&](Operation *op) {
    for (Value result : op->getResults()) {
      std::optional<Concatenation> concatenation = matchConcatenation(result);
      if (!concatenation)
        continue;
      Group group(concatenation->getSizes());
      if (!group.add(result, concatenation->dim) || !group.reduces())
        continue;
      group.divide(rewriter);
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return walk.wasInterrupted();
}

namespace {
struct DivideConcatenations : fp8::impl::DivideConcatenationsBase<DivideConcatenations> {
  void runOnOperation() final {
    while (divideFirst(getOperation()))
      ;
  }
};
} // namespace
