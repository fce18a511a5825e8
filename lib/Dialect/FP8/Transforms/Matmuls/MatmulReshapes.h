// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reshapes beside an fp8.matmul that split its dimensions.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_MATMULRESHAPES_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_MATMULRESHAPES_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace fp8::detail {

/// A reshape of an operand or the result: the sizes that each dimension on the matmul's side is
/// split into (one size: not split). Without an op nothing is split.
struct Reshape {
  mlir::Operation *op = nullptr;
  mlir::SmallVector<mlir::SmallVector<int64_t>> sizes;
};

/// Returns the reshape that splits the dimensions of `expand`'s operand; an empty one if a split size is
/// dynamic.
Reshape getReshape(mlir::tensor::ExpandShapeOp expand);

/// Returns the reshapes of both operands and of the result, in the order of the indexing maps. A result that
/// has other readers, or adds to its init, has none.
mlir::SmallVector<Reshape, 3> findReshapes(MatmulOp op);

/// Returns the sizes that `reshape` splits the dimension at `position` into, or none.
mlir::ArrayRef<int64_t> getSplit(const Reshape &reshape, unsigned position);

/// Where two of the three tensors of `op` split a dimension of the batch in one way, and the third has no
/// reshape, expands the third and collapses it again, so that all three agree. One of the two must be part of
/// elementwise code that works on the split dimensions, and the third must not be part of code that works on
/// the joined ones; a result may be, if it is split in this way behind that code.
void splitThirdTensor(mlir::RewriterBase &rewriter, MatmulOp op);

} // namespace fp8::detail

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_MATMULRESHAPES_H
