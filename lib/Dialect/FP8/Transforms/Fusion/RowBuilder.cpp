// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns the members of a cluster into code of the region: scalar code for what runs once per row,
// linalg operations on slices of the row's size for the rest.

#include "RowBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

static Type getPartType(Value value, AffineMap map, ArrayRef<int64_t> rows) {
  auto type = cast<ShapedType>(value.getType());
  SmallVector<int64_t> sizes;
  for (auto [position, expr] : llvm::enumerate(map.getResults()))
    if (isRowDim(expr, rows))
      sizes.push_back(type.getDimSize(position));
  return sizes.empty() ? type.getElementType() : RankedTensorType::get(sizes, type.getElementType());
}

/// Returns the value in the region for the row's part of `value`: computed there, or an argument.
Value RowBuilder::partOf(Value value, AffineMap map) {
  if (!isa<ShapedType>(value.getType()))
    return value;
  if (Value part = parts.lookup(value))
    return part;
  unsigned first = body->getNumArguments() - inputs.size();
  for (auto [i, input, inputMap] : llvm::enumerate(inputs, inputMaps))
    if (input == value && inputMap == map)
      return body->getArgument(first + i);
  inputs.push_back(value);
  inputMaps.push_back(map);
  return body->addArgument(getPartType(value, map, rows), loc);
}

/// Returns `map`, of an operand of a member, restricted to the member's loops over the row.
AffineMap RowBuilder::dropOuterLoops(AffineMap map, AffineMap loops) {
  SmallVector<AffineExpr> renumbered;
  unsigned numLoops = 0;
  for (AffineExpr place : loops.getResults())
    renumbered.push_back(isRowDim(place, rows) ? rewriter.getAffineDimExpr(numLoops++) : AffineExpr());
  SmallVector<AffineExpr> exprs;
  for (auto [expr, place] : llvm::zip_equal(map.getResults(), map.compose(loops).getResults()))
    if (isRowDim(place, rows))
      exprs.push_back(renumbered[cast<AffineDimExpr>(expr).getPosition()]);
  return AffineMap::get(numLoops, 0, exprs, op->getContext());
}

/// Returns the index of the row in dimension `place`.
Value RowBuilder::indexOf(AffineExpr place) {
  auto dim = dyn_cast<AffineDimExpr>(place);
  if (!dim)
    return arith::ConstantIndexOp::create(rewriter, loc, 0);
  unsigned inRow = llvm::count_if(rows, [&](int64_t row) { return row < dim.getPosition(); });
  return body->getArgument(dim.getPosition() - inRow);
}

/// Builds the index in dimension `dim` of the tensor, in a loop nest over the row.
Value RowBuilder::elementIndex(OpBuilder &b, int64_t dim) {
  if (!llvm::is_contained(rows, dim))
    return indexOf(rewriter.getAffineDimExpr(dim));
  int64_t loop = llvm::count_if(rows, [&](int64_t row) { return row < dim; });
  return linalg::IndexOp::create(b, loc, loop);
}

/// Copies the body of a member to the insertion point of `b`, whose loops are those over the row.
IRMapping RowBuilder::cloneBody(OpBuilder &b, linalg::GenericOp generic, AffineMap loops, IRMapping mapping) {
  for (Operation &inner : generic.getBody()->without_terminator()) {
    auto index = dyn_cast<linalg::IndexOp>(inner);
    if (!index) {
      b.clone(inner, mapping);
      continue;
    }
    AffineExpr place = loops.getResult(index.getDim());
    if (isRowDim(place, rows)) {
      unsigned loop = llvm::count_if(loops.getResults().take_front(index.getDim()),
                                     [&](AffineExpr before) { return isRowDim(before, rows); });
      mapping.map(index.getResult(), linalg::IndexOp::create(b, loc, loop).getResult());
    } else {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPoint(b.getInsertionBlock(), b.getInsertionPoint());
      mapping.map(index.getResult(), indexOf(place));
    }
  }
  return mapping;
}

