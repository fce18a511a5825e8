// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recognizes stacks and views of them, and follows slices through both.

#include "Stacks.h"
#include "WidenRegions.h"
#include "fp8/Analysis/Rearrangement.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace fp8;

//===----------------------------------------------------------------------===//
// Stacks
//===----------------------------------------------------------------------===//

std::optional<Stack> fp8::matchStack(OpResult result) {
  unsigned i = result.getResultNumber();
  if (auto loop = dyn_cast<scf::ForOp>(result.getOwner())) {
    OpOperand &yielded = loop.getBody()->getTerminator()->getOpOperand(i);
    BlockArgument body = loop.getRegionIterArg(i);
    auto insert = yielded.get().getDefiningOp<tensor::InsertSliceOp>();
    if (!insert || insert.getDest() != body)
      return std::nullopt;
    return Stack{&loop.getInitArgsMutable()[i], {body, insert.getResult(), result}, insert, {&yielded}};
  }
  auto loop = dyn_cast<scf::WhileOp>(result.getOwner());
  if (!loop)
    return std::nullopt;
  OpOperand &passed = loop.getConditionOp().getArgsMutable()[i];
  auto before = dyn_cast<BlockArgument>(passed.get());
  if (!before || before.getOwner() != loop.getBeforeBody())
    return std::nullopt;
  BlockArgument body = loop.getAfterArguments()[i];
  OpOperand &yielded = loop.getYieldOp()->getOpOperand(before.getArgNumber());
  auto insert = yielded.get().getDefiningOp<tensor::InsertSliceOp>();
  if (!insert || insert.getDest() != body)
    return std::nullopt;
  return Stack{&loop.getInitsMutable()[before.getArgNumber()],
               {before, body, insert.getResult(), result},
               insert,
               {&passed, &yielded}};
}

Carried fp8::addCarried(Operation *loop, Value init) {
  OpBuilder builder(loop);
  loop = fp8::detail::widen(builder, loop, init, init.getType());
  BlockArgument body;
  for (Region &region : loop->getRegions()) {
    Block &block = region.front();
    body = block.addArgument(init.getType(), init.getLoc());
    block.getTerminator()->insertOperands(block.getTerminator()->getNumOperands(), body);
  }
  return {body, loop->getResults().back()};
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

bool fp8::isNarrowing(Operation *op) {
  std::optional<Rearrangement> view = op ? matchRearrangement(op) : std::nullopt;
  return view && isa_and_present<arith::TruncFOp>(view->cast) && view->map.isIdentity() &&
         view->input == op->getOperand(0) && getElementTypeOrSelf(view->input).isF32();
}

bool fp8::isView(Operation *op) {
  if (!op)
    return false;
  if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp, tensor::ExtractSliceOp>(op) ||
      isNarrowing(op))
    return true;
  std::optional<Rearrangement> view = matchRearrangement(op);
  return view && !view->cast && view->input == op->getOperand(0);
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

/// Whether a slice takes all of dimension `dim` of `whole`, whose size is known.
static bool takesAll(OffsetSizeAndStrideOpInterface op, RankedTensorType whole, int64_t dim) {
  return !whole.isDynamicDim(dim) && isConstantIntValue(op.getMixedSizes()[dim], whole.getDimSize(dim)) &&
         isConstantIntValue(op.getMixedOffsets()[dim], 0) && isConstantIntValue(op.getMixedStrides()[dim], 1);
}

static std::optional<SliceDims> followExtract(tensor::ExtractSliceOp view, ArrayRef<int64_t> dims) {
  llvm::SmallBitVector dropped = view.getDroppedDims();
  SliceDims found;
  for (int64_t dim = 0, kept = 0; dim < view.getSourceType().getRank(); ++dim) {
    if (!llvm::is_contained(dims, dim)) {
      if (!takesAll(view, view.getSourceType(), dim))
        return std::nullopt;
    } else if (!isConstantIntValue(view.getMixedSizes()[dim], 1)) {
      found.push_back(kept);
    }
    kept += !dropped.test(dim);
  }
  return found;
}

/// Follows slice dimensions through a reshape, which may merge them with dimensions of one element only, or
/// split such dimensions off; unset otherwise.
static std::optional<SliceDims> followReshape(ArrayRef<ReassociationIndices> groups,
                                              RankedTensorType expanded, bool expands,
                                              ArrayRef<int64_t> dims) {
  SliceDims found;
  for (auto [one, group] : llvm::enumerate(groups)) {
    auto larger = llvm::to_vector(
        llvm::make_filter_range(group, [&](int64_t dim) { return expanded.getDimSize(dim) != 1; }));
    bool isNumber = expands ? llvm::is_contained(dims, one)
                            : llvm::any_of(group, [&](int64_t dim) { return llvm::is_contained(dims, dim); });
    if (!isNumber)
      continue;
    if (larger.size() != 1)
      return std::nullopt;
    found.push_back(expands ? larger.front() : one);
  }
  return found;
}

/// Follows slice dimensions through `view`; unset if the slices change their order.
static std::optional<SliceDims> followRearrangement(const Rearrangement &view, ArrayRef<int64_t> dims) {
  SliceDims found;
  for (int64_t dim : dims) {
    auto place = dyn_cast<AffineDimExpr>(view.map.getResult(dim));
    if (!place || (!found.empty() && found.back() > place.getPosition()))
      return std::nullopt;
    found.push_back(place.getPosition());
  }
  return found;
}

std::optional<SliceDims> fp8::getSliceDims(Operation *view, ArrayRef<int64_t> dims) {
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(view))
    return followExtract(slice, dims);
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(view))
    return followReshape(expand.getReassociationIndices(), expand.getResultType(), /*expands=*/true, dims);
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(view))
    return followReshape(collapse.getReassociationIndices(), collapse.getSrcType(), /*expands=*/false, dims);
  if (isa<tensor::CastOp>(view))
    return SliceDims(dims);
  return followRearrangement(*matchRearrangement(view), dims);
}

