// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The alignment of a memref, from its type and the views that it is of.

#include "fp8/Conversion/FP8ToGPU/Alignment.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include <numeric>

using namespace mlir;

int64_t fp8::countElementBytes(Type type) {
  return type.isIndex() ? 8 : llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
}

/// Returns the alignment of the buffer that `memref` is a view of.
static int64_t findBufferAlignment(Value memref) {
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>())
    memref = view.getViewSource();
  auto constant = memref.getDefiningOp<memref::GetGlobalOp>();
  if (!constant)
    return fp8::kAccessBytes;
  auto global = SymbolTable::lookupNearestSymbolFrom<memref::GlobalOp>(constant, constant.getNameAttr());
  std::optional<uint64_t> alignment = global ? global.getAlignment() : std::nullopt;
  return std::gcd(fp8::kAccessBytes, alignment ? int64_t(*alignment)
                                               : fp8::countElementBytes(constant.getType().getElementType()));
}

int64_t fp8::findBaseAlignment(Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  if (type.hasStaticShape() && type.getNumElements() == 0)
    return kAccessBytes;
  auto [strides, offset] = type.getStridesAndOffset();
  int64_t bytes = fp8::countElementBytes(type.getElementType());
  if (!ShapedType::isDynamic(offset))
    return std::gcd(findBufferAlignment(memref), offset * bytes);
  auto view = memref.getDefiningOp<memref::SubViewOp>();
  if (!view)
    return std::gcd(kAccessBytes, bytes);
  int64_t alignment = findBaseAlignment(view.getSource());
  auto [sourceStrides, sourceOffset] = view.getSourceType().getStridesAndOffset();
  for (auto [start, stride] : llvm::zip_equal(view.getMixedOffsets(), sourceStrides)) {
    int64_t step = ShapedType::isDynamic(stride) ? 1 : stride;
    alignment = std::gcd(alignment, getConstantIntValue(start).value_or(1) * step * bytes);
  }
  return alignment;
}
