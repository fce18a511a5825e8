// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Erases the operations that a rewrite left without uses, and no others.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_ERASEUNUSED_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_ERASEUNUSED_H

#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace fp8::detail {

/// Erases `op` if it is dead, and then each producer of its operands that is dead as well.
inline void eraseUnused(mlir::RewriterBase &rewriter, mlir::Operation *op) {
  llvm::SetVector<mlir::Operation *> candidates;
  candidates.insert(op);
  while (!candidates.empty()) {
    mlir::Operation *candidate = candidates.pop_back_val();
    if (!mlir::isOpTriviallyDead(candidate))
      continue;
    for (mlir::Value operand : candidate->getOperands())
      if (mlir::Operation *producer = operand.getDefiningOp())
        candidates.insert(producer);
    rewriter.eraseOp(candidate);
  }
}

} // namespace fp8::detail

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_ERASEUNUSED_H
