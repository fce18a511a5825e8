// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The index of a group is a digit of the index of a head: `head floordiv n` of n heads in a group. Key and
// value are followed back to tensors whose indices are digits, and the dimensions of the operation are split
// into digits.

#include "SharedHeads.h"
#include "SharedOperand.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Utils/Utils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

namespace {
/// Splits the dimensions of one operation.
template <typename Op>
class HeadSharing {
public:
  HeadSharing(RewriterBase &rewriter, Op op)
      : rewriter(rewriter), op(op), dims(op.getAttentionDims()), sizes(op.getStaticLoopRanges()),
        maps(op.getIndexingMapsArray()) {}

  void run();

private:
  bool chooseParts(ArrayRef<std::optional<SharedOperand>> shared);
  SmallVector<unsigned> getParts(const Digit &digit) const;
  Value split(const SharedOperand &operand, AffineMap &map);
  Value dropZeros(Value tensor, AffineMap &map);
  AffineMap renumber(AffineMap map) const;
  void renumber(Region &region);

  RewriterBase &rewriter;
  Op op;
  AttentionDims dims;
  SmallVector<int64_t> sizes;
  SmallVector<AffineMap> maps;
  SmallVector<Digit> parts; ///< the new dimensions, those of an old one together, most significant first
};
} // namespace

/// Splits the dimensions where digits of shared operands begin and end. Returns whether these are digits of
/// one number.
template <typename Op>
bool HeadSharing<Op>::chooseParts(ArrayRef<std::optional<SharedOperand>> shared) {
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    SmallVector<int64_t> steps{1};
    for (const std::optional<SharedOperand> &operand : shared)
      for (ArrayRef<Digit> joined : operand ? ArrayRef(operand->digits) : ArrayRef<SmallVector<Digit>>())
        for (const Digit &digit : joined)
          if (digit.dim == dim && digit.size != 1 && !ShapedType::isDynamic(size))
            steps.append({digit.step, digit.step * digit.size});
    llvm::sort(steps);
    steps.erase(llvm::unique(steps), steps.end());
    if (steps.back() == size && size != 1)
      steps.pop_back();
    int64_t end = size;
    for (int64_t step : llvm::reverse(steps)) {
      if (ShapedType::isDynamic(end) ? step != 1 : end % step != 0)
        return false;
      parts.push_back({static_cast<unsigned>(dim), step, ShapedType::isDynamic(end) ? end : end / step});
      end = step;
    }
  }
  return true;
}

/// Returns the new dimensions that a digit consists of.
template <typename Op>
SmallVector<unsigned> HeadSharing<Op>::getParts(const Digit &digit) const {
  SmallVector<unsigned> own;
  for (auto [number, part] : llvm::enumerate(parts))
    if (part.dim == digit.dim && part.step >= digit.step &&
        (part.step == digit.step || ShapedType::isDynamic(digit.size) || part.step < digit.step * digit.size))
      own.push_back(number);
  return own;
}

/// Returns a view of an operand whose dimensions are new ones, and sets their map.
template <typename Op>
Value HeadSharing<Op>::split(const SharedOperand &operand, AffineMap &map) {
  Location loc = op.getLoc();
  SmallVector<AffineExpr> places;
  SmallVector<ReassociationIndices> groups;
  SmallVector<OpFoldResult> splitSizes, wholeSizes = tensor::getMixedSizes(rewriter, loc, operand.tensor);
  for (auto [digits, whole] : llvm::zip_equal(operand.digits, wholeSizes)) {
    ReassociationIndices &group = groups.emplace_back();
    SmallVector<unsigned> own;
    for (const Digit &digit : digits)
      llvm::append_range(own, getParts(digit));
    auto add = [&](AffineExpr place, OpFoldResult size) {
      group.push_back(static_cast<int64_t>(places.size()));
      places.push_back(place);
      splitSizes.push_back(size);
    };
    for (unsigned part : own)
      add(rewriter.getAffineDimExpr(part),
          own.size() == 1 ? whole : OpFoldResult(rewriter.getIndexAttr(parts[part].size)));
    if (own.empty())
      add(rewriter.getAffineConstantExpr(0), whole);
  }
  map = AffineMap::get(parts.size(), 0, places, rewriter.getContext());
  auto type = cast<RankedTensorType>(operand.tensor.getType());
  if (groups.size() == places.size())
    return operand.tensor;
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(splitSizes, dynamic, shape);
  return tensor::ExpandShapeOp::create(rewriter, loc, type.clone(shape), operand.tensor, groups, splitSizes);
}

/// Takes dimensions that are at 0 out of a tensor and its map.
template <typename Op>
Value HeadSharing<Op>::dropZeros(Value tensor, AffineMap &map) {
  llvm::SmallBitVector zeros(map.getNumResults());
  for (auto [number, expr] : llvm::enumerate(map.getResults()))
    zeros[number] = isa<AffineConstantExpr>(expr);
  map = map.dropResults(zeros);
  return zeros.any() ? tensor::dropGivenUnitDims(rewriter, op.getLoc(), tensor, zeros).getResult() : tensor;
}

