// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Computes single operations of arith and math on numbers, at compile time. Analyses that compare what two
// pieces of code compute evaluate both on some numbers.

#ifndef FP8_ANALYSIS_ATTENTION_SCALARVALUES_H
#define FP8_ANALYSIS_ATTENTION_SCALARVALUES_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/APInt.h"
#include <optional>
#include <variant>

namespace fp8 {

/// A number: a float of any type as an f64, or an integer of its width (an index has 64 bits).
using ScalarValue = std::variant<double, llvm::APInt>;

/// The rounding of the result of an operation on floats.
enum class Rounding {
  toType, ///< it is rounded to its type, to nearest even
  none    ///< it stays an f64, as if every float type were f64
};

/// Returns the number that `attribute`, of a constant, stands for; nothing for other attributes.
std::optional<ScalarValue> getScalarValue(mlir::Attribute attribute);

/// Computes the one result of `op`, an operation of arith or math on scalars or, element by element, on
/// tensors. Math functions are those of the C library on f64. Returns nothing for operations that it does not
/// know, and where the result is undefined (a division by zero).
std::optional<ScalarValue> computeScalar(mlir::Operation *op, llvm::ArrayRef<ScalarValue> operands,
                                         Rounding rounding);

} // namespace fp8

#endif // FP8_ANALYSIS_ATTENTION_SCALARVALUES_H
