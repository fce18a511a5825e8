// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Traces a tensor back to FP8 data and collects the scales on the way.

#include "fp8/Analysis/Dequantization.h"
#include "fp8/Analysis/Rearrangement.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp8;

/// The largest number of multiplications and casts to trace. It limits the time, because either
/// factor of a multiplication may lead to the data, and both are tried.
static constexpr unsigned kMaxDepth = 8;

static bool isCast(Operation *op) { return isa_and_present<arith::ExtFOp, arith::TruncFOp>(op); }

static bool isFP8(Type type) { return isa<Float8E4M3FNType, Float8E5M2Type>(type); }

static Type elementOf(Value value) { return getElementTypeOrSelf(value); }

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

static void addCast(UniformFactor &factor, Operation *castOp) {
  factor.casts.insert(factor.casts.begin(), cast<FloatType>(elementOf(castOp->getResult(0))));
}

static bool matchConstant(Value value, UniformFactor &factor) {
  DenseFPElementsAttr elements;
  FloatAttr scalar;
  if (matchPattern(value, m_Constant(&scalar)))
    factor.constant = scalar;
  else if (matchPattern(value, m_Constant(&elements)) && elements.isSplat())
    factor.constant = FloatAttr::get(elements.getElementType(), elements.getSplatValue<APFloat>());
  return static_cast<bool>(factor.constant);
}

/// Returns whether all elements of `tensor` are equal because of the operations that compute it.
static bool matchUniformTensor(Value tensor, UniformFactor &factor) {
  while (true) {
    auto type = dyn_cast<RankedTensorType>(tensor.getType());
    if (!type || !isa<FloatType>(type.getElementType()))
      return false;
    if (matchConstant(tensor, factor))
      return true;
    factor.value = tensor;
    if (llvm::all_of(type.getShape(), [](int64_t size) { return size == 1; }))
      return true;
    Operation *op = tensor.getDefiningOp();
    if (auto fill = dyn_cast_if_present<linalg::FillOp>(op))
      return factor.value = fill.getInputs().front(), true;
    if (auto splat = dyn_cast_if_present<tensor::SplatOp>(op))
      return factor.value = splat.getInput(), true;
    std::optional<Rearrangement> view = op ? matchRearrangement(op) : std::nullopt;
    if (!view)
      return false;
    if (view->cast)
      addCast(factor, view->cast);
    tensor = view->input;
  }
}

/// As matchUniformTensor, for a value in the body of `op`.
static bool matchUniformElement(Value element, linalg::LinalgOp op, UniformFactor &factor) {
  while (element.getParentBlock() == op.getBlock() && isCast(element.getDefiningOp())) {
    addCast(factor, element.getDefiningOp());
    element = element.getDefiningOp()->getOperand(0);
  }
  if (matchConstant(element, factor))
    return true;
  if (element.getParentBlock() != op.getBlock())
    return factor.value = element, true;
  auto argument = dyn_cast<BlockArgument>(element);
  if (!argument)
    return false;
  Value operand = op.getMatchingOpOperand(argument)->get();
  if (isa<FloatType>(operand.getType()))
    return factor.value = operand, true;
  return matchUniformTensor(operand, factor);
}

/// Returns whether `op` broadcasts the tensor of `element`, such as a scale per channel.
static bool isRepeated(Value element, linalg::LinalgOp op) {
  while (isCast(element.getDefiningOp()))
    element = element.getDefiningOp()->getOperand(0);
  auto argument = dyn_cast<BlockArgument>(element);
  if (!argument || argument.getOwner() != op.getBlock())
    return false;
  OpOperand *operand = op.getMatchingOpOperand(argument);
  if (op.getMatchingIndexingMap(operand).getNumResults() < op.getNumLoops())
    return true;
  Operation *producer = operand->get().getDefiningOp();
  std::optional<Rearrangement> view = producer ? matchRearrangement(producer) : std::nullopt;
  return view && !view->map.isPermutation();
}

static Value createScalar(OpBuilder &builder, Location loc, const UniformFactor &factor) {
  Value value = factor.value;
  if (factor.constant) {
    value = arith::ConstantOp::create(builder, loc, factor.constant);
  } else if (auto type = dyn_cast<RankedTensorType>(value.getType())) {
    Value zero = type.getRank() == 0 ? Value() : arith::ConstantIndexOp::create(builder, loc, 0);
    value = tensor::ExtractOp::create(builder, loc, value, SmallVector<Value>(type.getRank(), zero));
  }
  auto convert = [&](Type type) {
    unsigned from = value.getType().getIntOrFloatBitWidth(), to = type.getIntOrFloatBitWidth();
    if (from < to)
      value = arith::ExtFOp::create(builder, loc, type, value);
    else if (from > to)
      value = arith::TruncFOp::create(builder, loc, type, value);
  };
  for (FloatType type : factor.casts)
    convert(type);
  convert(builder.getF32Type());
  return value;
}

Value Dequantization::createScaleInv(OpBuilder &builder, Location loc) const {
  Value one = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(1.0f)), product;
  for (const UniformFactor &factor : factors) {
    Value value = createScalar(builder, loc, factor);
    if (factor.divides)
      value = arith::DivFOp::create(builder, loc, one, value);
    product = product ? arith::MulFOp::create(builder, loc, product, value).getResult() : value;
  }
  auto type = RankedTensorType::get({}, builder.getF32Type());
  return tensor::FromElementsOp::create(builder, loc, type, product ? product : one);
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

