// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decides whether two operands are the same tensor, whatever views contractions read it through.

#ifndef FP8_ANALYSIS_TENSORIDENTITY_H
#define FP8_ANALYSIS_TENSORIDENTITY_H

#include "fp8/Analysis/ValueNumbers.h"
#include "llvm/ADT/SmallVector.h"

namespace fp8 {

/// How a contraction uses a dimension of a tensor: a set of flags, because a reshape may join
/// several dimensions with different uses.
enum DimUse : uint8_t { kUnused = 0, kBatch = 1, kFree = 2, kContracted = 4 };
using DimUses = llvm::SmallVector<uint8_t>;

/// A tensor and how its dimensions are used. Dimensions of size 1 are left out.
struct TensorUse {
  unsigned tensor;
  DimUses uses;
  bool operator<(const TensorUse &other) const {
    return std::tie(tensor, uses) < std::tie(other.tensor, other.uses);
  }
};

/// Numbers tensors: values get the same number if they have the same elements up to rounding, in
/// any shape and order. It looks through casts, transposes, reshapes, unit dimensions, values
/// that loops forward unchanged, what the branch of an equal selector yields, and stacks (tensors that one
/// loop fills slice by slice at its induction variable and another loop reads at its own), and recognizes
/// recomputed values.
class TensorIdentity {
public:
  explicit TensorIdentity(mlir::FunctionOpInterface function) : equalValues(function) {}
  /// Returns the tensor that `value` is a view of as `reader`, an operand of which it is, reads it, with the
  /// uses of its dimensions; `uses` are those of the dimensions of `value`.
  TensorUse resolve(mlir::Value value, DimUses uses, mlir::Operation *reader);

private:
  unsigned number(mlir::Value value, mlir::Operation *reader);

  ValueNumbers equalValues;
  llvm::DenseMap<unsigned, unsigned> values; ///< by their number among equal ones
  /// Slices: the tensor, then offsets, sizes and strides; kDynamic where they vary.
  std::map<std::pair<unsigned, std::vector<int64_t>>, unsigned> slices;
  unsigned count = 0;
};

/// Returns the function argument, global or constant of floats that `value` is a view of, through
/// casts, transposes, broadcasts, reshapes, slices and gathers of the parts that ranks have. Returns null for
/// a computed value.
mlir::Value getParameter(mlir::Value value);

} // namespace fp8

#endif // FP8_ANALYSIS_TENSORIDENTITY_H
