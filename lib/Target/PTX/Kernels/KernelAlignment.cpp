// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The alignment of buffers that kernels get as arguments: of the operands of calls, and of views with an
// offset that is an argument too (fp8-outline-kernels).

#include "KernelAlignment.h"
#include "fp8/Conversion/FP8ToGPU/Alignment.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include <numeric>

using namespace mlir;
using namespace fp8;

/// Returns a power of two that divides `offset`, a number of the host, times `bytes`.
static int64_t findOfHostOffset(Value offset, int64_t bytes) {
  if (std::optional<int64_t> constant = getConstantIntValue(offset))
    return std::gcd(kAccessBytes, *constant * bytes);
  auto metadata = offset.getDefiningOp<memref::ExtractStridedMetadataOp>();
  return metadata && offset == metadata.getOffset() ? findBaseAlignment(metadata.getSource())
                                                    : std::gcd(kAccessBytes, bytes);
}

/// Returns a power of two that divides `offset`, a number of the kernel, times `bytes`.
int64_t KernelAlignment::findOfOffset(OpFoldResult offset, int64_t bytes) const {
  if (std::optional<int64_t> constant = getConstantIntValue(offset))
    return std::gcd(kAccessBytes, *constant * bytes);
  auto argument = dyn_cast<BlockArgument>(cast<Value>(offset));
  if (!argument || argument.getOwner()->getParentOp() != kernel)
    return std::gcd(kAccessBytes, bytes);
  int64_t alignment = kAccessBytes;
  for (func::CallOp call : calls)
    alignment = std::gcd(alignment, findOfHostOffset(call.getOperand(argument.getArgNumber()), bytes));
  return alignment;
}

int64_t KernelAlignment::find(Value memref) const {
  auto type = cast<MemRefType>(memref.getType());
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  if (auto argument = dyn_cast<BlockArgument>(memref)) {
    int64_t alignment = kAccessBytes;
    for (func::CallOp call : calls)
      alignment = std::gcd(alignment, findBaseAlignment(call.getOperand(argument.getArgNumber())));
    return alignment;
  }
  auto view = memref.getDefiningOp<ViewLikeOpInterface>();
  if (!view)
    return std::gcd(kAccessBytes, bytes);
  // The offset of a view counts from the start of the buffer.
  auto [strides, offset] = type.getStridesAndOffset();
  int64_t ofOffset = std::gcd(kAccessBytes, bytes);
  if (auto cast = memref.getDefiningOp<memref::ReinterpretCastOp>())
    ofOffset = findOfOffset(cast.getMixedOffsets().front(), bytes);
  else if (!ShapedType::isDynamic(offset))
    ofOffset = offset * bytes;
  return std::gcd(find(view.getViewSource()), ofOffset);
}
