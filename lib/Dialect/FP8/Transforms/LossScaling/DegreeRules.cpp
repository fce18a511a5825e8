// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of operations that are linear, and how a factor of what they read is one of what they compute.

#include "CotangentPaths.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp8;

using Kind = DegreeRule::Kind;

static bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value)); }

/// Returns whether `op` is a collective that moves elements, adds or compares them.
static bool isLinearCollective(Operation *op) {
  if (!isa<CollectiveOpInterface>(op))
    return false;
  return cast<CollectiveOpInterface>(op).getStep().reduction != ReduceKind::product;
}

/// Operations whose result is one of the operands, their sum, or a rearrangement of their elements. The
/// maximum and the magnitude are among them, because the scale is positive.
static bool isSame(Operation *op) {
  return isa<arith::AddFOp, arith::SubFOp, arith::NegFOp, arith::ExtFOp, arith::TruncFOp, arith::SelectOp,
             arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp, math::AbsFOp,
             tensor::CastOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ReshapeOp,
             tensor::ExtractSliceOp, tensor::InsertSliceOp, tensor::ConcatOp, tensor::ExtractOp,
             tensor::InsertOp, tensor::FromElementsOp, tensor::SplatOp, tensor::PadOp>(op) ||
         isLinearCollective(op);
}

bool fp8::isOnlyHomogeneous(Operation *op) {
  if (auto collective = dyn_cast<CollectiveOpInterface>(op)) {
    ReduceKind kind = collective.getStep().reduction;
    return kind == ReduceKind::max || kind == ReduceKind::min;
  }
  return isa<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp, math::AbsFOp>(op);
}

bool fp8::isLinear(Operation *op) {
  if (isa<func::ReturnOp>(op))
    return false;
  if (isa<linalg::YieldOp, scf::YieldOp, tensor::YieldOp>(op))
    return op->getParentOp() && isLinear(op->getParentOp());
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    return structured.hasPureTensorSemantics();
  if (auto matmul = dyn_cast<MatmulOp>(op))
    return matmul.isPlain();
  return isSame(op) ||
         isa<GroupedMatmulOp, arith::MulFOp, arith::DivFOp, scf::ForOp, scf::IfOp, tensor::DimOp>(op);
}

static DegreeRule makeSame(ArrayRef<OpOperand *> reads) {
  DegreeRule rule;
  rule.kind = Kind::same;
  rule.reads.assign(reads.begin(), reads.end());
  return rule;
}

static DegreeRule makeFixed(Degree degree) {
  DegreeRule rule;
  rule.degree = degree;
  return rule;
}

static bool isZero(Operation *op) {
  if (isa<tensor::EmptyOp>(op) || matchPattern(op, m_AnyZeroFloat()))
    return true;
  DenseFPElementsAttr elements;
  return matchPattern(op, m_Constant(&elements)) && elements.isSplat() &&
         elements.getSplatValue<APFloat>().isZero();
}

/// The argument of a body or a loop: the value that enters there, and for a sum or a loop the
/// value that comes round.
static DegreeRule getRule(BlockArgument argument) {
  Operation *owner = argument.getOwner()->getParentOp();
  if (auto loop = dyn_cast_or_null<scf::ForOp>(owner); loop && argument.getArgNumber() > 0) {
    unsigned i = argument.getArgNumber() - 1;
    return makeSame({&loop.getInitsMutable()[i], &loop.getBody()->getTerminator()->getOpOperand(i)});
  }
  auto structured = dyn_cast_or_null<linalg::LinalgOp>(owner);
  if (!structured || !structured.hasPureTensorSemantics())
    return makeFixed(Degree::zero);
  OpOperand *outside = structured.getMatchingOpOperand(argument);
  unsigned inputs = structured.getNumDpsInputs();
  if (argument.getArgNumber() < inputs)
    return makeSame(outside);
  if (argument.use_empty())
    return makeFixed(Degree::any);
  OpOperand &last = structured.getBlock()->getTerminator()->getOpOperand(argument.getArgNumber() - inputs);
  if (structured.getNumReductionLoops() == 0)
    return makeSame(outside);
  return makeSame({outside, &last});
}

/// The results of loops, branches and linalg ops are what their regions yield.
static DegreeRule getRuleOfYield(OpResult result) {
  Operation *op = result.getOwner();
  unsigned i = result.getResultNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return makeSame({&loop.getInitsMutable()[i], &loop.getBody()->getTerminator()->getOpOperand(i)});
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return makeSame({&branch.thenYield()->getOpOperand(i), &branch.elseYield()->getOpOperand(i)});
  return makeSame(&cast<linalg::LinalgOp>(op).getBlock()->getTerminator()->getOpOperand(i));
}

static DegreeRule getRuleOfMatmul(MatmulOp op) {
  DegreeRule rule;
  rule.kind = Kind::product;
  rule.reads = {&op.getLhsMutable(), &op.getRhsMutable()};
  if (op.readsInit())
    rule.addend = &op.getOutsMutable()[0];
  return rule;
}

DegreeRule fp8::getDegreeRule(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return getRule(argument);
  Operation *op = value.getDefiningOp();
  if (isZero(op))
    return makeFixed(Degree::any);
  if (!isLinear(op))
    return makeFixed(Degree::zero);
  if (isa<scf::ForOp, scf::IfOp, linalg::LinalgOp>(op))
    return getRuleOfYield(cast<OpResult>(value));
  if (auto matmul = dyn_cast<MatmulOp>(op))
    return getRuleOfMatmul(matmul);
  DegreeRule rule;
  if (isa<GroupedMatmulOp>(op)) {
    rule.kind = Kind::product;
    rule.reads = {&op->getOpOperand(0), &op->getOpOperand(1)};
    return rule;
  }
  rule.kind = isa<arith::MulFOp>(op) ? Kind::product : isa<arith::DivFOp>(op) ? Kind::quotient : Kind::same;
  for (OpOperand &operand : op->getOpOperands())
    if (isFloat(operand.get()))
      rule.reads.push_back(&operand);
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    rule.reads.push_back(&pad.getBody()->getTerminator()->getOpOperand(0));
  return rule;
}
