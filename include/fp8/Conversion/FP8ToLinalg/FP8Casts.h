// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exact conversions between f32 and FP8 in integer arithmetic.

#ifndef FP8_CONVERSION_FP8TOLINALG_FP8CASTS_H
#define FP8_CONVERSION_FP8TOLINALG_FP8CASTS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace fp8 {

/// Converts `value` (f32, or a vector of f32) to `format`: to nearest even, saturating to the
/// largest finite value; every NaN becomes the byte 0x7F.
mlir::Value buildEncodeFP8(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                           mlir::FloatType format);

/// Converts `value`, an FP8 scalar or vector, to f32. Exact.
mlir::Value buildDecodeFP8(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);

/// Widens any float up to 32 bits to f32.
mlir::Value buildWiden(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);

/// Returns the bits of |value| (f32), 0 for NaN. As unsigned integers they are ordered like the
/// magnitudes.
mlir::Value buildMagnitudeBits(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);

/// Rounds an f32 once to `type` (f32, bf16, f16 or f64).
mlir::Value buildNarrow(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::Type type);

/// Builds the `f8E8M0FNU` value of 1 / `scale`, an f32 power of two from 2^-127 to 2^127; NaN stays NaN.
mlir::Value buildInverseE8M0(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value scale);

/// Builds the f32 value of `value`, an `f8E8M0FNU`.
mlir::Value buildDecodeE8M0(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);

} // namespace fp8

#endif // FP8_CONVERSION_FP8TOLINALG_FP8CASTS_H
