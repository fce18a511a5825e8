// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops and branches that carry more out.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_WIDENREGIONS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_WIDENREGIONS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"

namespace fp8::detail {

/// `op` with more operands and results at its end, in its place. Its regions are the same ones:
/// the caller adds to their arguments and terminators.
inline mlir::Operation *widen(mlir::OpBuilder &builder, mlir::Operation *op, mlir::ValueRange operands,
                              mlir::TypeRange results) {
  mlir::OperationState state(op->getLoc(), op->getName());
  state.addOperands(op->getOperands());
  state.addOperands(operands);
  state.addTypes(op->getResultTypes());
  state.addTypes(results);
  state.addAttributes(op->getAttrs());
  for (mlir::Region &region : op->getRegions())
    state.addRegion()->takeBody(region);
  mlir::Operation *wider = builder.create(state);
  op->replaceAllUsesWith(wider->getResults().take_front(op->getNumResults()));
  op->erase();
  return wider;
}

} // namespace fp8::detail

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_WIDENREGIONS_H