namespace {

/// Traces a tensor back and fills in `result`. A failed attempt leaves `result` incomplete, so try on
/// a copy.
class Tracer {
public:
  bool traceTensor(Value tensor, AffineMap map, unsigned depth);
  Dequantization result;

private:
  bool traceElement(Value element, linalg::LinalgOp op, AffineMap loops, unsigned depth);
  bool traceFactors(ValueRange operands, bool divides, function_ref<bool(Tracer &, Value)> trace,
                    function_ref<bool(Value, UniformFactor &)> matchUniform,
                    function_ref<bool(Value)> isChannelScale);
};

} // namespace

/// Traces a product of two factors: one leads to the FP8 data, the other one is a scale.
bool Tracer::traceFactors(ValueRange operands, bool divides, function_ref<bool(Tracer &, Value)> trace,
                          function_ref<bool(Value, UniformFactor &)> matchUniform,
                          function_ref<bool(Value)> isChannelScale) {
  for (unsigned i = 0; i < (divides ? 1u : 2u); ++i) {
    Tracer attempt = *this;
    if (!trace(attempt, operands[i]))
      continue;
    UniformFactor factor;
    if (matchUniform(operands[1 - i], factor)) {
      factor.divides = divides;
      attempt.result.factors.push_back(factor);
    } else if (isChannelScale(operands[1 - i])) {
      attempt.result.perTensor = false;
    } else {
      continue;
    }
    *this = attempt;
    return true;
  }
  return false;
}

bool Tracer::traceElement(Value element, linalg::LinalgOp op, AffineMap loops, unsigned depth) {
  if (depth == 0)
    return false;
  if (auto argument = dyn_cast<BlockArgument>(element)) {
    if (argument.getOwner() != op.getBlock())
      return false;
    OpOperand *operand = op.getMatchingOpOperand(argument);
    return isa<RankedTensorType>(operand->get().getType()) && op.isDpsInput(operand) &&
           traceTensor(operand->get(), op.getMatchingIndexingMap(operand).compose(loops), depth - 1);
  }
  Operation *inner = element.getDefiningOp();
  if (isCast(inner))
    return traceElement(inner->getOperand(0), op, loops, depth - 1);
  if (!isa<arith::MulFOp, arith::DivFOp>(inner))
    return false;
  return traceFactors(
      inner->getOperands(), isa<arith::DivFOp>(inner),
      [&](Tracer &attempt, Value value) { return attempt.traceElement(value, op, loops, depth - 1); },
      [&](Value value, UniformFactor &factor) { return matchUniformElement(value, op, factor); },
      [&](Value value) { return isRepeated(value, op); });
}

bool Tracer::traceTensor(Value tensor, AffineMap map, unsigned depth) {
  Operation *op = tensor.getDefiningOp();
  std::optional<Rearrangement> view = op ? matchRearrangement(op) : std::nullopt;
  // A cast to FP8 creates the data, so the trace ends there.
  bool hasBytes = isFP8(elementOf(tensor));
  if (view && depth > 0 && !(hasBytes && view->cast))
    return traceTensor(view->input, view->map.compose(map), depth - 1);
  if (hasBytes) {
    result.data = tensor;
    result.map = map;
    return map.isProjectedPermutation();
  }
  if (!op || depth == 0)
    return false;
  if (isa<arith::MulFOp, arith::DivFOp>(op))
    return traceFactors(
        op->getOperands(), isa<arith::DivFOp>(op),
        [&](Tracer &attempt, Value value) { return attempt.traceTensor(value, map, depth - 1); },
        matchUniformTensor,
        [](Value value) {
          std::optional<Rearrangement> repeated =
              value.getDefiningOp() ? matchRearrangement(value.getDefiningOp()) : std::nullopt;
          return repeated && !repeated->map.isPermutation();
        });
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  if (!structured || !structured.hasPureTensorSemantics() || structured.getNumReductionLoops() != 0 ||
      structured.getNumDpsInits() != 1)
    return false;
  AffineMap out = structured.getMatchingIndexingMap(structured.getDpsInitOperand(0));
  return out.isPermutation() && traceElement(structured.getBlock()->getTerminator()->getOperand(0),
                                             structured, inversePermutation(out).compose(map), depth - 1);
}

std::optional<Dequantization> fp8::matchDequantization(Value tensor) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  if (!type || !isa<FloatType>(type.getElementType()))
    return std::nullopt;
  Tracer tracer;
  if (!tracer.traceTensor(tensor, AffineMap::getMultiDimIdentityMap(type.getRank(), tensor.getContext()),
                          kMaxDepth))
    return std::nullopt;
  return tracer.result;
}

std::optional<Dequantization> fp8::matchOwnBytes(MatmulOp op, unsigned operand) {
  Value value = op->getOperand(operand), source = getViewSource(value);
  std::optional<Dequantization> match = matchDequantization(source);
  if (!match)
    return std::nullopt;
  if (value != source) // views of the FP8 data, which can be transposed but not broadcast
    return match->map.isPermutation() ? match : std::nullopt;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  maps[operand] = match->map.compose(maps[operand]);
  std::optional<ContractionDims> dims = inferContractionDims(maps);
  return dims && dims->k == op.getContractionDims().k ? match : std::nullopt;
}

Value fp8::getViewSource(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp, GroupRowsOp>(op) ||
        !isa<RankedTensorType>(op->getOperand(0).getType()))
      break;
    value = op->getOperand(0);
  }
  return value;
}
