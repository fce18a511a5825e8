// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds where an element of a tensor comes from: another tensor's element, an index, a constant, or an
// operation on scalars.

#ifndef FP8_ANALYSIS_ELEMENTTRACE_H
#define FP8_ANALYSIS_ELEMENTTRACE_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/AffineExpr.h"

namespace fp8 {

/// One iteration of a linalg operation: the index of each of its loops, as expressions of the dimensions that
/// a trace began with.
struct LoopFrame {
  mlir::linalg::LinalgOp op;
  llvm::SmallVector<mlir::AffineExpr> loops;
};

/// Where an element comes from.
struct TracedElement {
  enum class Kind {
    element,  ///< the element `at` of `value`, a tensor
    index,    ///< an integer whose value is `index`
    constant, ///< `constant`
    scalar    ///< `value`, computed by an operation in the iteration `frame` of a linalg operation
  };
  Kind kind;
  mlir::Value value;
  llvm::SmallVector<mlir::AffineExpr> at;
  mlir::AffineExpr index;
  mlir::Attribute constant;
  LoopFrame frame;

  bool operator==(const TracedElement &other) const;
};

/// Decides where a trace ends early: at an element of a tensor, given its indices.
using StopTrace = llvm::function_ref<bool(llvm::ArrayRef<mlir::AffineExpr> at)>;

/// Traces the element `at` of `tensor` through elementwise linalg operations that only move elements,
/// slices, concatenations, constants and, where their conditions are known, branches.
TracedElement traceElement(mlir::Value tensor, llvm::ArrayRef<mlir::AffineExpr> at, StopTrace stop = {});

/// Traces a scalar that `frame` computes or reads.
TracedElement traceScalar(mlir::Value scalar, const LoopFrame &frame, StopTrace stop = {});

} // namespace fp8

#endif // FP8_ANALYSIS_ELEMENTTRACE_H
