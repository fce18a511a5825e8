// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Traces a value back to comparisons, through operations that keep 0 and 1.

#include "fp8/Analysis/OneHot.h"
#include "fp8/Analysis/RegionFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace {

class ZeroOrOne {
public:
  bool holds(Value value);
  /// Returns whether the trace found a comparison. Without one the value is constant, such as the zeros
  /// of the initial state of a recurrent cell, and selects nothing.
  bool readsComparison() const { return comparison; }

private:
  bool holdsOfAll(ValueRange values) {
    return llvm::all_of(values, [&](Value value) { return holds(value); });
  }
  bool holdsOfResult(Operation *op, Value result);

  bool comparison = false;
  llvm::SmallPtrSet<Value, 16> seen; ///< visited values; a loop may lead back to one
};

} // namespace

static bool isZeroOrOne(const APInt &value) { return value.isZero() || value.isOne(); }
static bool isZeroOrOne(const APFloat &value) { return value.isPosZero() || value.isExactlyValue(1.0); }

static bool isConstantZeroOrOne(Attribute value) {
  if (auto number = dyn_cast<FloatAttr>(value))
    return isZeroOrOne(number.getValue());
  if (auto number = dyn_cast<IntegerAttr>(value))
    return isZeroOrOne(number.getValue());
  // A splat of scores may have 10^9 elements.
  if (auto splat = dyn_cast<SplatElementsAttr>(value))
    return isConstantZeroOrOne(splat.getSplatValue<Attribute>());
  auto all = [](auto values) { return llvm::all_of(values, [](const auto &v) { return isZeroOrOne(v); }); };
  if (auto floats = dyn_cast<DenseFPElementsAttr>(value))
    return all(floats.getValues<APFloat>());
  if (auto integers = dyn_cast<DenseIntElementsAttr>(value))
    return all(integers.getValues<APInt>());
  return false;
}

bool ZeroOrOne::holds(Value value) {
  Type element = getElementTypeOrSelf(value);
  comparison |= element.isInteger(1);
  if (element.isInteger(1) || !seen.insert(value).second)
    return true;
  if (!element.isIntOrFloat())
    return false;
  if (SmallVector<Value> forwarded = fp8::getForwardedValues(value); !forwarded.empty())
    return holdsOfAll(forwarded);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto structured = dyn_cast<linalg::LinalgOp>(argument.getOwner()->getParentOp());
    return structured && holds(structured.getMatchingOpOperand(argument)->get());
  }
  return holdsOfResult(value.getDefiningOp(), value);
}

bool ZeroOrOne::holdsOfResult(Operation *op, Value result) {
  Attribute constant;
  if (matchPattern(op, m_Constant(&constant)))
    return isConstantZeroOrOne(constant);
  if (auto conversion = dyn_cast<arith::SIToFPOp>(op)) // of i1: 0 or -1
    return !getElementTypeOrSelf(conversion.getIn()).isInteger(1) && holds(conversion.getIn());
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return holds(select.getCondition()) && holds(select.getTrueValue()) && holds(select.getFalseValue());
  if (isa<arith::MulFOp, arith::MulIOp, arith::AndIOp, arith::OrIOp, arith::MaximumFOp, arith::MinimumFOp,
          arith::MaxNumFOp, arith::MinNumFOp, arith::UIToFPOp, arith::ExtUIOp, arith::ExtFOp, arith::TruncFOp,
          tensor::ConcatOp>(op))
    return holdsOfAll(op->getOperands());
  if (isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::ReshapeOp,
          tensor::ExtractSliceOp, tensor::ExtractOp>(op))
    return holds(op->getOperand(0));
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    return holds(insert.getSource()) && holds(insert.getDest());
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return holds(pad.getSource()) && pad.getConstantPaddingValue() && holds(pad.getConstantPaddingValue());
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  return structured && structured.hasPureTensorSemantics() &&
         holds(structured.getBlock()->getTerminator()->getOperand(cast<OpResult>(result).getResultNumber()));
}

bool fp8::isZeroOrOne(Value value) {
  ZeroOrOne values;
  return values.holds(value) && values.readsComparison();
}
