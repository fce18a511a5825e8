// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Looks through operations that keep zeros.

#include "fp8/Analysis/Zeros.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

bool fp8::isFilledWithZeros(Value value) {
  if (matchPattern(value, m_AnyZeroFloat()))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  DenseFPElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)))
    return elements.isSplat() && elements.getSplatValue<APFloat>().isZero();
  if (isa<tensor::CastOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp,
          tensor::SplatOp, arith::ExtFOp, arith::TruncFOp>(op))
    return isFilledWithZeros(op->getOperand(0));
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  if (!structured || structured.getNumReductionLoops() != 0 || op->getNumResults() != 1)
    return false;
  // Fills, broadcasts, transposes: the body yields an input that is zero.
  Value yielded = structured.getBlock()->getTerminator()->getOperand(0);
  auto argument = dyn_cast<BlockArgument>(yielded);
  if (!argument || argument.getOwner() != structured.getBlock())
    return matchPattern(yielded, m_AnyZeroFloat());
  return isFilledWithZeros(structured.getMatchingOpOperand(argument)->get());
}
