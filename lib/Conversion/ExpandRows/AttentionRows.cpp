// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code of rows of attention: a loop over the rows of a block or, where a row is too long for that,
// operations on all of them.

#include "AttentionDecomposer.h"
#include "LiftRows.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

/// Adds the first key that is seen to the indices of keys in `clone`, an operation on rows.
template <typename Op>
void AttentionDecomposer<Op>::shiftKeys(OpBuilder &b, Operation *clone, const Box &seen) {
  OpFoldResult first = seen.offsets[dims.keys.front()];
  if (isZeroInteger(first))
    return;
  OpBuilder::InsertionGuard guard(b);
  clone->walk([&](linalg::IndexOp index) {
    b.setInsertionPointAfter(index);
    auto key = arith::AddIOp::create(b, loc, index, cast<Value>(first));
    index.getResult().replaceAllUsesExcept(key, key);
  });
}

/// Copies an operation of the code of rows, whose rows have the keys that are `seen`: memory for a whole row
/// is cut to them, the index of a key counts from the first of them, and memory of rows which the code yields
/// are `slots`.
template <typename Op>
void AttentionDecomposer<Op>::cloneLimited(OpBuilder &b, Operation &inner, IRMapping &mapping,
                                           ArrayRef<Value> slots, const Box &seen) {
  unsigned key = dims.keys.front();
  auto cut = [&](Value row, OpFoldResult first) -> Value {
    return tensor::ExtractSliceOp::create(b, loc, row, first, seen.sizes[key],
                                          OpFoldResult(b.getIndexAttr(1)));
  };
  Operation *clone = b.clone(inner, mapping);
  shiftKeys(b, clone, seen);
  auto structured = dyn_cast<DestinationStyleOpInterface>(clone);
  for (auto [i, result] : llvm::enumerate(clone->getResults())) {
    auto row = dyn_cast<RankedTensorType>(result.getType());
    if (!row || row.getRank() == 0)
      continue;
    if (!structured) {
      mapping.map(inner.getResult(i), cut(result, b.getIndexAttr(0)));
      continue;
    }
    OpOperand *init = structured.getDpsInitOperand(i);
    ValueRange yielded = op.getYield()->getOperands().take_front(slots.size());
    auto place = llvm::find(yielded, inner.getResult(i));
    if (place != yielded.end() && inner.getOperand(init->getOperandNumber()).getDefiningOp<tensor::EmptyOp>())
      init->set(slots[std::distance(yielded.begin(), place)]);
    result.setType(init->get().getType());
  }
  if (!structured)
    return;
  // Whole rows from outside, with which equal ones of the code have been merged.
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(clone);
  for (OpOperand &operand : clone->getOpOperands()) {
    auto row = dyn_cast<RankedTensorType>(operand.get().getType());
    if (!row || row.getRank() == 0 || !row.hasStaticShape())
      continue;
    operand.set(cut(operand.get(), seen.offsets[key]));
    if (structured.isDpsInit(&operand))
      structured.getTiedOpResult(&operand).setType(operand.get().getType());
  }
}

/// Copies the code of the row at `position` of the block. Returns what it yields. `slots`: the parts of the
/// block's memory for the rows that matmuls read.
template <typename Op>
SmallVector<Value> AttentionDecomposer<Op>::runRow(OpBuilder &b, ValueRange position, ArrayRef<Value> matmuls,
                                                   ArrayRef<Value> slots, const Box &seen) {
  SmallVector<OpFoldResult> indices(ranges.size(), b.getIndexAttr(0)), inBlock(indices);
  for (unsigned key : dims.keys)
    indices[key] = seen.offsets[key];
  AffineExpr sum = b.getAffineDimExpr(0) + b.getAffineDimExpr(1);
  IRMapping mapping;
  Block &body = op.getRows().front();
  for (auto [argument, dim, index] : llvm::zip(body.getArguments(), dims.outer, position)) {
    inBlock[dim] = index;
    indices[dim] = affine::makeComposedFoldedAffineApply(b, loc, sum, {seen.offsets[dim], index});
    mapping.map(argument, getValueOrCreateConstantIndexOp(b, loc, indices[dim]));
  }
  auto readPart = [&](Value tensor, AffineMap map, ArrayRef<OpFoldResult> at, Type type) -> Value {
    SmallVector<OpFoldResult> offsets, sizes, strides(map.getNumResults(), b.getIndexAttr(1));
    for (AffineExpr expr : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      bool isKey = dim && llvm::is_contained(dims.keys, dim.getPosition());
      offsets.push_back(
          affine::makeComposedFoldedAffineApply(b, loc, AffineMap::get(ranges.size(), 0, expr), at));
      sizes.push_back(isKey ? seen.sizes[dim.getPosition()] : b.getIndexAttr(1));
    }
    auto row = dyn_cast<RankedTensorType>(type);
    if (row && isLimited(seen))
      row = RankedTensorType::get(ShapedType::kDynamic, row.getElementType());
    if (!row)
      return tensor::ExtractOp::create(b, loc, tensor, getValueOrCreateConstantIndexOp(b, loc, offsets));
    return tensor::ExtractSliceOp::create(b, loc, row, tensor, offsets, sizes, strides);
  };
  AffineMap scores = selectDims(scoreDims());
  for (auto [i, matmul] : llvm::enumerate(matmuls)) {
    BlockArgument argument = op.getMatmulRow(i);
    mapping.map(argument, readPart(matmul, scores, inBlock, argument.getType()));
  }
  for (auto [i, input, map] : llvm::enumerate(op.getInputs(), op.getInputMaps())) {
    BlockArgument argument = op.getInputPart(i);
    mapping.map(argument, readPart(input, map, indices, argument.getType()));
  }
  for (Operation &inner : body.without_terminator())
    if (isLimited(seen))
      cloneLimited(b, inner, mapping, slots, seen);
    else
      b.clone(inner, mapping);
  return llvm::map_to_vector(op.getYield()->getOperands(),
                             [&](Value value) { return mapping.lookupOrDefault(value); });
}

