// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loss among the results of a step, and whether the step has gradients. Private to the library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_LOSS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_LOSS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace fp8 {

/// Returns the argument that result `index` is the next value of; none for a result of the program.
std::optional<unsigned> findCarried(mlir::func::FuncOp function, unsigned index);

/// Returns the results that are a scalar of floating point and are not carried.
llvm::SmallVector<unsigned> findScalarResults(mlir::func::FuncOp function);

/// Returns the number of the result that is the loss: `given`, or with -1 the only scalar of floating point
/// that is not carried. Emits an error, in the words of `purpose` ("loss scaling"), where that is none.
llvm::FailureOr<unsigned> findLoss(mlir::func::FuncOp function, int64_t given, llvm::StringRef purpose);

/// Returns whether a matmul of `function` reads the gradient of an output, as those of training steps do
/// and those of an evaluation do not.
bool hasGradientMatmuls(mlir::func::FuncOp function);

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_LOSS_H
