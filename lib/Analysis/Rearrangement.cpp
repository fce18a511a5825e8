// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recognizes transposes, broadcasts and casts.

#include "fp8/Analysis/Rearrangement.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

std::optional<fp8::Rearrangement> fp8::matchRearrangement(Operation *op) {
  if (isa<arith::ExtFOp, arith::TruncFOp>(op)) {
    auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (!type)
      return std::nullopt;
    return Rearrangement{op->getOperand(0),
                         AffineMap::getMultiDimIdentityMap(type.getRank(), op->getContext()), op};
  }
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  if (!structured || !structured.hasPureTensorSemantics() || structured.getNumDpsInputs() != 1 ||
      structured.getNumDpsInits() != 1 || structured.getNumReductionLoops() != 0)
    return std::nullopt;
  OpOperand *input = structured.getDpsInputOperand(0);
  AffineMap in = structured.getMatchingIndexingMap(input);
  AffineMap out = structured.getMatchingIndexingMap(structured.getDpsInitOperand(0));
  if (!isa<RankedTensorType>(input->get().getType()) ||
      !in.isProjectedPermutation(/*allowZeroInResults=*/true) || !out.isPermutation())
    return std::nullopt;

  Value yielded = structured.getBlock()->getTerminator()->getOperand(0);
  Operation *castOp = yielded.getDefiningOp();
  if (isa_and_present<arith::ExtFOp, arith::TruncFOp>(castOp))
    yielded = castOp->getOperand(0);
  else
    castOp = nullptr;
  if (yielded != structured.getMatchingBlockArgument(input))
    return std::nullopt;
  return Rearrangement{input->get(), in.compose(inversePermutation(out)), castOp};
}
