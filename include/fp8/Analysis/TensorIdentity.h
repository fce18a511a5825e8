// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// When two operands are the same tensor, however each contraction views it.

#ifndef FP8_ANALYSIS_TENSORIDENTITY_H
#define FP8_ANALYSIS_TENSORIDENTITY_H

#include "fp8/Analysis/ValueNumbers.h"
#include "llvm/ADT/SmallVector.h"

namespace fp8 {

/// What dimensions of a tensor are to a contraction: a set, as a reshape may have made
/// one dimension of several.
enum DimUse : uint8_t { kUnused = 0, kBatch = 1, kFree = 2, kContracted = 4 };
using DimUses = llvm::SmallVector<uint8_t>;

/// A tensor and the uses of its dimensions. Dimensions of size 1 are left out.
struct TensorUse {
  unsigned tensor;
  DimUses uses;
  bool operator<(const TensorUse &other) const {
    return std::tie(tensor, uses) < std::tie(other.tensor, other.uses);
  }
};

/// Numbers tensors: values get the same number if they hold the same elements up to
/// rounding, in whatever shape and order. It sees through casts, transposes, reshapes,
/// unit dimensions, values that loops hand on unchanged, stacks (what one loop
/// inserts at its index and another extracts at its own), and values computed again.
class TensorIdentity {
public:
  explicit TensorIdentity(mlir::FunctionOpInterface function) : equalValues(function) {}
  /// The tensor that `value` is a view of. `uses` has an entry per dimension of `value`.
  TensorUse resolve(mlir::Value value, DimUses uses);

private:
  unsigned number(mlir::Value value);

  ValueNumbers equalValues;
  llvm::DenseMap<unsigned, unsigned> values; ///< by their number among equal ones
  /// Slices: the tensor, then offsets, sizes and strides; kDynamic where they vary.
  std::map<std::pair<unsigned, std::vector<int64_t>>, unsigned> slices;
  unsigned count = 0;
};

/// The function argument, global or constant of floats that `value` is a view of:
/// behind casts, transposes, broadcasts, reshapes and slices. Null for what is computed.
mlir::Value getParameter(mlir::Value value);

} // namespace fp8

#endif // FP8_ANALYSIS_TENSORIDENTITY_H
