// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code that loss scaling adds to a program. Private to the room.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_LOSSSCALING_SCALEDREADS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_LOSSSCALING_SCALEDREADS_H

#include "mlir/IR/PatternMatch.h"

namespace fp8 {

/// Multiplies what each of `reads` reads by `scale`, an f32 tensor of rank 0: in f32, rounded to the type of
/// the value. A read in the body of a linalg op is multiplied there.
void scaleReads(mlir::RewriterBase &rewriter, llvm::ArrayRef<mlir::OpOperand *> reads, mlir::Value scale);

/// Creates a tensor that is `old` where `found`, an f32 tensor of rank 0, is not 0, and `value` where it is.
mlir::Value buildChoice(mlir::RewriterBase &rewriter, mlir::Value found, mlir::Value old, mlir::Value value);

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_LOSSSCALING_SCALEDREADS_H
