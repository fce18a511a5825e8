// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Folds reshapes around an fp8.matmul into its iteration space.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_FOLDRESHAPES_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_FOLDRESHAPES_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/IR/PatternMatch.h"

namespace fp8::detail {

/// Exporters flatten tensors for a two- or three-dimensional matmul and unflatten the
/// result. If all operands and results with a dimension split it into the same static sizes,
/// the matmul gets these dimensions instead: it reads operands before they are collapsed and
/// writes the result in the shape to which its only user expands it. Returns whether anything
/// changed.
bool foldReshapes(mlir::RewriterBase &rewriter, MatmulOp op);

} // namespace fp8::detail

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_FOLDRESHAPES_H
