// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loops of a convolution, and the elements that its operands are read at: sums of loops. A convolution
// whose windows do not overlap (kernels of one element, patches, kernels of the size of the image) is a
// matmul in other loops.
//
// Its gradients are convolutions of other forms. That of the kernel is strided, or reads dy at strides, in a
// tensor of zeros; that of the image reads dy so, and the kernel backwards. The elements between those of dy
// are none of the convolution that the program stands for: they are left out, not multiplied.

#ifndef FP8_ANALYSIS_WINDOWLOOPS_H
#define FP8_ANALYSIS_WINDOWLOOPS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <optional>

namespace fp8 {

/// The index along one dimension of a tensor: constant + Σ factors[l] · loop l.
struct LoopSum {
  llvm::SmallVector<int64_t> factors;
  int64_t constant = 0;

  llvm::SmallVector<unsigned> loops() const;
};

/// An operand, and the index along each of its dimensions.
struct WindowRead {
  mlir::Value tensor;
  llvm::SmallVector<LoopSum> indices;

  mlir::RankedTensorType type() const { return mlir::cast<mlir::RankedTensorType>(tensor.getType()); }
};

/// A dimension of the result: the loops that count its elements, the last one fastest, and the elements among
/// `size` that they count. All others are zeros.
struct WindowResult {
  llvm::SmallVector<unsigned> loops;
  int64_t offset = 0, stride = 1, size = 0;
  bool hasZeros = false;
};

/// A convolution on its way to a matmul.
struct WindowLoops {
  llvm::SmallVector<int64_t> sizes; ///< of the loops; a loop that is gone has none that counts
  llvm::SmallVector<mlir::utils::IteratorType> iterators;
  WindowRead operands[2];
  llvm::SmallVector<WindowResult> result;

  /// Returns the loops of `op`, rewritten to those of a matmul: the index along each dimension of an
  /// operand is constant, or that of one loop, or of two that count it without a gap. Unset for a convolution
  /// of windows that overlap, and for every other operation.
  static std::optional<WindowLoops> of(mlir::linalg::LinalgOp op);
};

/// The loops that count a dimension of an operand: index = offset + stride · (width · outer + inner), inner
/// below `width`. Without `outer` the stride counts `inner`, and without both the index is `offset`.
struct CountedDim {
  std::optional<unsigned> outer, inner;
  int64_t offset = 0, stride = 1, width = 1;
};
/// Returns the loops of `index`; unset if it is no such index, or goes beyond `size`.
std::optional<CountedDim> countDim(const LoopSum &index, llvm::ArrayRef<int64_t> sizes, int64_t size);

} // namespace fp8

#endif // FP8_ANALYSIS_WINDOWLOOPS_H
