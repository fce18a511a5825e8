// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fp8/Conversion/FP8ToGPU/PartViews.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

bool fp8::haveStrides(ValueRange values) {
  return llvm::all_of(values.getTypes(), [](Type type) {
    auto memref = dyn_cast<MemRefType>(type);
    return !memref || memref.isStrided();
  });
}

Value fp8::buildPartView(OpBuilder &builder, Location loc, Value memref, unsigned position, int64_t count) {
  SmallVector<int64_t> shape(cast<MemRefType>(memref.getType()).getShape());
  shape[position] /= count;
  shape.insert(shape.begin() + position, count);
  SmallVector<ReassociationIndices> groups;
  for (int64_t dim = 0, end = shape.size(); dim < end; ++dim)
    if (dim == int64_t(position) + 1)
      groups.back().push_back(dim);
    else
      groups.push_back({dim});
  return memref::ExpandShapeOp::create(builder, loc, shape, memref, groups);
}
