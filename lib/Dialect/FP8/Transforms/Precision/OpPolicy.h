// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The op policy of mixed precision for elementwise operations. Private to the room.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_PRECISION_OPPOLICY_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_PRECISION_OPPOLICY_H

#include "NarrowValues.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace fp8 {

/// Returns the type that the policy gives to the f32 result of `op`, arithmetic on scalars or whole tensors,
/// of operands of `types`: f32 for functions that need it (exp, log, pow, …) and for casts; else the widest
/// type of the operands. Null if all operands are constants.
mlir::Type getResultType(mlir::Operation *op, llvm::ArrayRef<mlir::Type> types);

/// Whether `op` is arithmetic on floats: each element of the result is computed from the elements at its
/// place.
bool isArithmetic(mlir::Operation *op);

/// Rewrites `op`, which reads narrow values, so that it reads them, computes as the policy says and has
/// narrow results where the policy gives them. Sums and other reductions are in f32.
void narrowLinalg(mlir::RewriterBase &rewriter, mlir::linalg::LinalgOp op, NarrowValues &values);

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_PRECISION_OPPOLICY_H
