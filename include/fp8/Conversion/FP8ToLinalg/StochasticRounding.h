// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stochastic rounding to FP8: random bits that depend on the seed, the step and the number of the element
// alone, so that they are the same on every target and in every order of the elements.

#ifndef FP8_CONVERSION_FP8TOLINALG_STOCHASTICROUNDING_H
#define FP8_CONVERSION_FP8TOLINALG_STOCHASTICROUNDING_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace fp8 {

/// The values that all elements of one cast share.
struct RandomSource {
  mlir::Value seedLow, seedHigh, step; ///< i32
  mlir::Value first;                   ///< i64, the number of the first element; null for 0
  uint32_t stream;

  /// Takes the elements of `random` of a cast, as i64; `first` may be null.
  static RandomSource of(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value seed, mlir::Value step,
                         mlir::Value first, int64_t stream);
  /// Loads them from a memref.
  static RandomSource load(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value random, int64_t stream);
};

/// Returns whether an i32 can number the elements of a tensor of these sizes.
bool canCountIn32Bits(llvm::ArrayRef<int64_t> sizes);

/// Returns 32 random bits for element number `index` of the tensor: the first word of Philox4x32-10. `index`
/// is an i64, or an i32 that is taken as unsigned.
mlir::Value buildRandomWord(mlir::OpBuilder &builder, mlir::Location loc, const RandomSource &source,
                            mlir::Value index);

/// Converts `value` (f32) to `format` and returns the byte (i8): away from zero where `word`, 32 bits, as a
/// fraction of 2^32 is less than what truncation discards of a unit in the last place, else towards zero.
/// Saturates to the largest finite value; every NaN becomes the byte 0x7F.
mlir::Value buildStochasticFP8(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                               mlir::FloatType format, mlir::Value word);

} // namespace fp8

#endif // FP8_CONVERSION_FP8TOLINALG_STOCHASTICROUNDING_H
