// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tensors that a step reads from memory more than once, and why fusion left each read there.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_REPEATEDREADS_H
#define FP8_DIALECT_FP8_TRANSFORMS_REPEATEDREADS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace fp8 {

/// An operation that reads a tensor from memory.
struct TensorReader {
  mlir::Operation *op;
  /// How often it reads each value of the tensor: once, or as often as the loops run that stand between;
  /// unset if that is known only at run time.
  std::optional<int64_t> times;
  std::string reason; ///< why it does not get the elements from the operation that computes them
};

/// A tensor with dimensions, and all operations that read it, in the order of the program.
struct RepeatedRead {
  mlir::Value tensor;
  llvm::SmallVector<TensorReader> readers;
};

/// Returns the tensors of `function` after stage 3 that more than one operation reads, or one in a loop that
/// leaves the tensor unchanged, in the order of the program. Reads through reshapes count as reads of the
/// tensor, a slice is a tensor of its own, and of two branches only one runs.
std::vector<RepeatedRead> findRepeatedReads(mlir::func::FuncOp function);

} // namespace fp8

#endif // FP8_DIALECT_FP8_TRANSFORMS_REPEATEDREADS_H