/// Returns a map of old dimensions as one of the new ones.
template <typename Op>
AffineMap HeadSharing<Op>::renumber(AffineMap map) const {
  SmallVector<AffineExpr> old(sizes.size(), rewriter.getAffineConstantExpr(0));
  for (auto [number, part] : llvm::enumerate(parts))
    old[*part.dim] = old[*part.dim] + rewriter.getAffineDimExpr(number) * part.step;
  return map.replaceDimsAndSymbols(old, {}, parts.size(), 0);
}

/// Gives a region an index for each new outer dimension, and computes the old ones from them.
template <typename Op>
void HeadSharing<Op>::renumber(Region &region) {
  if (region.empty())
    return;
  Block &block = region.front();
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(&block);
  unsigned number = 0;
  for (unsigned dim : dims.outer) {
    SmallVector<Digit> own =
        llvm::filter_to_vector(parts, [&](const Digit &part) { return part.dim == dim; });
    BlockArgument old = block.getArgument(number);
    SmallVector<Value> digits;
    for (unsigned i : llvm::seq<unsigned>(own.size()))
      digits.push_back(block.insertArgument(number + i, rewriter.getIndexType(), old.getLoc()));
    number += own.size();
    Value index = digits.front();
    if (own.size() > 1 && !old.use_empty())
      for (auto [digit, part] : llvm::drop_begin(llvm::zip_equal(digits, own))) {
        Value size = arith::ConstantIndexOp::create(rewriter, old.getLoc(), part.size);
        Value scaled = arith::MulIOp::create(rewriter, old.getLoc(), index, size);
        index = arith::AddIOp::create(rewriter, old.getLoc(), scaled, digit);
      }
    rewriter.replaceAllUsesWith(old, index);
    block.eraseArgument(number);
  }
}

template <typename Op>
void HeadSharing<Op>::run() {
  std::optional<SharedOperand> found[] = {findSharedOperand(op.getKey(), maps[1], sizes, dims.outer),
                                          findSharedOperand(op.getValue(), maps[2], sizes, dims.outer)};
  if ((!found[0] && !found[1]) || !chooseParts(found))
    return;
  rewriter.setInsertionPoint(op);
  SmallVector<Value> operands;
  SmallVector<AffineMap> newMaps;
  for (auto [number, operand] : llvm::enumerate(op->getOpOperands())) {
    if (number == 1 || number == 2)
      if (const std::optional<SharedOperand> &source = found[number - 1]) {
        Value whole = split(*source, newMaps.emplace_back());
        Value shared = dropZeros(whole, newMaps.back());
        operands.push_back(buildSteps(rewriter, op.getLoc(), source->steps, shared));
        continue;
      }
    SharedOperand own{operand.get(), {}, {}};
    for (AffineExpr expr : maps[number].getResults())
      if (std::optional<Digit> digit = toDigit(expr, sizes);
          digit && (!digit->dim || isa<AffineDimExpr>(expr)))
        own.digits.push_back({*digit});
    operands.push_back(operand.get());
    if (own.digits.size() == maps[number].getNumResults())
      operands.back() = split(own, newMaps.emplace_back());
    else // an input, at functions of the indices
      newMaps.push_back(renumber(maps[number]));
  }
  OperationState state(op.getLoc(), op->getName());
  state.addOperands(operands);
  state.addTypes(ValueRange(operands).take_back(op->getNumResults()).getTypes());
  NamedAttrList attributes(op->getAttrDictionary());
  attributes.set(op.getIndexingMapsAttrName(), rewriter.getAffineMapArrayAttr(newMaps));
  if (std::optional<AffineMap> visible = op.getVisibleKeys())
    attributes.set(op.getVisibleKeysAttrName(), AffineMapAttr::get(renumber(*visible)));
  state.addAttributes(attributes);
  for (unsigned i = 0; i < op->getNumRegions(); ++i)
    state.addRegion();
  Operation *fresh = rewriter.create(state);
  for (auto [region, old] : llvm::zip_equal(fresh->getRegions(), op->getRegions())) {
    region.takeBody(old);
    renumber(region);
  }
  SmallVector<Value> results;
  for (auto [result, old] : llvm::zip_equal(fresh->getResults(), op->getResults())) {
    auto expand =
        fresh->getOperand(fresh->getNumOperands() - fresh->getNumResults() + result.getResultNumber())
            .template getDefiningOp<tensor::ExpandShapeOp>();
    results.push_back(result.getType() == old.getType()
                          ? Value(result)
                          : tensor::CollapseShapeOp::create(rewriter, op.getLoc(), old.getType(), result,
                                                            expand.getReassociationIndices()));
  }
  rewriter.replaceOp(op, results);
}

void fp8::detail::shareHeads(RewriterBase &rewriter, Operation *attention) {
  llvm::TypeSwitch<Operation *>(attention)
      .Case<AttentionOp, AttentionGradOp, OnlineAttentionOp, OnlineAttentionGradOp>(
          [&](auto op) { HeadSharing(rewriter, op).run(); });
}
