// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds a contraction with any indexing maps: sorts the dimensions into batch, M, N and K, packs
// the operands, calls the micro-kernel, and views its sums in the shape of the output.

#include "fp8/Conversion/FP8ToLinalg/PackedGemm.h"
#include "PackedGemmDetail.h"
#include "fp8/Dialect/FP8/IR/ProductMarks.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace fp8;

/// Returns the position of dimension `dim` in the results of `map`, if it has one.
static std::optional<unsigned> findDim(AffineMap map, unsigned dim) {
  return map.getResultPosition(getAffineDimExpr(dim, map.getContext()));
}

static FailureOr<ContractionDims> sortDims(Location loc, ArrayRef<AffineMap> maps) {
  ContractionDims dims;
  for (unsigned dim : llvm::seq<unsigned>(maps[0].getNumDims())) {
    bool left = findDim(maps[0], dim).has_value();
    bool right = findDim(maps[1], dim).has_value();
    bool out = findDim(maps[2], dim).has_value();
    if (left + right + out < 2)
      return emitError(loc) << "contraction dimension d" << dim << " must be in two of lhs, rhs and output";
    auto &group = !out ? dims.k : left && right ? dims.batch : left ? dims.m : dims.n;
    group.push_back(dim);
  }
  return dims;
}

static LogicalResult verifyOperands(Location loc, Value lhs, Value rhs, ArrayRef<AffineMap> maps) {
  if (maps.size() != 3 || !llvm::all_of(maps, [](AffineMap map) {
        return map.isProjectedPermutation() && map.getNumSymbols() == 0;
      }))
    return emitError(loc, "a contraction needs three maps that are projected permutations");
  for (auto [operand, map] : llvm::zip_first(ValueRange{lhs, rhs}, maps)) {
    auto type = dyn_cast<MemRefType>(operand.getType());
    if (!type || type.getRank() != map.getNumResults())
      return emitError(loc, "a contraction's operands are memrefs of its maps' ranks");
    auto element = dyn_cast<FloatType>(type.getElementType());
    if (!element || element.getWidth() > 32)
      return emitError(loc) << "contraction of " << type.getElementType()
                            << " has no lowering for the CPU: f64, f32, bf16, f16, f8E4M3FN and f8E5M2 have";
  }
  return success();
}

static SmallVector<unsigned> positionsOf(AffineMap map, ArrayRef<unsigned> dims) {
  return llvm::map_to_vector(dims, [&](unsigned dim) { return *findDim(map, dim); });
}

/// Views c [batch][M padded][N padded] in the shape of the output: a strided memref that leaves out
/// the padding.
static Value viewAsOutput(OpBuilder &builder, Location loc, Value c, AffineMap outMap,
                          const ContractionDims &dims, ArrayRef<OpFoldResult> dimSizes) {
  SmallVector<OpFoldResult> padded = memref::getMixedSizes(builder, loc, c);
  SmallVector<OpFoldResult> strideOf(dimSizes.size(), builder.getIndexAttr(1));
  auto assign = [&](ArrayRef<unsigned> group, OpFoldResult innermost) {
    for (unsigned dim : llvm::reverse(group)) {
      strideOf[dim] = innermost;
      innermost = multiplySizes(builder, loc, {innermost, dimSizes[dim]});
    }
  };
  assign(dims.n, builder.getIndexAttr(1));
  assign(dims.m, padded[2]);
  assign(dims.batch, multiplySizes(builder, loc, {padded[1], padded[2]}));

  SmallVector<OpFoldResult> sizes, strides;
  for (AffineExpr expr : outMap.getResults()) {
    unsigned dim = cast<AffineDimExpr>(expr).getPosition();
    sizes.push_back(dimSizes[dim]);
    strides.push_back(strideOf[dim]);
  }
  return memref::ReinterpretCastOp::create(builder, loc, c, builder.getIndexAttr(0), sizes, strides);
}

/// Returns the size of every iteration dimension, from lhs if it has the dimension, else from rhs.
static SmallVector<OpFoldResult> sizesOfDims(OpBuilder &builder, Location loc, Value lhs, Value rhs,
                                             ArrayRef<AffineMap> maps) {
  SmallVector<OpFoldResult> sizes;
  for (unsigned dim : llvm::seq<unsigned>(maps[0].getNumDims())) {
    std::optional<unsigned> left = findDim(maps[0], dim);
    sizes.push_back(left ? memref::getMixedSize(builder, loc, lhs, *left)
                         : memref::getMixedSize(builder, loc, rhs, *findDim(maps[1], dim)));
  }
  return sizes;
}

static Value castTo(OpBuilder &builder, Location loc, Value value, Type type) {
  return value.getType() == type ? value : memref::CastOp::create(builder, loc, type, value);
}

FailureOr<Value> fp8::buildPackedContraction(OpBuilder &builder, Location loc, Value lhs, Value rhs,
                                             ArrayRef<AffineMap> maps, bool split, ArrayAttr products,
                                             const PackedGemmTile &tile) {
  if (failed(verifyOperands(loc, lhs, rhs, maps)))
    return failure();
  FailureOr<ContractionDims> dims = sortDims(loc, maps);
  if (failed(dims))
    return failure();
  SmallVector<OpFoldResult> dimSizes = sizesOfDims(builder, loc, lhs, rhs, maps);
  auto groupSize = [&](ArrayRef<unsigned> group) {
    return multiplySizes(builder, loc,
                         llvm::map_to_vector(group, [&](unsigned dim) { return dimSizes[dim]; }));
  };
  auto padded = [&](ArrayRef<unsigned> group, int64_t width) {
    OpFoldResult panels = ceilDivSize(builder, loc, groupSize(group), width);
    return multiplySizes(builder, loc, {panels, builder.getIndexAttr(width)});
  };

  PackedOperand left{lhs, positionsOf(maps[0], dims->batch), positionsOf(maps[0], dims->m),
                     positionsOf(maps[0], dims->k)};
  PackedOperand right{rhs, positionsOf(maps[1], dims->batch), positionsOf(maps[1], dims->n),
                      positionsOf(maps[1], dims->k)};
  Value a = buildPackedPanels(builder, loc, left, tile.rows);
  Value b = buildPackedPanels(builder, loc, right, tile.columns);
  Value c = allocateF32(builder, loc,
                        {groupSize(dims->batch), padded(dims->m, tile.rows), padded(dims->n, tile.columns)});

  auto module = builder.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  func::FuncOp gemm = getOrCreatePackedGemm(module, split, tile);
  ArrayRef<Type> types = gemm.getFunctionType().getInputs();
  auto call =
      func::CallOp::create(builder, loc, gemm,
                           ValueRange{castTo(builder, loc, a, types[0]), castTo(builder, loc, b, types[1]),
                                      castTo(builder, loc, c, types[2])});
  call->setAttr(kProductsAttrName, products);
  return viewAsOutput(builder, loc, c, maps[2], *dims, dimSizes);
}
