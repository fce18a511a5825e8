// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads the roles of iteration dimensions off the indexing maps of a matmul.

#ifndef FP8_DIALECT_FP8_IR_CONTRACTIONDIMS_H
#define FP8_DIALECT_FP8_IR_CONTRACTIONDIMS_H

#include "mlir/IR/AffineMap.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace fp8 {

/// Iteration dimensions of a matmul, each list in increasing order.
struct ContractionDims {
  llvm::SmallVector<unsigned> batch; ///< in both operands and the result
  llvm::SmallVector<unsigned> m;     ///< in the first operand and the result
  llvm::SmallVector<unsigned> n;     ///< in the second operand and the result
  llvm::SmallVector<unsigned> k;     ///< in both operands only: summed over
};

/// Classifies the iteration dimensions of `maps` (first operand, second operand, result).
/// Returns nullopt if the maps are not projected permutations of one iteration space, or if
/// a dimension occurs in only one of the maps. Matmuls without K dimensions are classified
/// too, with an empty `k`.
std::optional<ContractionDims> inferContractionDims(llvm::ArrayRef<mlir::AffineMap> maps);

/// The dimensions of a grouped matmul (fp8.grouped_matmul).
struct GroupedDims {
  unsigned group;   ///< in one of the maps only
  unsigned rows;    ///< in the other two maps; the rows are divided among the groups
  unsigned divided; ///< the map that has the groups: 0, 1 for an operand, 2 for the result
};

/// Classifies the dimensions of `maps` (first operand, second operand, result) of a grouped matmul. Returns
/// nullopt if there is not one dimension of groups, or if the maps without it are not those of a matmul
/// with one M, one N and one K dimension.
std::optional<GroupedDims> inferGroupedDims(llvm::ArrayRef<mlir::AffineMap> maps);

/// Returns the maps of the matmul of one group: those of a grouped matmul without the dimension of the
/// groups, which dimensions after it move to.
llvm::SmallVector<mlir::AffineMap> dropGroup(llvm::ArrayRef<mlir::AffineMap> maps, unsigned group);

/// The iteration dimensions of attention, each list in increasing order.
struct AttentionDims {
  llvm::SmallVector<unsigned> outer; ///< in the output, and in query or key: a row of scores for each index
  llvm::SmallVector<unsigned> keys;  ///< in key and value only: the dimensions of a row of scores
  llvm::SmallVector<unsigned> depth; ///< in query and key only
  llvm::SmallVector<unsigned> width; ///< in value and output only
};

/// The numbers for which `visible_keys` of attention speaks: larger scores, and larger gradients of
/// probabilities, are computed with all keys. Scores of training are far below; masks that add -1e9 are far
/// beyond.
inline constexpr double kMostScore = 0x1p24, kMostGradient = 0x1p40;

/// Returns the number c if result `result` of the map `visible`, a `visible_keys`, is that of dimension `row`
/// plus c; nullopt if it is not: c of the first result, or the last, limits the keys of blocks of rows.
std::optional<int64_t> getKeyDistance(mlir::AffineMap visible, unsigned result, unsigned row);

/// Classifies the iteration dimensions of attention. Returns nullopt if the maps are not projected
/// permutations of one iteration space, if a dimension is of none of these kinds, or if there are no outer
/// dimensions, keys or depth.
std::optional<AttentionDims> inferAttentionDims(mlir::AffineMap query, mlir::AffineMap key,
                                                mlir::AffineMap value, mlir::AffineMap output);

/// Returns the number of floating-point operations of a matmul, two for every multiplication with
/// its addition, from the shapes of its operands; nullopt if a size is not known.
std::optional<int64_t> countMatmulOperations(llvm::ArrayRef<mlir::AffineMap> maps,
                                             llvm::ArrayRef<int64_t> lhs, llvm::ArrayRef<int64_t> rhs);

} // namespace fp8

#endif // FP8_DIALECT_FP8_IR_CONTRACTIONDIMS_H
