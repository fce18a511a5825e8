// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns convolutions whose windows do not overlap into contractions: views of their operands, a generic
// operation with their bodies, and a view of its result.

#include "EraseUnused.h"
#include "fp8/Analysis/WindowLoops.h"
#include "fp8/Analysis/Zeros.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace fp8 {
#define GEN_PASS_DEF_RAISECONVOLUTIONS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

using Groups = SmallVector<ReassociationIndices>;

namespace {

/// Builds the contraction of a convolution.
class Contraction {
public:
  Contraction(RewriterBase &rewriter, linalg::LinalgOp op, const WindowLoops &loops)
      : rewriter(rewriter), loc(op.getLoc()), op(op), loops(loops), numbers(loops.sizes.size()) {}

  /// Returns the result of the convolution; null if its initial value has no view.
  Value build();

private:
  std::pair<Value, SmallVector<unsigned>> buildOperand(const WindowRead &read);
  Value slice(Value value, ArrayRef<int64_t> offsets, ArrayRef<OpFoldResult> sizes,
              ArrayRef<int64_t> strides);
  Value buildInit(Value init);
  Value buildResult(Value value, Value init);
  AffineMap mapOf(ArrayRef<unsigned> read) const;

  RewriterBase &rewriter;
  Location loc;
  linalg::LinalgOp op;
  const WindowLoops &loops;
  SmallVector<std::optional<unsigned>> numbers; ///< of the loops in the contraction
};

} // namespace

/// Returns the groups in which dimensions, of which some are `dropped` and of size 1, are those that stay.
static Groups groupDropped(ArrayRef<bool> dropped) {
  Groups groups;
  ReassociationIndices leading;
  for (auto [d, isDropped] : llvm::enumerate(dropped)) {
    ReassociationIndices &group = isDropped && !groups.empty() ? groups.back() : leading;
    group.push_back(d);
    if (!isDropped)
      groups.push_back(std::exchange(leading, {}));
  }
  return groups;
}

/// Returns the shape of `value` without the dimensions that are `dropped`.
static Value dropDims(OpBuilder &b, Location loc, Value value, ArrayRef<bool> dropped) {
  if (!llvm::is_contained(dropped, true))
    return value;
  return tensor::CollapseShapeOp::create(b, loc, value, groupDropped(dropped));
}

/// Returns `value` with each dimension divided into one, or two of the sizes in `shape`.
static Value divideDims(OpBuilder &b, Location loc, Value value, ArrayRef<SmallVector<OpFoldResult>> shape) {
  Groups groups;
  SmallVector<OpFoldResult> sizes;
  for (ArrayRef<OpFoldResult> parts : shape) {
    ReassociationIndices &group = groups.emplace_back();
    for (OpFoldResult part : parts) {
      group.push_back(sizes.size());
      sizes.push_back(part);
    }
  }
  if (sizes.size() == shape.size())
    return value;
  auto type = RankedTensorType::get(decomposeMixedValues(sizes).first, getElementTypeOrSelf(value));
  return tensor::ExpandShapeOp::create(b, loc, type, value, groups, sizes);
}

/// Returns the elements of `value` at a stride; `value` itself if that is all of it. A size that is not known
/// is that of `value`.
Value Contraction::slice(Value value, ArrayRef<int64_t> offsets, ArrayRef<OpFoldResult> sizes,
                         ArrayRef<int64_t> strides) {
  if (decomposeMixedValues(SmallVector<OpFoldResult>(sizes)).first ==
      cast<RankedTensorType>(value.getType()).getShape())
    return value;
  auto indices = [&](ArrayRef<int64_t> values) {
    return getAsIndexOpFoldResult(rewriter.getContext(), values);
  };
  return tensor::ExtractSliceOp::create(rewriter, loc, value, indices(offsets), sizes, indices(strides));
}

/// Returns the view of an operand that the contraction reads, and the loop of each of its dimensions.
std::pair<Value, SmallVector<unsigned>> Contraction::buildOperand(const WindowRead &read) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, loc, read.tensor), kept;
  SmallVector<int64_t> offsets, strides;
  SmallVector<bool> dropped;
  SmallVector<SmallVector<OpFoldResult>> divided;
  SmallVector<unsigned> loopsRead;
  for (auto [index, size, known] : llvm::zip_equal(read.indices, sizes, read.type().getShape())) {
    CountedDim dim = *countDim(index, loops.sizes, known);
    offsets.push_back(dim.offset);
    strides.push_back(dim.stride);
    dropped.push_back(!dim.inner);
    if (!dim.inner) {
      size = rewriter.getIndexAttr(1);
      continue;
    }
    int64_t inner = loops.sizes[*dim.inner];
    if (!dim.outer) {
      size = ShapedType::isDynamic(inner) ? size : rewriter.getIndexAttr(inner);
      divided.push_back({size});
      kept.push_back(size);
    } else {
      int64_t outer = loops.sizes[*dim.outer];
      size = rewriter.getIndexAttr(outer * dim.width);
      divided.push_back({rewriter.getIndexAttr(outer), rewriter.getIndexAttr(dim.width)});
      kept.append({rewriter.getIndexAttr(outer), rewriter.getIndexAttr(inner)});
      loopsRead.push_back(*dim.outer);
    }
    loopsRead.push_back(*dim.inner);
  }
  Value value = slice(read.tensor, offsets, sizes, strides);
  value = dropDims(rewriter, loc, value, dropped);
  value = divideDims(rewriter, loc, value, divided);
  value = slice(value, SmallVector<int64_t>(kept.size(), 0), kept, SmallVector<int64_t>(kept.size(), 1));
  return {value, loopsRead};
}

