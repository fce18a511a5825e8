// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Follows views to the memory whose alignment is known.

#include "OperandAlignment.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace fp8;

/// Allocations, arguments and constants begin at a multiple of 16 bytes.
bool fp8::isOperandAligned(Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  if (auto subview = memref.getDefiningOp<memref::SubViewOp>()) {
    SmallVector<int64_t> strides;
    int64_t offset;
    if (failed(subview.getSourceType().getStridesAndOffset(strides, offset)))
      return false;
    int64_t known = 0;
    for (auto [start, stride] : llvm::zip_equal(subview.getStaticOffsets(), strides)) {
      if (start == 0)
        continue;
      if (ShapedType::isDynamic(stride))
        return false;
      if (!ShapedType::isDynamic(start))
        known += start * stride;
      else if (stride * bytes % kOperandAlignment != 0)
        return false;
    }
    return known * bytes % kOperandAlignment == 0 && isOperandAligned(subview.getSource());
  }
  if (isa_and_nonnull<memref::ExpandShapeOp, memref::CollapseShapeOp, memref::CastOp>(memref.getDefiningOp()))
    return isOperandAligned(cast<ViewLikeOpInterface>(memref.getDefiningOp()).getViewSource());
  if (auto cast = memref.getDefiningOp<memref::ReinterpretCastOp>()) {
    int64_t offset = cast.getStaticOffsets()[0];
    return !ShapedType::isDynamic(offset) && offset * bytes % kOperandAlignment == 0 &&
           isOperandAligned(cast.getSource());
  }
  auto [strides, offset] = type.getStridesAndOffset();
  bool begins = isa_and_nonnull<memref::AllocOp, memref::GetGlobalOp>(memref.getDefiningOp()) ||
                (isa<BlockArgument>(memref) &&
                 isa<func::FuncOp>(cast<BlockArgument>(memref).getOwner()->getParentOp()));
  return begins && !ShapedType::isDynamic(offset) && offset * bytes % kOperandAlignment == 0;
}

Value fp8::findPaddedPitch(Value memref) {
  auto view = memref.getDefiningOp<memref::SubViewOp>();
  auto padded = view ? view.getSource().getDefiningOp<memref::AllocOp>() : memref::AllocOp();
  if (!padded || !padded.getType().getElementType().isFloat() || padded.getType().getRank() != 2 ||
      !padded.getType().isDynamicDim(1) || !llvm::all_of(view.getMixedOffsets(), isZeroInteger) ||
      !view.hasUnitStride() || view.getType().getRank() != 2)
    return nullptr;
  Value pitch = padded.getDynamicSizes().back();
  auto product = pitch.getDefiningOp<arith::MulIOp>();
  int64_t bytes = padded.getType().getElementTypeBitWidth() / 8;
  std::optional<int64_t> factor = product ? getConstantIntValue(product.getRhs()) : std::nullopt;
  return factor && *factor * bytes % kOperandAlignment == 0 ? pitch : nullptr;
}