/// Adds a member that runs once per row, as scalar code.
void RowBuilder::addScalar(linalg::GenericOp generic, AffineMap loops) {
  IRMapping mapping;
  for (OpOperand *input : generic.getDpsInputOperands())
    mapping.map(generic.getMatchingBlockArgument(input),
                partOf(input->get(), generic.getMatchingIndexingMap(input).compose(loops)));
  for (OpOperand &init : generic.getDpsInitsMutable())
    if (generic.payloadUsesValueFromOperand(&init))
      mapping.map(generic.getMatchingBlockArgument(&init), getFillValue(init.get()));
  mapping = cloneBody(rewriter, generic, loops, mapping);
  for (auto [result, value] :
       llvm::zip(generic->getResults(), generic.getBody()->getTerminator()->getOperands()))
    parts[result] = mapping.lookupOrDefault(value);
}

/// Adds a member that runs once per element of a row, as a linalg operation.
void RowBuilder::addRow(linalg::GenericOp generic, AffineMap loops) {
  SmallVector<Value> ins, outs;
  SmallVector<AffineMap> maps;
  SmallVector<utils::IteratorType> iterators;
  IRMapping scalars;
  SmallVector<OpOperand *> rowInputs;
  for (OpOperand *input : generic.getDpsInputOperands()) {
    AffineMap map = generic.getMatchingIndexingMap(input);
    Value part = partOf(input->get(), map.compose(loops));
    if (!isa<TensorType>(part.getType())) {
      scalars.map(generic.getMatchingBlockArgument(input), part);
      continue;
    }
    ins.push_back(part);
    maps.push_back(dropOuterLoops(map, loops));
    rowInputs.push_back(input);
  }
  for (OpOperand &init : generic.getDpsInitsMutable()) {
    AffineMap map = generic.getMatchingIndexingMap(&init);
    Type part = getPartType(init.get(), map.compose(loops), rows);
    ArrayRef<int64_t> sizes = isa<TensorType>(part) ? cast<TensorType>(part).getShape() : ArrayRef<int64_t>();
    Value out = tensor::EmptyOp::create(rewriter, loc, sizes, getElementTypeOrSelf(part));
    if (generic.payloadUsesValueFromOperand(&init))
      out = linalg::FillOp::create(rewriter, loc, getFillValue(init.get()), out).getResult(0);
    outs.push_back(out);
    maps.push_back(dropOuterLoops(map, loops));
  }
  for (auto [place, kind] : llvm::zip_equal(loops.getResults(), generic.getIteratorTypesArray()))
    if (isRowDim(place, rows))
      iterators.push_back(kind);
  auto row = linalg::GenericOp::create(
      rewriter, generic.getLoc(), TypeRange(ValueRange(outs)), ins, outs, maps, iterators,
      [&](OpBuilder &b, Location, ValueRange values) {
        IRMapping mapping(scalars);
        for (auto [input, value] : llvm::zip_equal(rowInputs, values.take_front(ins.size())))
          mapping.map(generic.getMatchingBlockArgument(input), value);
        mapping.map(generic.getRegionOutputArgs(), values.drop_front(ins.size()));
        mapping = cloneBody(b, generic, loops, mapping);
        SmallVector<Value> yielded =
            llvm::map_to_vector(generic.getBody()->getTerminator()->getOperands(),
                                [&](Value value) { return mapping.lookupOrDefault(value); });
        linalg::YieldOp::create(b, loc, yielded);
      });
  for (auto [result, part] : llvm::zip_equal(generic->getResults(), row->getResults()))
    parts[result] = cast<TensorType>(part.getType()).getRank() != 0
                        ? part
                        : tensor::ExtractOp::create(rewriter, loc, part, ValueRange()).getResult();
}

void RowBuilder::inlineMember(linalg::GenericOp generic, AffineMap loops) {
  bool overRow = llvm::any_of(loops.getResults(), [&](AffineExpr place) { return isRowDim(place, rows); });
  if (overRow)
    addRow(generic, loops);
  else
    addScalar(generic, loops);
}

