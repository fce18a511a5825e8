// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Indices of elements on both sides of a tensor.expand_shape or tensor.collapse_shape.

#ifndef FP8_ANALYSIS_RESHAPEDINDICES_H
#define FP8_ANALYSIS_RESHAPEDINDICES_H

#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/STLExtras.h"

namespace fp8 {

/// Returns the indices of groups of dimensions, from those of the dimensions.
inline llvm::SmallVector<mlir::AffineExpr> collapse(llvm::ArrayRef<mlir::ReassociationIndices> groups,
                                                    llvm::ArrayRef<int64_t> sizes,
                                                    llvm::ArrayRef<mlir::AffineExpr> at,
                                                    mlir::MLIRContext *context) {
  llvm::SmallVector<mlir::AffineExpr> joined;
  for (const mlir::ReassociationIndices &group : groups) {
    mlir::AffineExpr index = mlir::getAffineConstantExpr(0, context);
    for (int64_t dim : group)
      index = sizes[dim] == 1 ? index : index * sizes[dim] + at[dim];
    joined.push_back(index);
  }
  return joined;
}

/// Returns the indices of dimensions, from those of their groups.
inline llvm::SmallVector<mlir::AffineExpr> expandIndices(llvm::ArrayRef<mlir::ReassociationIndices> groups,
                                                         llvm::ArrayRef<int64_t> sizes,
                                                         llvm::ArrayRef<mlir::AffineExpr> at,
                                                         mlir::MLIRContext *context) {
  llvm::SmallVector<mlir::AffineExpr> split(sizes.size(), mlir::getAffineConstantExpr(0, context));
  for (auto [group, index] : llvm::zip_equal(groups, at)) {
    auto full = llvm::to_vector(llvm::make_filter_range(group, [&](int64_t dim) { return sizes[dim] != 1; }));
    mlir::AffineExpr rest = index;
    for (int64_t dim : llvm::reverse(full)) {
      bool isFirst = dim == full.front();
      split[dim] = isFirst ? rest : rest % sizes[dim];
      rest = isFirst ? rest : rest.floorDiv(sizes[dim]);
    }
  }
  return split;
}

/// Returns whether only the first dimension of each group may be of unknown size.
inline bool haveInnerSizes(llvm::ArrayRef<mlir::ReassociationIndices> groups, llvm::ArrayRef<int64_t> sizes) {
  return llvm::all_of(groups, [&](const mlir::ReassociationIndices &group) {
    return llvm::none_of(llvm::ArrayRef(group).drop_front(group.empty() ? 0 : 1),
                         [&](int64_t dim) { return mlir::ShapedType::isDynamic(sizes[dim]); });
  });
}

} // namespace fp8

#endif // FP8_ANALYSIS_RESHAPEDINDICES_H