std::optional<SliceDims> fp8::getSliceDims(tensor::InsertSliceOp insert, ArrayRef<int64_t> dims) {
  llvm::SmallBitVector dropped = insert.getDroppedDims();
  RankedTensorType whole = insert.getDestType();
  SliceDims found;
  for (int64_t dim = 0, kept = 0; dim < whole.getRank(); ++dim) {
    bool ofSource = !dropped.test(dim) && llvm::is_contained(dims, kept);
    bool isOne = isConstantIntValue(insert.getMixedSizes()[dim], 1);
    if (ofSource || (isOne && whole.getDimSize(dim) != 1))
      found.push_back(dim);
    else if (!takesAll(insert, whole, dim))
      return std::nullopt;
    kept += !dropped.test(dim);
  }
  return found;
}

//===----------------------------------------------------------------------===//
// A value for each slice
//===----------------------------------------------------------------------===//

namespace {
/// The part of the values of all slices that `op` takes or sets.
struct Part {
  Part(OffsetSizeAndStrideOpInterface op, ArrayRef<int64_t> dims) {
    for (int64_t dim : dims) {
      offsets.push_back(op.getMixedOffsets()[dim]);
      sizes.push_back(op.getMixedSizes()[dim]);
      strides.push_back(op.getMixedStrides()[dim]);
    }
  }
  SmallVector<OpFoldResult> offsets, sizes, strides;
};
} // namespace

Value fp8::viewSliceValues(OpBuilder &builder, Operation *view, Value values, ArrayRef<int64_t> dims) {
  auto slice = dyn_cast<tensor::ExtractSliceOp>(view);
  if (!slice)
    return values;
  Part part(slice, dims);
  SmallVector<int64_t> shape;
  for (OpFoldResult size : part.sizes)
    if (!isConstantIntValue(size, 1))
      shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  auto type = RankedTensorType::get(shape, getElementTypeOrSelf(values));
  return tensor::ExtractSliceOp::create(builder, view->getLoc(), type, values, part.offsets, part.sizes,
                                        part.strides);
}

Value fp8::insertSliceValues(OpBuilder &builder, tensor::InsertSliceOp insert, Value values, Value into,
                             ArrayRef<int64_t> dims) {
  Part part(insert, dims);
  return tensor::InsertSliceOp::create(builder, insert.getLoc(), values, into, part.offsets, part.sizes,
                                       part.strides);
}
