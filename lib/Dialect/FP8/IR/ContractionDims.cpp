// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Classifies the iteration dimensions of a matmul as batch, M, N and K.

#include "fp8/Dialect/FP8/IR/ContractionDims.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;

std::optional<fp8::ContractionDims> fp8::inferContractionDims(ArrayRef<AffineMap> maps) {
  if (maps.size() != 3 || llvm::any_of(maps, [&](AffineMap map) {
        return map.getNumSymbols() != 0 || map.getNumDims() != maps[0].getNumDims() ||
               !map.isProjectedPermutation();
      }))
    return std::nullopt;

  ContractionDims dims;
  for (unsigned d = 0, e = maps[0].getNumDims(); d < e; ++d) {
    bool inLhs = maps[0].isFunctionOfDim(d), inRhs = maps[1].isFunctionOfDim(d);
    bool inResult = maps[2].isFunctionOfDim(d);
    if (inLhs && inRhs)
      (inResult ? dims.batch : dims.k).push_back(d);
    else if (inLhs && inResult)
      dims.m.push_back(d);
    else if (inRhs && inResult)
      dims.n.push_back(d);
    else
      return std::nullopt;
  }
  return dims;
}

SmallVector<AffineMap> fp8::dropGroup(ArrayRef<AffineMap> maps, unsigned group) {
  SmallVector<AffineMap> dropped;
  for (AffineMap map : maps) {
    if (std::optional<unsigned> position = map.getResultPosition(getAffineDimExpr(group, map.getContext())))
      map = map.dropResult(*position);
    llvm::SmallBitVector unused(map.getNumDims());
    unused.set(group);
    dropped.push_back(projectDims(map, unused, /*compressDimsFlag=*/true));
  }
  return dropped;
}

std::optional<fp8::GroupedDims> fp8::inferGroupedDims(ArrayRef<AffineMap> maps) {
  if (maps.size() != 3 || llvm::any_of(maps, [](AffineMap map) {
        return map.getNumSymbols() != 0 || map.getNumDims() != 4 || !map.isProjectedPermutation();
      }))
    return std::nullopt;
  for (unsigned group : llvm::seq(4u)) {
    auto hasGroup = [&](AffineMap map) { return map.isFunctionOfDim(group); };
    if (llvm::count_if(maps, hasGroup) != 1)
      continue;
    std::optional<ContractionDims> dims = inferContractionDims(dropGroup(maps, group));
    if (!dims || dims->m.size() != 1 || dims->n.size() != 1 || dims->k.size() != 1)
      return std::nullopt;
    unsigned divided = llvm::find_if(maps, hasGroup) - maps.begin();
    for (unsigned rows : llvm::seq(4u))
      if (rows != group && !maps[divided].isFunctionOfDim(rows))
        return GroupedDims{group, rows, divided};
  }
  return std::nullopt;
}

std::optional<int64_t> fp8::getKeyDistance(AffineMap visible, unsigned result, unsigned row) {
  AffineExpr distance = simplifyAffineExpr(
      visible.getResult(result) - getAffineDimExpr(row, visible.getContext()), visible.getNumDims(), 0);
  auto constant = dyn_cast<AffineConstantExpr>(distance);
  return constant ? std::optional(constant.getValue()) : std::nullopt;
}

std::optional<fp8::AttentionDims> fp8::inferAttentionDims(AffineMap query, AffineMap key, AffineMap value,
                                                          AffineMap output) {
  if (llvm::any_of(ArrayRef{query, key, value, output}, [&](AffineMap map) {
        return map.getNumSymbols() != 0 || map.getNumDims() != query.getNumDims() ||
               !map.isProjectedPermutation();
      }))
    return std::nullopt;
  AttentionDims dims;
  for (unsigned d = 0, e = query.getNumDims(); d < e; ++d) {
    bool inQuery = query.isFunctionOfDim(d), inKey = key.isFunctionOfDim(d);
    bool inValue = value.isFunctionOfDim(d), inOutput = output.isFunctionOfDim(d);
    if (inOutput && (inQuery || inKey))
      dims.outer.push_back(d);
    else if (inOutput && inValue)
      dims.width.push_back(d);
    else if (!inOutput && inKey && inQuery && !inValue)
      dims.depth.push_back(d);
    else if (!inOutput && inKey && inValue && !inQuery)
      dims.keys.push_back(d);
    else
      return std::nullopt;
  }
  if (dims.outer.empty() || dims.keys.empty() || dims.depth.empty())
    return std::nullopt;
  return dims;
}

std::optional<int64_t> fp8::countMatmulOperations(ArrayRef<AffineMap> maps, ArrayRef<int64_t> lhs,
                                                  ArrayRef<int64_t> rhs) {
  SmallVector<int64_t> sizes(maps[0].getNumDims(), 1);
  auto read = [&](AffineMap map, ArrayRef<int64_t> shape) {
    for (auto [expr, size] : llvm::zip_equal(map.getResults(), shape))
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        sizes[dim.getPosition()] = size;
  };
  read(maps[0], lhs);
  read(maps[1], rhs);
  if (std::optional<GroupedDims> grouped = inferGroupedDims(maps))
    sizes[grouped->group] = 1; // the rows of all groups together are those of one matmul
  int64_t operations = 2;
  for (int64_t size : sizes) {
    if (ShapedType::isDynamic(size))
      return std::nullopt;
    operations *= size;
  }
  return operations;
}
