// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Traces elements backwards, operation by operation. Indices are affine expressions, so that one trace tells
// about all elements, or integers, for which conditions on indices are known.

#include "fp8/Analysis/ElementTrace.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp8;

bool TracedElement::operator==(const TracedElement &other) const {
  return kind == other.kind && value == other.value && at == other.at && index == other.index &&
         constant == other.constant && frame.op == other.frame.op && frame.loops == other.frame.loops;
}

namespace {
class Tracer {
public:
  explicit Tracer(StopTrace stop) : stop(stop) {}

  TracedElement ofTensor(Value tensor, SmallVector<AffineExpr> at);
  TracedElement ofScalar(Value scalar, const LoopFrame &frame);

private:
  /// One step from an element of a tensor to the element of another; false if there is none.
  bool step(Value &tensor, SmallVector<AffineExpr> &at);
  bool stepThroughSlice(tensor::ExtractSliceOp slice, Value &tensor, SmallVector<AffineExpr> &at);
  bool stepThroughInsertion(tensor::InsertSliceOp insert, Value &tensor, SmallVector<AffineExpr> &at);
  bool stepThroughConcatenation(tensor::ConcatOp concat, Value &tensor, SmallVector<AffineExpr> &at);
  std::optional<bool> evaluate(Value condition, const LoopFrame &frame);
  TracedElement ofSum(Operation *op, const LoopFrame &frame);

  StopTrace stop;
};
} // namespace

static TracedElement makeElement(Value tensor, ArrayRef<AffineExpr> at) {
  return {TracedElement::Kind::element, tensor, SmallVector<AffineExpr>(at), {}, {}, {}};
}

static TracedElement makeIndex(AffineExpr index) {
  return {TracedElement::Kind::index, {}, {}, index, {}, {}};
}

/// An integer constant is an index; other constants are attributes.
static TracedElement makeConstant(Attribute constant) {
  if (auto number = dyn_cast<IntegerAttr>(constant); number && number.getValue().getSignificantBits() <= 64)
    return makeIndex(getAffineConstantExpr(number.getValue().getSExtValue(), constant.getContext()));
  return {TracedElement::Kind::constant, {}, {}, {}, constant, {}};
}

/// Returns the integers that `at` consists of; unset if one is not known.
static std::optional<SmallVector<uint64_t>> getConstants(ArrayRef<AffineExpr> at) {
  SmallVector<uint64_t> numbers;
  for (AffineExpr expr : at) {
    auto number = dyn_cast<AffineConstantExpr>(expr);
    if (!number || number.getValue() < 0)
      return std::nullopt;
    numbers.push_back(number.getValue());
  }
  return numbers;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

bool Tracer::stepThroughSlice(tensor::ExtractSliceOp slice, Value &tensor, SmallVector<AffineExpr> &at) {
  if (slice.getSourceType().getRank() != slice.getType().getRank())
    return false;
  for (auto [expr, offset, stride] :
       llvm::zip_equal(at, slice.getStaticOffsets(), slice.getStaticStrides())) {
    if (ShapedType::isDynamic(offset) || ShapedType::isDynamic(stride))
      return false;
    expr = expr * stride + offset;
  }
  tensor = slice.getSource();
  return true;
}

bool Tracer::stepThroughInsertion(tensor::InsertSliceOp insert, Value &tensor, SmallVector<AffineExpr> &at) {
  std::optional<SmallVector<uint64_t>> indices = getConstants(at);
  auto isDynamic = [](int64_t value) { return ShapedType::isDynamic(value); };
  if (!indices || insert.getSourceType().getRank() != insert.getType().getRank() || !insert.hasUnitStride() ||
      llvm::any_of(insert.getStaticOffsets(), isDynamic) || llvm::any_of(insert.getStaticSizes(), isDynamic))
    return false;
  SmallVector<AffineExpr> inside;
  for (auto [index, offset, size, expr] :
       llvm::zip_equal(*indices, insert.getStaticOffsets(), insert.getStaticSizes(), at))
    if (int64_t moved = int64_t(index) - offset; moved >= 0 && moved < size)
      inside.push_back(getAffineConstantExpr(moved, expr.getContext()));
  bool isInside = inside.size() == at.size();
  tensor = isInside ? insert.getSource() : insert.getDest();
  if (isInside)
    at = inside;
  return true;
}

bool Tracer::stepThroughConcatenation(tensor::ConcatOp concat, Value &tensor, SmallVector<AffineExpr> &at) {
  auto index = dyn_cast<AffineConstantExpr>(at[concat.getDim()]);
  if (!index)
    return false;
  int64_t place = index.getValue();
  for (Value part : concat.getInputs()) {
    int64_t size = cast<RankedTensorType>(part.getType()).getDimSize(concat.getDim());
    if (ShapedType::isDynamic(size))
      return false;
    if (place < size) {
      at[concat.getDim()] = getAffineConstantExpr(place, index.getContext());
      tensor = part;
      return true;
    }
    place -= size;
  }
  return false;
}

bool Tracer::step(Value &tensor, SmallVector<AffineExpr> &at) {
  Operation *op = tensor.getDefiningOp();
  if (auto cast = dyn_cast_or_null<tensor::CastOp>(op)) {
    tensor = cast.getSource();
    return isa<RankedTensorType>(tensor.getType());
  }
  if (auto slice = dyn_cast_or_null<tensor::ExtractSliceOp>(op))
    return stepThroughSlice(slice, tensor, at);
  if (auto insert = dyn_cast_or_null<tensor::InsertSliceOp>(op))
    return stepThroughInsertion(insert, tensor, at);
  if (auto concat = dyn_cast_or_null<tensor::ConcatOp>(op))
    return stepThroughConcatenation(concat, tensor, at);
  return false;
}

TracedElement Tracer::ofTensor(Value tensor, SmallVector<AffineExpr> at) {
  while (true) {
    if (stop && stop(at))
      return makeElement(tensor, at);
    DenseElementsAttr constants;
    if (matchPattern(tensor, m_Constant(&constants))) {
      if (constants.isSplat())
        return makeConstant(constants.getSplatValue<Attribute>());
      if (std::optional<SmallVector<uint64_t>> indices = getConstants(at))
        return makeConstant(constants.getValues<Attribute>()[*indices]);
      return makeElement(tensor, at);
    }
    auto op = tensor.getDefiningOp<linalg::LinalgOp>();
    if (op && op.hasPureTensorSemantics() && op.getNumReductionLoops() == 0) {
      unsigned number = cast<OpResult>(tensor).getResultNumber();
      AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(number));
      if (!out.isPermutation())
        return makeElement(tensor, at);
      LoopFrame frame{op, SmallVector<AffineExpr>(at.size())};
      for (auto [position, expr] : llvm::enumerate(at))
        frame.loops[out.getDimPosition(position)] = expr;
      return ofScalar(op.getBlock()->getTerminator()->getOperand(number), frame);
    }
    if (!step(tensor, at))
      return makeElement(tensor, at);
  }
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

/// Returns the value of a comparison of indices, where that is known for all of them.
std::optional<bool> Tracer::evaluate(Value condition, const LoopFrame &frame) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return std::nullopt;
  auto number = [&](Value operand) -> std::optional<int64_t> {
    TracedElement traced = ofScalar(operand, frame);
    auto constant = dyn_cast_or_null<AffineConstantExpr>(traced.index);
    return constant ? std::optional(constant.getValue()) : std::nullopt;
  };
  std::optional<int64_t> lhs = number(compare.getLhs()), rhs = number(compare.getRhs());
  if (!lhs || !rhs)
    return std::nullopt;
  return arith::applyCmpPredicate(compare.getPredicate(), APInt(64, *lhs, true), APInt(64, *rhs, true));
}

