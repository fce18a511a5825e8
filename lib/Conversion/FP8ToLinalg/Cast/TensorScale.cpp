// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads scales per row and block.

#include "TensorScale.h"
#include "fp8/Conversion/FP8ToLinalg/FP8Casts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace fp8;

static unsigned dimOf(AffineExpr result) { return cast<AffineDimExpr>(result).getPosition(); }

TensorScale::TensorScale(Value scaleInv, std::optional<ArrayRef<int64_t>> block, AffineMap map)
    : scaleInv(scaleInv), map(map) {
  if (block)
    extents.assign(block->begin(), block->end());
}

Value TensorScale::load(OpBuilder &b, Location loc, ArrayRef<Value> position) const {
  SmallVector<Value> entry;
  for (auto [extent, result] : llvm::zip(extents, map.getResults())) {
    Value index = extent == 0 ? Value() : position[dimOf(result)];
    if (extent == 0)
      index = arith::ConstantIndexOp::create(b, loc, 0);
    else if (extent > 1)
      index = arith::DivUIOp::create(b, loc, index, arith::ConstantIndexOp::create(b, loc, extent));
    entry.push_back(index);
  }
  return buildWiden(b, loc, memref::LoadOp::create(b, loc, scaleInv, entry));
}

std::optional<AffineMap> TensorScale::getMap() const {
  SmallVector<AffineExpr> entry;
  for (auto [extent, result] : llvm::zip(extents, map.getResults())) {
    if (extent > 1)
      return std::nullopt;
    entry.push_back(extent == 0 ? getAffineConstantExpr(0, map.getContext()) : result);
  }
  return AffineMap::get(map.getNumDims(), 0, entry, map.getContext());
}

int64_t TensorScale::getExtent(unsigned dim) const {
  for (auto [extent, result] : llvm::zip(extents, map.getResults()))
    if (dimOf(result) == dim)
      return extent;
  return 0;
}
