// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bounds of tensors that are checked when the program runs.

#ifndef FP8_DIALECT_FP8_IR_MAGNITUDE_H
#define FP8_DIALECT_FP8_IR_MAGNITUDE_H

#include "mlir/IR/Builders.h"

namespace fp8 {

/// Builds the largest magnitude of a tensor of floats of up to 32 bits, an f32 of rank 0; infinity if the
/// tensor has a NaN.
mlir::Value buildMagnitude(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tensor);

} // namespace fp8

#endif // FP8_DIALECT_FP8_IR_MAGNITUDE_H