/// Adds or subtracts indices.
TracedElement Tracer::ofSum(Operation *op, const LoopFrame &frame) {
  TracedElement lhs = ofScalar(op->getOperand(0), frame), rhs = ofScalar(op->getOperand(1), frame);
  if (!lhs.index || !rhs.index)
    return {TracedElement::Kind::scalar, op->getResult(0), {}, {}, {}, frame};
  return makeIndex(isa<arith::AddIOp>(op) ? lhs.index + rhs.index : lhs.index - rhs.index);
}

TracedElement Tracer::ofScalar(Value scalar, const LoopFrame &frame) {
  TracedElement unknown{TracedElement::Kind::scalar, scalar, {}, {}, {}, frame};
  if (auto argument = dyn_cast<BlockArgument>(scalar)) {
    linalg::LinalgOp structured = frame.op;
    if (argument.getOwner() != structured.getBlock())
      return unknown;
    OpOperand *operand = structured.getMatchingOpOperand(argument);
    if (!isa<RankedTensorType>(operand->get().getType()))
      return ofScalar(operand->get(), frame);
    SmallVector<AffineExpr> at;
    for (AffineExpr expr : structured.getMatchingIndexingMap(operand).getResults())
      at.push_back(expr.replaceDims(frame.loops));
    return ofTensor(operand->get(), std::move(at));
  }
  Attribute constant;
  if (matchPattern(scalar, m_Constant(&constant)))
    return makeConstant(constant);
  Operation *op = scalar.getDefiningOp();
  if (auto index = dyn_cast<linalg::IndexOp>(op); index && op->getParentOp() == frame.op)
    return makeIndex(frame.loops[index.getDim()]);
  if (isa<arith::IndexCastOp, arith::ExtSIOp>(op))
    return ofScalar(op->getOperand(0), frame);
  if (isa<arith::AddIOp, arith::SubIOp>(op))
    return ofSum(op, frame);
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    SmallVector<AffineExpr> at;
    for (Value operand : extract.getIndices()) {
      TracedElement index = ofScalar(operand, frame);
      if (!index.index)
        return unknown;
      at.push_back(index.index);
    }
    return ofTensor(extract.getTensor(), std::move(at));
  }
  if (auto branch = dyn_cast<scf::IfOp>(op); branch && !branch.getElseRegion().empty())
    if (std::optional<bool> taken = evaluate(branch.getCondition(), frame))
      return ofScalar((*taken ? branch.thenYield() : branch.elseYield())
                          .getOperand(cast<OpResult>(scalar).getResultNumber()),
                      frame);
  if (auto select = dyn_cast<arith::SelectOp>(op))
    if (std::optional<bool> taken = evaluate(select.getCondition(), frame))
      return ofScalar(*taken ? select.getTrueValue() : select.getFalseValue(), frame);
  return unknown;
}

TracedElement fp8::traceElement(Value tensor, ArrayRef<AffineExpr> at, StopTrace stop) {
  return Tracer(stop).ofTensor(tensor, SmallVector<AffineExpr>(at));
}

TracedElement fp8::traceScalar(Value scalar, const LoopFrame &frame, StopTrace stop) {
  return Tracer(stop).ofScalar(scalar, frame);
}
