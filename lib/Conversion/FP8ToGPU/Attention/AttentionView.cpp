// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The operands of attention in memory.

#include "AttentionView.h"

#include "fp8/Conversion/FP8ToGPU/Alignment.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include <numeric>

using namespace mlir;
using namespace fp8;

/// Kernels add distances of keys to rows in i32.
static constexpr int64_t kMostDistance = 1 << 30;

KernelNumber AttentionTensor::getStride(unsigned dim) const {
  for (auto [expr, stride] : llvm::zip_equal(map.getResults(), strides))
    if (expr == getAffineDimExpr(dim, map.getContext()))
      return stride;
  return {0, 0};
}

int64_t AttentionTensor::getAlignmentAlong(unsigned dim) const {
  KernelNumber own = getStride(dim);
  if (!own.isKnown() || own.known != 1)
    return 0;
  int64_t bytes = countElementBytes(getElementType()),
          alignment = std::gcd(kAccessBytes, findBaseAlignment(memref));
  for (auto [expr, stride] : llvm::zip_equal(map.getResults(), strides))
    if (expr != getAffineDimExpr(dim, map.getContext()))
      alignment = std::gcd(alignment, (stride.isKnown() ? stride.known : 1) * bytes);
  return alignment;
}

AttentionTensor AttentionView::addTensor(OpBuilder &host, Value memref, AffineMap map,
                                         KernelArguments &arguments) {
  AttentionTensor tensor{memref, map, arguments.addPointer(memref), {}};
  auto type = cast<MemRefType>(memref.getType());
  SmallVector<int64_t> strides(type.getRank(), 0);
  if (!type.hasStaticShape() || type.getNumElements() != 0) // of which upstream computes no strides
    strides = type.getStridesAndOffset().first;
  ValueRange values;
  for (auto [i, stride] : llvm::enumerate(strides)) {
    KernelNumber number{stride, 0};
    if (!number.isKnown() && type.getDimSize(i) == 1)
      number.known = 0; // there is one index, 0
    if (!number.isKnown()) {
      if (values.empty())
        values = memref::ExtractStridedMetadataOp::create(host, op->getLoc(), memref).getStrides();
      number.argument = arguments.addI64(values[i]);
    }
    tensor.strides.push_back(number);
  }
  return tensor;
}

void AttentionView::addSizes(OpBuilder &host, ArrayRef<int64_t> ranges, KernelArguments &arguments) {
  SmallVector<std::pair<Value, AffineMap>> tensors;
  for (const AttentionTensor &tensor : llvm::concat<AttentionTensor>(operands, outs))
    tensors.emplace_back(tensor.memref, tensor.map);
  for (auto [dim, size] : llvm::enumerate(ranges)) {
    KernelNumber number{size, 0};
    Value value;
    if (number.isKnown())
      value = constantIndex(host, op->getLoc(), size);
    for (auto [memref, map] : tensors)
      for (auto [i, expr] : llvm::enumerate(map.getResults()))
        if (!value && expr == getAffineDimExpr(dim, map.getContext()))
          value = memref::DimOp::create(host, op->getLoc(), memref, i);
    if (!number.isKnown())
      number.argument = arguments.addI32(value);
    sizes.push_back(number);
    hostSizes.push_back(value);
  }
}

/// Returns the longest of the outer dimensions that neither key nor value, nor their gradients, have, and
/// that all further results have; the last one of equal ones.
unsigned AttentionView::chooseQueries(ArrayRef<AffineMap> ofKeys, ArrayRef<AffineMap> further,
                                      ArrayRef<int64_t> ranges) const {
  std::optional<unsigned> best;
  auto length = [&](unsigned dim) {
    return ShapedType::isDynamic(ranges[dim]) ? std::numeric_limits<int64_t>::max() : ranges[dim];
  };
  for (unsigned dim : dims.outer)
    if (llvm::none_of(ofKeys, [&](AffineMap map) { return map.isFunctionOfDim(dim); }) &&
        (ranges[dim] == 1 ||
         llvm::all_of(further, [&](AffineMap map) { return map.isFunctionOfDim(dim); })) &&
        (!best || length(dim) >= length(*best)))
      best = dim;
  return best.value_or(dims.outer.back());
}

template <typename Op>
AttentionView::AttentionView(OpBuilder &host, Op op, KernelArguments &arguments)
    : op(op), dims(op.getAttentionDims()), keys(dims.keys.front()), depth(dims.depth.front()),
      width(dims.width.front()), code(&op.getCode()), visibleIf(op.getVisibleIf()), sites(op.getSitesAttr()) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<AffineMap> ofKeys{maps[1], maps[2]}, outMaps = op.getOutMaps(), further;
  if (Op::kNumMainResults == 3) {
    ofKeys.append({outMaps[1], outMaps[2]});
    further.assign(outMaps.begin() + 3, outMaps.end());
  }
  queries = chooseQueries(ofKeys, further, ranges);
  if (std::optional<AffineMap> visible = op.getVisibleKeys()) {
    auto getDistance = [&](unsigned result) -> std::optional<int64_t> {
      std::optional<int64_t> distance = getKeyDistance(*visible, result, queries);
      return distance && std::abs(*distance) <= kMostDistance ? distance : std::nullopt;
    };
    firstSeen = getDistance(0);
    endSeen = getDistance(1);
  }
  unsigned firstOut = op.getOuts().getBeginOperandIndex(), firstInput = firstOut - op.getInputs().size();
  for (auto [i, operand, map] : llvm::enumerate(op->getOperands(), maps))
    (i < firstInput ? operands
     : i < firstOut ? inputs
                    : outs)
        .push_back(addTensor(host, operand, map, arguments));
  addSizes(host, ranges, arguments);
}

template AttentionView::AttentionView(OpBuilder &, OnlineAttentionOp, KernelArguments &);
template AttentionView::AttentionView(OpBuilder &, OnlineAttentionGradOp, KernelArguments &);

Expr fp8::computeIndex(KernelBuilder &b, AffineExpr expr, const Indices &indices) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    const std::optional<Expr> &index = indices[dim.getPosition()];
    return index ? widen(*index) : b.number(0, 64);
  }
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return b.number(constant.getValue(), 64);
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Expr lhs = computeIndex(b, binary.getLHS(), indices), rhs = computeIndex(b, binary.getRHS(), indices);
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return lhs + rhs;
  case AffineExprKind::Mul:
    return lhs * rhs;
  case AffineExprKind::FloorDiv: // of indices, which are not negative
    return lhs / rhs;
  case AffineExprKind::Mod:
    return lhs % rhs;
  default:
    return (lhs + rhs - 1) / rhs;
  }
}

Value fp8::getAddress(KernelBuilder &b, const AttentionTensor &tensor, const Indices &indices) {
  Expr position = b.number(0, 64);
  for (auto [expr, stride] : llvm::zip_equal(tensor.map.getResults(), tensor.strides))
    if (stride.known != 0)
      position = position + computeIndex(b, expr, indices) * stride.get(b, 64);
  return b.at(b.globalPointer(tensor.pointer), position * countElementBytes(tensor.getElementType()));
}
