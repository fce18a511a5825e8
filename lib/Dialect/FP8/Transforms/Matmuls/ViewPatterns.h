// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Patterns on reshapes, transposes and copies, after which a matmul can take them in.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_VIEWPATTERNS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_VIEWPATTERNS_H

#include "mlir/IR/PatternMatch.h"

namespace fp8::detail {

/// Returns whether the reader of `input` is elementwise code whose one result has each element at the place
/// of the input's.
bool isElementwise(mlir::OpOperand &input);

/// Adds patterns that take dimensions of size 1 out of transposes, and make one reshape of two, if they are
/// one: PyTorch's einsum puts such dimensions into both operands and takes them out of the result.
void populateUnitDimensionPatterns(mlir::RewritePatternSet &patterns);

/// Adds patterns that move reshapes which join the batch of a matmul behind elementwise code on its result.
void populateSplitBatchPatterns(mlir::RewritePatternSet &patterns);

/// Adds patterns that repeat a bf16 or f16 tensor before it is widened to f32, not after it.
void populateWidenLastPatterns(mlir::RewritePatternSet &patterns);

} // namespace fp8::detail

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_VIEWPATTERNS_H
