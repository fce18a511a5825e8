// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parts of attention besides its two matmuls: readers of scores and probabilities, the matmuls of the
// backward pass, and all operands in one iteration space. Private to the library.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTIONPARTS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTIONPARTS_H

#include "fp8/Analysis/Attention/Attention.h"

namespace fp8::detail {

/// A tensor as elements of attention: the index in each dimension, in the dimensions of the probabilities; 0
/// for dimensions of size 1.
using Places = llvm::SmallVector<mlir::AffineExpr>;

/// A matmul that reads a row of attention.
struct RowReader {
  MatmulOp matmul;
  unsigned operand;
  Places places; ///< of that operand
};

/// Rows that the program needs besides the matmuls of attention, such as the gradient of a bias: a tensor of
/// them, or their sum over other dimensions than keys.
struct FurtherRows {
  mlir::Value rows;
  Places places;           ///< of `rows`
  mlir::Value result;      ///< `rows` themselves, or their sum
  Places resultPlaces;     ///< of `result`; a sum lacks the dimensions that it sums over
  mlir::Operation *reader; ///< what needs them
  bool isSum() const { return rows != result; }
};

/// Follows what is computed from the scores, as far as it is code on elements and rows.
struct AttentionReaders {
  explicit AttentionReaders(const AttentionSite &site);

  llvm::SmallVector<FurtherRows> further;          ///< in program order
  llvm::SmallVector<RowReader> matmuls;            ///< besides the output, in program order
  llvm::SmallVector<mlir::Operation *> members;    ///< all operations of the code, forward and backward
  llvm::MapVector<mlir::Value, Places> statistics; ///< results of members that have one element for each row
};

/// One operand of attention in its iteration space.
struct Operand {
  mlir::Value tensor;
  mlir::AffineMap map;
};

/// A matmul of the backward pass: its result in the iteration space.
struct GradientMatmul {
  MatmulOp matmul;
  mlir::AffineMap map;
};

/// All operands of attention and of its backward pass.
struct AttentionParts {
  /// Sets `reason` if the matmuls do not fit together. `isOrdered`: their sums must be in the order of the
  /// rows.
  AttentionParts(const AttentionSite &site, const AttentionReaders &readers, bool isOrdered);

  std::string reason;
  AttentionDims dims;
  Operand query, key, value, output;
  /// The matmuls and code of the backward pass, if there is one.
  bool hasGradients = false;
  Operand outputGrad;
  MatmulOp probabilityGrad; ///< the row of gradients of the probabilities
  const CodeNode *probabilityGradNode = nullptr;
  GradientMatmul queryGrad, keyGrad, valueGrad;
  const CodeNode *valueRow = nullptr, *scoreGradRow = nullptr; ///< the rows that those are made of
  llvm::SmallVector<const CodeNode *> furtherRows;             ///< those of `AttentionReaders::further`
  llvm::SmallVector<Operand> further;                          ///< their results

private:
  std::string fitForward(const AttentionSite &site);
  std::string fitBackward(const AttentionSite &site, const AttentionReaders &readers);
  std::string fitProbabilityGrad(const AttentionSite &site);
  std::string fitFurther(const AttentionSite &site, const AttentionReaders &readers);
  unsigned numDims = 0;
  bool isOrdered;
};

} // namespace fp8::detail

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTIONPARTS_H