/// Returns the initial value of the sums, with the dimensions of the contraction's result; null if it has
/// none.
Value Contraction::buildInit(Value init) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, loc, init), flat;
  SmallVector<SmallVector<OpFoldResult>> divided;
  SmallVector<bool> dropped;
  bool hasZeros = false;
  for (auto [dim, size] : llvm::zip_equal(loops.result, sizes)) {
    hasZeros |= dim.hasZeros;
    dropped.push_back(dim.loops.empty());
    SmallVector<OpFoldResult> parts;
    for (unsigned l : dim.loops)
      parts.push_back(ShapedType::isDynamic(loops.sizes[l]) ? size : rewriter.getIndexAttr(loops.sizes[l]));
    llvm::append_range(flat, parts);
    if (!parts.empty())
      divided.push_back(std::move(parts));
  }
  if (isFilledWithZeros(init)) {
    Type element = getElementTypeOrSelf(init);
    Value zero = arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(element));
    Value empty = tensor::EmptyOp::create(rewriter, loc, flat, element);
    return linalg::FillOp::create(rewriter, loc, zero, empty).getResult(0);
  }
  if (hasZeros)
    return nullptr;
  return divideDims(rewriter, loc, dropDims(rewriter, loc, init, dropped), divided);
}

/// Returns the result of the convolution from that of the contraction, `value`.
Value Contraction::buildResult(Value value, Value init) {
  auto type = cast<RankedTensorType>(init.getType());
  SmallVector<OpFoldResult> whole = tensor::getMixedSizes(rewriter, loc, init), sizes;
  SmallVector<bool> dropped;
  Groups joined;
  SmallVector<OpFoldResult> offsets, strides;
  unsigned count = 0;
  bool hasZeros = false;
  for (auto [dim, size] : llvm::zip_equal(loops.result, whole)) {
    dropped.push_back(dim.loops.empty());
    int64_t counted = 1;
    if (!dim.loops.empty())
      joined.emplace_back();
    for (unsigned l : dim.loops) {
      counted *= dim.loops.size() == 1 && ShapedType::isDynamic(loops.sizes[l]) ? 1 : loops.sizes[l];
      joined.back().push_back(count++);
    }
    bool isDynamic = dim.loops.size() == 1 && ShapedType::isDynamic(loops.sizes[dim.loops[0]]);
    sizes.push_back(isDynamic ? size : rewriter.getIndexAttr(counted));
    offsets.push_back(rewriter.getIndexAttr(dim.offset));
    strides.push_back(rewriter.getIndexAttr(dim.stride));
    hasZeros |= dim.hasZeros;
  }
  if (joined.size() != count)
    value = tensor::CollapseShapeOp::create(rewriter, loc, value, joined);
  if (llvm::is_contained(dropped, true)) {
    auto shape = RankedTensorType::get(decomposeMixedValues(sizes).first, type.getElementType());
    value = tensor::ExpandShapeOp::create(rewriter, loc, shape, value, groupDropped(dropped), sizes);
  }
  if (hasZeros)
    value = tensor::InsertSliceOp::create(rewriter, loc, value, init, offsets, sizes, strides);
  return value.getType() == type ? value : tensor::CastOp::create(rewriter, loc, type, value).getResult();
}

AffineMap Contraction::mapOf(ArrayRef<unsigned> read) const {
  auto dims = llvm::map_to_vector(read, [&](unsigned l) { return rewriter.getAffineDimExpr(*numbers[l]); });
  unsigned count = llvm::count_if(numbers, [](auto number) { return number.has_value(); });
  return AffineMap::get(count, 0, dims, rewriter.getContext());
}

Value Contraction::build() {
  rewriter.setInsertionPoint(op);
  Value init = op.getDpsInits()[0], inner = buildInit(init);
  if (!inner)
    return nullptr;
  auto [lhs, readByLhs] = buildOperand(loops.operands[0]);
  auto [rhs, readByRhs] = buildOperand(loops.operands[1]);
  SmallVector<unsigned> ofResult;
  for (const WindowResult &dim : loops.result)
    llvm::append_range(ofResult, dim.loops);
  SmallVector<utils::IteratorType> iterators;
  for (auto [l, iterator] : llvm::enumerate(loops.iterators)) {
    if (!llvm::is_contained(readByLhs, l) && !llvm::is_contained(readByRhs, l) &&
        !llvm::is_contained(ofResult, l))
      continue;
    numbers[l] = iterators.size();
    iterators.push_back(iterator);
  }
  auto contraction =
      linalg::GenericOp::create(rewriter, loc, inner.getType(), ValueRange{lhs, rhs}, inner,
                                ArrayRef{mapOf(readByLhs), mapOf(readByRhs), mapOf(ofResult)}, iterators);
  for (NamedAttribute attribute : op->getDiscardableAttrs())
    if (!attribute.getName().strref().starts_with("linalg.")) // the maps that it has no more
      contraction->setDiscardableAttr(attribute.getName(), attribute.getValue());
  rewriter.cloneRegionBefore(op->getRegion(0), contraction.getRegion(), contraction.getRegion().end());
  return buildResult(contraction.getResult(0), init);
}

namespace {

struct RaiseConvolutions : fp8::impl::RaiseConvolutionsBase<RaiseConvolutions> {
  void runOnOperation() final {
    SmallVector<linalg::LinalgOp> ops;
    getOperation()->walk([&](linalg::LinalgOp op) { ops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : ops) {
      std::optional<WindowLoops> loops = WindowLoops::of(op);
      Value result = loops ? Contraction(rewriter, op, *loops).build() : Value();
      if (!result)
        continue;
      SmallVector<Value> operands(op->getOperands());
      rewriter.replaceOp(op, result);
      for (Value operand : operands)
        if (Operation *producer = operand.getDefiningOp())
          fp8::detail::eraseUnused(rewriter, producer);
    }
  }
};

} // namespace
