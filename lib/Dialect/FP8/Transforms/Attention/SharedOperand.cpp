// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Follows key and value back to the tensor that a program repeats for the heads of a group.

#include "SharedOperand.h"
#include "fp8/Analysis/Attention/ElementCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

/// Operations on elements that are computed again, at most: casts and a scale.
static constexpr size_t kMostSteps = 4;

std::optional<Digit> fp8::detail::toDigit(AffineExpr expr, ArrayRef<int64_t> sizes) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return Digit{dim.getPosition(), 1, sizes[dim.getPosition()]};
  if (auto zero = dyn_cast<AffineConstantExpr>(expr))
    return zero.getValue() == 0 ? std::optional(Digit{std::nullopt, 1, 1}) : std::nullopt;
  auto binary = cast<AffineBinaryOpExpr>(expr);
  auto number = dyn_cast<AffineConstantExpr>(binary.getRHS());
  std::optional<Digit> digit = number ? toDigit(binary.getLHS(), sizes) : std::nullopt;
  if (!digit || ShapedType::isDynamic(digit->size) || digit->size % number.getValue() != 0)
    return std::nullopt;
  if (expr.getKind() == AffineExprKind::FloorDiv)
    return Digit{digit->dim, digit->step * number.getValue(), digit->size / number.getValue()};
  if (expr.getKind() == AffineExprKind::Mod)
    return Digit{digit->dim, digit->step, number.getValue()};
  return std::nullopt;
}

/// Adds the addends of an expression, each a digit and what it is multiplied by.
static bool collectAddends(AffineExpr expr, SmallVectorImpl<std::pair<AffineExpr, int64_t>> &addends) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (binary && binary.getKind() == AffineExprKind::Add)
    return collectAddends(binary.getLHS(), addends) && collectAddends(binary.getRHS(), addends);
  if (!binary || binary.getKind() != AffineExprKind::Mul) {
    addends.emplace_back(expr, 1);
    return true;
  }
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  addends.emplace_back(binary.getLHS(), factor ? factor.getValue() : 0);
  return factor && factor.getValue() > 0;
}

/// Returns the digits that the index of a dimension of this size is joined of; nothing if it is not.
static std::optional<SmallVector<Digit>> toDigits(AffineExpr expr, int64_t size, ArrayRef<int64_t> sizes) {
  SmallVector<std::pair<AffineExpr, int64_t>> addends;
  if (!collectAddends(expr, addends))
    return std::nullopt;
  llvm::sort(addends, [](const auto &x, const auto &y) { return x.second > y.second; });
  SmallVector<Digit> digits;
  for (auto [part, factor] : addends) {
    std::optional<Digit> digit = toDigit(part, sizes);
    // Digits before this one are multiples of `size`; that of the first one is the size of the dimension.
    if (!digit || (ShapedType::isDynamic(size) ? addends.size() > 1 || !ShapedType::isDynamic(digit->size)
                                               : digit->size * factor != size))
      return std::nullopt;
    digits.push_back(*digit);
    size = factor;
  }
  return size == 1 || ShapedType::isDynamic(size) ? std::optional(digits) : std::nullopt;
}

/// Returns a tensor and its digits if it has the elements of one with a map, and does not repeat them along
/// all of `dims`.
static std::optional<SharedOperand> findShared(const ElementCode::Place &place, AffineMap map,
                                               ArrayRef<int64_t> sizes, ArrayRef<unsigned> dims) {
  auto type = dyn_cast<RankedTensorType>(place.tensor.getType());
  SharedOperand found{place.tensor, {}, {}};
  if (!type)
    return std::nullopt;
  SmallVector<int64_t> seen(sizes.size(), 1); // of the index of each dimension, how many numbers
  for (auto [expr, size] : llvm::zip_equal(place.at, type.getShape())) {
    std::optional<SmallVector<Digit>> digits = toDigits(expr, size, sizes);
    if (!digits)
      return std::nullopt;
    for (const Digit &digit : *digits)
      if (digit.dim)
        seen[*digit.dim] = ShapedType::isDynamic(digit.size) ? digit.size : seen[*digit.dim] * digit.size;
    found.digits.push_back(*digits);
  }
  bool isRepeated = false;
  for (unsigned dim : llvm::seq<unsigned>(sizes.size())) {
    if (!map.isFunctionOfDim(dim) || seen[dim] == sizes[dim])
      continue;
    if (!llvm::is_contained(dims, dim) || seen[dim] > sizes[dim])
      return std::nullopt;
    isRepeated = true;
  }
  return isRepeated ? std::optional(found) : std::nullopt;
}

/// Returns the constant that a node is, also one of f64 that is rounded, as PyTorch's scales are; null for
/// others.
static TypedAttr getConstant(const CodeNode *node) {
  if (node->kind == CodeNode::Kind::constant)
    return cast<TypedAttr>(node->constant);
  if (!isa_and_nonnull<arith::TruncFOp>(node->getOperation()))
    return {};
  auto wide = dyn_cast_or_null<FloatAttr>(getConstant(node->operands[0]));
  if (!wide)
    return {};
  APFloat number = wide.getValue();
  bool losesInfo = false;
  number.convert(cast<FloatType>(node->type).getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
  return FloatAttr::get(node->type, number);
}

/// Returns the operand that an operation on an element and constants has as the element, and sets `step`;
/// null for other nodes.
static const CodeNode *stepBack(const CodeNode *node, Step &step) {
  step = {node->getOperation(), {}};
  const CodeNode *element = nullptr;
  for (const CodeNode *operand : node->operands) {
    step.constants.push_back(getConstant(operand));
    if (!step.constants.back() && std::exchange(element, operand))
      return nullptr;
  }
  return step.op ? element : nullptr;
}

std::optional<SharedOperand> fp8::detail::findSharedOperand(Value tensor, AffineMap map,
                                                            ArrayRef<int64_t> sizes,
                                                            ArrayRef<unsigned> dims) {
  ElementCode code(sizes);
  SmallVector<Step> steps;
  const CodeNode *node = code.get(tensor, map.getResults());
  while (node && steps.size() <= kMostSteps) {
    for (const ElementCode::Place &place : code.getPlaces(node))
      if (std::optional<SharedOperand> found = findShared(place, map, sizes, dims)) {
        found->steps = steps;
        return found;
      }
    node = stepBack(node, steps.emplace_back());
  }
  return std::nullopt;
}

Value fp8::detail::buildSteps(OpBuilder &builder, Location loc, ArrayRef<Step> steps, Value tensor) {
  if (steps.empty())
    return tensor;
  auto type = cast<RankedTensorType>(tensor.getType());
  Value empty = tensor::EmptyOp::create(builder, loc, tensor::getMixedSizes(builder, loc, tensor),
                                        getElementTypeOrSelf(steps.front().op->getResult(0)));
  SmallVector<AffineMap> maps(2, builder.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  auto all = linalg::GenericOp::create(
      builder, loc, empty.getType(), tensor, empty, maps, iterators,
      [&](OpBuilder &inside, Location, ValueRange elements) {
        Value element = elements.front();
        for (const Step &step : llvm::reverse(steps)) {
          SmallVector<Value> operands = llvm::map_to_vector(step.constants, [&](TypedAttr constant) {
            return constant ? Value(arith::ConstantOp::create(inside, loc, constant)) : element;
          });
          OperationState state(step.op->getLoc(), step.op->getName(), operands,
                               getElementTypeOrSelf(step.op->getResult(0)), step.op->getAttrs());
          element = inside.create(state)->getResult(0);
        }
        linalg::YieldOp::create(inside, loc, element);
      });
  return all.getResult(0);
}