/// Runs the rows of the block. Returns the rows that matmuls read, as tensors of the block, then for each
/// further result `further` with the part of the block or, where it is a sum, the block's rows. The rows have
/// the keys that are `seen`, and no values behind.
template <typename Op>
SmallVector<Value> AttentionDecomposer<Op>::runRows(OpBuilder &b, ArrayRef<Value> matmuls, ValueRange further,
                                                    const Box &box, const Box &seen) {
  auto isOfBlock = [&](unsigned i) {
    return i < Op::kNumMatmulRows || isSum(Op::kNumMainResults + i - Op::kNumMatmulRows);
  };
  // The gradient of a bias is mostly that of the scores: rows that the code yields twice are written once.
  SmallVector<Value> shared;
  SmallVector<unsigned> stored; // the yielded values that have memory of their own
  SmallVector<unsigned> places; // of each yielded value, among them
  OperandRange all = op.getYield()->getOperands();
  for (unsigned i = 0; i < all.size(); ++i) {
    bool ofBlock = isOfBlock(i);
    auto *same = llvm::find_if(stored, [&](unsigned other) {
      return i >= Op::kNumMatmulRows && ofBlock && isOfBlock(other) && all[other] == all[i];
    });
    places.push_back(same - stored.begin());
    if (same != stored.end())
      continue;
    stored.push_back(i);
    shared.push_back(ofBlock ? emptyScores(b, getElementTypeOrSelf(all[i]), box, seen)
                             : further[i - Op::kNumMatmulRows]);
  }
  SmallVector<OpFoldResult> counts =
      llvm::map_to_vector(dims.outer, [&](unsigned dim) { return box.sizes[dim]; });
  auto loop = scf::ForallOp::create(b, loc, counts, shared, /*mapping=*/std::nullopt);
  loop->setAttr(kRowElementsAttrName, b.getI64IntegerAttr(countRowElements()));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  AffineMap scores = selectDims(scoreDims());
  AffineExpr sum = b.getAffineDimExpr(0) + b.getAffineDimExpr(1);
  SmallVector<Value> slots;
  for (auto [i, argument] : llvm::zip_equal(stored, loop.getRegionIterArgs())) {
    bool ofBlock = isOfBlock(i), isRow = false;
    AffineMap map = ofBlock ? scores : outMaps[Op::kNumMainResults + i - Op::kNumMatmulRows];
    SmallVector<OpFoldResult> offsets, sizes, strides(map.getNumResults(), b.getIndexAttr(1));
    for (AffineExpr expr : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      const auto *outer = dim ? llvm::find(dims.outer, dim.getPosition()) : dims.outer.end();
      bool isKey = dim && outer == dims.outer.end();
      OpFoldResult offset = b.getIndexAttr(0);
      if (outer != dims.outer.end())
        offset = loop.getInductionVars()[outer - dims.outer.begin()];
      if (outer != dims.outer.end() && !ofBlock)
        offset = affine::makeComposedFoldedAffineApply(b, loc, sum, {box.offsets[dim.getPosition()], offset});
      offsets.push_back(offset);
      sizes.push_back(isKey ? seen.sizes[dim.getPosition()] : b.getIndexAttr(1));
      isRow |= isKey;
    }
    Type element = getElementTypeOrSelf(argument);
    Type part = op.getYield()->getOperand(i).getType();
    if (!isRow)
      part = RankedTensorType::get({}, element);
    else if (isLimited(seen))
      part = RankedTensorType::get(ShapedType::kDynamic, element);
    slots.push_back(tensor::ExtractSliceOp::create(b, loc, cast<RankedTensorType>(part), argument, offsets,
                                                   sizes, strides));
  }
  SmallVector<Value> yielded =
      runRow(b, loop.getInductionVars(), matmuls, ArrayRef(slots).take_front(Op::kNumMatmulRows), seen);
  for (auto [i, argument, slot] : llvm::zip_equal(stored, loop.getRegionIterArgs(), slots)) {
    Value value = yielded[i];
    auto part = slot.getDefiningOp<tensor::ExtractSliceOp>();
    if (!isa<RankedTensorType>(value.getType()))
      value = tensor::InsertOp::create(b, loc, value, slot, ValueRange());
    OpBuilder atEnd = OpBuilder::atBlockEnd(loop.getTerminator().getBody());
    tensor::ParallelInsertSliceOp::create(atEnd, loc, value, argument, part.getMixedOffsets(),
                                          part.getMixedSizes(), part.getMixedStrides());
    if (part->use_empty())
      part->erase();
  }
  return llvm::map_to_vector(places, [&](unsigned place) -> Value { return loop.getResult(place); });
}

