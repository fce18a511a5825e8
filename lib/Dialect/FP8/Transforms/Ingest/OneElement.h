// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integers that a program keeps in tensors of one element, such as JAX's loop counters. Private
// to the library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_INGEST_ONEELEMENT_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_INGEST_ONEELEMENT_H

#include "mlir/IR/Builders.h"

namespace fp8 {

/// Returns whether `type` is an integer, an index, or a tensor of one element of these types.
bool holdsOneInteger(mlir::Type type);

/// Returns a value that holds the same integer as `value`: an operand of the operation that defines
/// it, or a value in the body of that operation. Returns null if there is none.
mlir::Value getElementSource(mlir::Value value);

/// Returns `value` itself if it is a scalar, else its only element.
mlir::Value extractOne(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);

/// Computes the only element of `value` at the insertion point, without tensors. Returns null if
/// `value` is not computed from scalar integers alone.
mlir::Value cloneElement(mlir::OpBuilder &builder, mlir::Value value);

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_INGEST_ONEELEMENT_H