/// Adds the elementwise region of `op`, applied to a row. Returns the values that it yields.
SmallVector<Value> RowBuilder::addElements() {
  if (old.isEmpty())
    return {partOf(old.inputs[0], old.maps[0])};
  Block &elements = old.body();
  AffineMap loops = rewriter.getMultiDimIdentityMap(old.numDims);
  IRMapping scalars;
  SmallVector<Value> ins, outs;
  SmallVector<AffineMap> maps;
  SmallVector<BlockArgument> rowArguments;
  for (auto [argument, input, map] : llvm::zip_equal(elements.getArguments(), old.inputs, old.inputMaps())) {
    Value part = partOf(input, map);
    if (!isa<TensorType>(part.getType())) {
      scalars.map(argument, part);
      continue;
    }
    ins.push_back(part);
    maps.push_back(dropOuterLoops(map, loops));
    rowArguments.push_back(argument);
  }
  SmallVector<AffineMap> outMaps{loops};
  llvm::append_range(outMaps, old.extraMaps());
  SmallVector<int64_t> sizes = cluster.rowSizes();
  for (auto [value, map] : llvm::zip_equal(old.yield()->getOperands(), outMaps)) {
    AffineMap inRow = dropOuterLoops(map, loops);
    SmallVector<int64_t> shape = llvm::map_to_vector(inRow.getResults(), [&](AffineExpr expr) -> int64_t {
      return sizes[cast<AffineDimExpr>(expr).getPosition()];
    });
    outs.push_back(tensor::EmptyOp::create(rewriter, loc, shape, value.getType()));
    maps.push_back(inRow);
  }
  SmallVector<utils::IteratorType> iterators(rows.size(), utils::IteratorType::parallel);
  auto row = linalg::GenericOp::create(
      rewriter, loc, TypeRange(ValueRange(outs)), ins, outs, maps, iterators,
      [&](OpBuilder &b, Location, ValueRange values) {
        IRMapping mapping(scalars);
        for (auto [argument, value] : llvm::zip_equal(rowArguments, values.take_front(ins.size())))
          mapping.map(argument, value);
        for (Operation &inner : elements.without_terminator()) {
          if (auto index = dyn_cast<IndexOp>(inner))
            mapping.map(index.getResult(), elementIndex(b, index.getDim()));
          else
            b.clone(inner, mapping);
        }
        linalg::YieldOp::create(b, loc, llvm::map_to_vector(old.yield()->getOperands(), [&](Value value) {
                                  return mapping.lookupOrDefault(value);
                                }));
      });
  return SmallVector<Value>(row->getResults());
}

/// Adds extra results for results of members that are read outside of the cluster.
void RowBuilder::store(SmallVectorImpl<Value> &yielded, SmallVectorImpl<Value> &outs,
                       SmallVectorImpl<AffineMap> &extraMaps) {
  for (Operation *member : cluster.members) {
    auto generic = dyn_cast<linalg::GenericOp>(member);
    if (!generic)
      continue;
    for (OpOperand &init : generic.getDpsInitsMutable()) {
      OpResult result = generic.getTiedOpResult(&init);
      if (!cluster.isReadOutside(result))
        continue;
      stored.insert(result);
      yielded.push_back(parts.lookup(result));
      outs.push_back(getUnusedDestination(rewriter, init.get()));
      extraMaps.push_back(cluster.placements.lookup(result));
    }
  }
}

Operation *RowBuilder::build() {
  rewriter.setInsertionPoint(op);
  Region region;
  body = &region.emplaceBlock();
  for (unsigned i = 0; i < old.numDims - rows.size(); ++i)
    body->addArgument(rewriter.getIndexType(), loc);
  SmallVector<Value> outs(old.outs), yielded;
  SmallVector<AffineMap> maps, extraMaps(old.extraMaps());
  {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToEnd(body);
    for (Operation *member : cluster.members)
      if (auto generic = dyn_cast<linalg::GenericOp>(member))
        inlineMember(generic, cluster.loops.lookup(generic));
      else
        parts[member->getResult(0)] = partOf(member->getOperand(0), cluster.loops.lookup(member));
    yielded = addElements();
  }
  store(yielded, outs, extraMaps);
  {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToEnd(body);
    YieldOp::create(rewriter, loc, yielded.front(), ArrayRef(yielded).drop_front());
  }
  llvm::append_range(maps, inputMaps);
  llvm::append_range(maps, extraMaps);
  return buildOnRows(rewriter, op, inputs, outs, rewriter.getAffineMapArrayAttr(maps), rows, region);
}