/// Returns the map to a box of a tensor with this `map`, from the outer dimensions and those of a row's part
/// of it.
template <typename Op>
AffineMap AttentionDecomposer<Op>::mapToPart(AffineMap map) const {
  SmallVector<AffineExpr> exprs;
  unsigned count = dims.outer.size();
  for (AffineExpr expr : map.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    const auto *outer = dim ? llvm::find(dims.outer, dim.getPosition()) : dims.outer.end();
    if (!dim)
      exprs.push_back(rewriter.getAffineConstantExpr(0));
    else
      exprs.push_back(
          rewriter.getAffineDimExpr(outer == dims.outer.end() ? count++ : outer - dims.outer.begin()));
  }
  return AffineMap::get(count, 0, exprs, rewriter.getContext());
}

/// Does what runRows does by operations on all rows of the block.
template <typename Op>
FailureOr<SmallVector<Value>> AttentionDecomposer<Op>::liftRows(OpBuilder &b, ArrayRef<Value> matmuls,
                                                                ValueRange further, const Box &box) {
  SmallVector<OpFoldResult> offsets, sizes;
  for (unsigned dim : dims.outer) {
    offsets.push_back(box.offsets[dim]);
    sizes.push_back(box.sizes[dim]);
  }
  RowLifter lifter(b, loc, offsets, sizes);
  Block &body = op.getRows().front();
  for (unsigned i = 0; i < dims.outer.size(); ++i)
    lifter.setIndex(body.getArgument(i), i);
  AffineMap scores = b.getMultiDimIdentityMap(dims.outer.size() + dims.keys.size());
  for (auto [i, matmul] : llvm::enumerate(matmuls))
    lifter.set(op.getMatmulRow(i), matmul, scores);
  for (auto [i, input, map] : llvm::enumerate(op.getInputs(), op.getInputMaps())) {
    if (!llvm::all_of(map.getResults(), llvm::IsaPred<AffineDimExpr, AffineConstantExpr>))
      return op.emitOpError() << "computes with an index in the map of input " << i
                              << " of its rows, for which rows of this size have no code yet";
    lifter.set(op.getInputPart(i), slice(b, {input, map}, box), mapToPart(map));
  }
  for (Operation &inner : body.without_terminator())
    if (failed(lifter.lift(&inner)))
      return failure();
  SmallVector<Value> results;
  for (auto [i, value] : llvm::enumerate(op.getYield()->getOperands())) {
    unsigned result = Op::kNumMainResults + i - Op::kNumMatmulRows;
    if (i < Op::kNumMatmulRows || isSum(result)) {
      results.push_back(lifter.get(value));
      continue;
    }
    AffineMap map = outMaps[result];
    Mapped whole{further[i - Op::kNumMatmulRows], map};
    results.push_back(insert(b, lifter.write(value, slice(b, whole, box), mapToPart(map)), whole, box));
  }
  return results;
}

template class fp8::detail::AttentionDecomposer<AttentionOp>;
template class fp8::detail::AttentionDecomposer<AttentionGradOp>;
