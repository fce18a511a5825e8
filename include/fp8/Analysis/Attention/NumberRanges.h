// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranges of numbers, and what operations make of them.

#ifndef FP8_ANALYSIS_ATTENTION_NUMBERRANGES_H
#define FP8_ANALYSIS_ATTENTION_NUMBERRANGES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include <limits>
#include <optional>

namespace fp8 {

/// Numbers from `low` to `high`, which may be infinite. It contains every value that the code computes, with
/// roundings in its types and an error of math functions of two units in the last place.
struct NumberRange {
  double low, high;
  bool hasNaN = false;

  bool isExactly(double number) const { return low == number && high == number && !hasNaN; }
  bool isFinite() const;

  /// Every number, and NaN.
  static constexpr NumberRange unknown() {
    return {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity(), true};
  }
  static constexpr NumberRange anyBit() { return {0, 1}; }
};

/// Returns a range that contains both.
NumberRange join(const NumberRange &x, const NumberRange &y);
/// Adds the error of two units in the last place of `type`, and what becomes of numbers that it has not.
NumberRange widen(NumberRange x, mlir::Type type);

/// Returns `number`, or the largest one of `type`, a float, if that is less.
double limitToType(double number, mlir::Type type);

/// Exact results on the numbers of ranges. Infinities that cancel, and zero times infinity, are NaN.
NumberRange add(const NumberRange &x, const NumberRange &y);
NumberRange negate(const NumberRange &x);
NumberRange multiply(const NumberRange &x, const NumberRange &y);

/// Returns the range of an operation on floats, widened; nullopt if the operation is not known here.
std::optional<NumberRange> computeFloat(mlir::Operation *op, llvm::ArrayRef<NumberRange> x);
/// Returns the range of the bit that compares `x` with `y`; `isSame` where both are the same value.
NumberRange compareFloats(mlir::arith::CmpFPredicate predicate, const NumberRange &x, const NumberRange &y,
                          bool isSame);

} // namespace fp8

#endif // FP8_ANALYSIS_ATTENTION_NUMBERRANGES_H
