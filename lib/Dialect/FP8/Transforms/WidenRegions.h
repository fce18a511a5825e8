// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adds operands and results to loops and branches.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_WIDENREGIONS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_WIDENREGIONS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"

namespace fp8::detail {

/// Replaces `op` by a copy with additional operands and results at the end, and moves its regions
/// there. The caller adds arguments and terminator operands to the regions.
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
