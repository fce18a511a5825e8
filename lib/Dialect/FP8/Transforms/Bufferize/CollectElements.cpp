// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns a vector that is filled element by element over the whole program, such as the amaxes of
// all columns, into one operation at the end, and reads the elements of one, such as the scales, as
// scalars. Otherwise bufferization would compare every slice of the vector with every other.

#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace fp8 {
#define GEN_PASS_DEF_COLLECTELEMENTS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;

/// Longer pieces are copied as slices, not element by element.
static constexpr int64_t kMaxPiece = 8;

/// Records which elements of the vector this insertion sets. Returns false unless the source has at
/// most one dimension, a constant offset and stride 1.
static bool readSlots(tensor::InsertSliceOp insert, MutableArrayRef<Value> sources,
                      MutableArrayRef<int64_t> positions) {
  RankedTensorType type = insert.getSourceType();
  int64_t offset = insert.getStaticOffset(0), size = insert.getStaticSize(0);
  if (type.getRank() > 1 || size > kMaxPiece || ShapedType::isDynamic(offset) ||
      ShapedType::isDynamic(size) || insert.getStaticStride(0) != 1)
    return false;
  for (int64_t i = 0; i < size; ++i) {
    int64_t slot = offset + i;
    if (slot >= int64_t(sources.size()))
      return false;
    if (!sources[slot]) { // a later insertion wins
      sources[slot] = insert.getSource();
      positions[slot] = i;
    }
  }
  return true;
}

/// Replaces the chain of insertions that ends in `last`, if it fills the whole vector.
static void collect(tensor::InsertSliceOp last) {
  RankedTensorType type = last.getDestType();
  SmallVector<Value> sources(type.getNumElements());
  SmallVector<int64_t> positions(type.getNumElements());
  for (tensor::InsertSliceOp insert = last; insert;
       insert = insert.getDest().getDefiningOp<tensor::InsertSliceOp>())
    if (!readSlots(insert, sources, positions))
      return;
  if (sources.empty() || llvm::is_contained(sources, Value()))
    return;
  OpBuilder builder(last);
  Location loc = last.getLoc();
  SmallVector<Value> elements;
  for (auto [source, position] : llvm::zip_equal(sources, positions)) {
    SmallVector<Value> indices;
    if (cast<RankedTensorType>(source.getType()).getRank() == 1)
      indices.push_back(arith::ConstantIndexOp::create(builder, loc, position));
    elements.push_back(tensor::ExtractOp::create(builder, loc, source, indices));
  }
  last.replaceAllUsesWith(tensor::FromElementsOp::create(builder, loc, type, elements).getResult());
  for (tensor::InsertSliceOp insert = last; insert && insert->use_empty();) {
    auto previous = insert.getDest().getDefiningOp<tensor::InsertSliceOp>();
    insert.erase();
    insert = previous;
  }
}

/// Replaces a slice of one element by a tensor of its own, which holds the element.
static void readElement(tensor::ExtractSliceOp slice) {
  OpBuilder builder(slice);
  Location loc = slice.getLoc();
  Value index = arith::ConstantIndexOp::create(builder, loc, slice.getStaticOffset(0));
  Value element = tensor::ExtractOp::create(builder, loc, slice.getSource(), index);
  slice.replaceAllUsesWith(
      tensor::FromElementsOp::create(builder, loc, slice.getType(), element).getResult());
  slice.erase();
}

/// Returns whether `op` is one element of a vector. Elements in loops stay: a tensor of their own would
/// be one per iteration.
static bool isElementOfVector(tensor::ExtractSliceOp op) {
  return op.getSourceType().getRank() == 1 && op.getType().getRank() == 0 &&
         !ShapedType::isDynamic(op.getStaticOffset(0)) && isa<func::FuncOp>(op->getParentOp());
}

static bool isVectorInsertion(tensor::InsertSliceOp op) {
  return op.getDestType().getRank() == 1 && op.getDestType().hasStaticShape();
}

namespace {
struct CollectElementsPass : public fp8::impl::CollectElementsBase<CollectElementsPass> {
  void runOnOperation() override {
    SmallVector<tensor::ExtractSliceOp> elements;
    getOperation().walk([&](tensor::ExtractSliceOp op) {
      if (isElementOfVector(op))
        elements.push_back(op);
    });
    llvm::for_each(elements, readElement);
    SmallVector<tensor::InsertSliceOp> ends;
    getOperation().walk([&](tensor::InsertSliceOp op) {
      bool continued = op->hasOneUse() && isa<tensor::InsertSliceOp>(*op->user_begin()) &&
                       op->getUses().begin()->getOperandNumber() == 1;
      if (isVectorInsertion(op) && !continued)
        ends.push_back(op);
    });
    for (tensor::InsertSliceOp end : ends)
      collect(end);
  }
};
} // namespace
