// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integers that a program keeps in tensors of one element, as JAX's counters are. Private to
// the library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_INGEST_ONEELEMENT_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_INGEST_ONEELEMENT_H

#include "mlir/IR/Builders.h"

namespace fp8 {

/// True for integers, indices, and tensors of one of these.
bool holdsOneInteger(mlir::Type type);

/// What holds the same integer as `value`, an operand or a value of the body of the operation
/// that makes it; null where `value` is computed, or unknown.
mlir::Value getElementSource(mlir::Value value);

/// `value` itself, or the only element of the tensor `value`.
mlir::Value extractOne(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);

/// The only element of `value`, computed where `builder` stands without tensors; null where
/// `value` follows from anything but integers outside of tensors.
mlir::Value cloneElement(mlir::OpBuilder &builder, mlir::Value value);

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_INGEST_ONEELEMENT_H
