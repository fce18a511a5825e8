// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Casts between f32 and the narrow types: one for each value that is read in the other type.

#include "NarrowValues.h"
#include "fp8/Analysis/Rearrangement.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fp8;

Type fp8::getWiderType(Type a, Type b) {
  if (!a || !b)
    return a ? a : b;
  return a == b ? a : Type(Float32Type::get(a.getContext()));
}

Type fp8::withElement(Type type, Type element) {
  auto shaped = dyn_cast<ShapedType>(type);
  return shaped ? Type(shaped.clone(element)) : element;
}

Type NarrowValues::getType(Value value) const {
  if (constants.contains(value))
    return nullptr;
  Value own = find(value);
  return getElementTypeOrSelf(own ? own : value);
}

Value NarrowValues::extend(Value value, Type wide) {
  rewriter.setInsertionPointAfterValue(value);
  Value extension =
      arith::ExtFOp::create(rewriter, value.getLoc(), withElement(value.getType(), wide), value);
  narrow[extension] = value;
  return extension;
}

void NarrowValues::replace(Value old, Value value) {
  Value extension = extend(value, getElementTypeOrSelf(old));
  rewriter.replaceAllUsesExcept(old, extension, extension.getDefiningOp());
}

//===----------------------------------------------------------------------===//
// Rounding
//===----------------------------------------------------------------------===//

/// Returns the source of `op` if its result is the source's elements, transposed or reshaped.
static Value getViewSource(Operation *op) {
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return op->getOperand(0);
  std::optional<Rearrangement> view = matchRearrangement(op);
  return view && !view->cast && view->map.isPermutation() ? view->input : Value();
}

/// If `value` is a view, returns the same view of its rounded source; else null.
Value NarrowValues::roundAsView(Value value, function_ref<Value(Value)> roundSource) {
  Operation *op = value.getDefiningOp();
  Value source = op && op->getNumResults() == 1 ? getViewSource(op) : Value();
  if (!source)
    return nullptr;
  Value roundedSource = roundSource(source);
  Type element = getElementTypeOrSelf(roundedSource);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointAfter(op);
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op)) {
    Operation *copy = rewriter.clone(*op);
    copy->setOperand(0, roundedSource);
    copy->getResult(0).setType(withElement(value.getType(), element));
    return copy->getResult(0);
  }
  Rearrangement view = *matchRearrangement(op);
  Value init = tensor::EmptyOp::create(rewriter, op->getLoc(),
                                       tensor::getMixedSizes(rewriter, op->getLoc(), value), element);
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, view.map.getNumDims()));
  AffineMap inverse = inversePermutation(view.map);
  for (unsigned i = 0; i < permutation.size(); ++i)
    permutation[i] = inverse.getDimPosition(i);
  return linalg::TransposeOp::create(rewriter, op->getLoc(), roundedSource, init, permutation)->getResult(0);
}

Value NarrowValues::round(Value value, FloatType type) {
  if (Value own = find(value); own && getElementTypeOrSelf(own) == type)
    return own;
  if (Value known = rounded.lookup({value, type}))
    return known;
  Value result = roundAsView(value, [&](Value source) { return round(source, type); });
  if (!result) {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointAfterValue(value);
    result = arith::TruncFOp::create(rewriter, value.getLoc(), withElement(value.getType(), type), value);
  }
  rounded[{value, type}] = result;
  return result;
}

/// Adds half a unit of the last bit that is kept to the bits of the magnitude, and clears those below. A
/// carry into the exponent is right, and may give Inf. NaN stays NaN, also where tensor cores read its upper
/// bits alone.
static Value buildTF32(OpBuilder &b, Location loc, Value x) {
  auto bits = [&](int32_t value) { return arith::ConstantIntOp::create(b, loc, value, 32); };
  Value old = arith::BitcastOp::create(b, loc, b.getI32Type(), x);
  Value sum = arith::AddIOp::create(b, loc, old, bits(0x1000));
  Value kept = arith::AndIOp::create(b, loc, sum, bits(static_cast<int32_t>(0xFFFFE000)));
  Value result = arith::BitcastOp::create(b, loc, x.getType(), kept);
  Value isNaN = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, x);
  Value quiet = arith::OrIOp::create(b, loc, old, bits(0x400000));
  quiet = arith::BitcastOp::create(b, loc, x.getType(), quiet);
  return arith::SelectOp::create(b, loc, isNaN, quiet, result);
}

Value NarrowValues::roundToTF32(Value value) {
  if (Value known = roundedToTF32.lookup(value))
    return known;
  Value result = roundAsView(value, [&](Value source) { return roundToTF32(source); });
  if (!result) {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointAfterValue(value);
    Location loc = value.getLoc();
    auto type = cast<RankedTensorType>(value.getType());
    Value init = tensor::EmptyOp::create(rewriter, loc, tensor::getMixedSizes(rewriter, loc, value),
                                         type.getElementType());
    SmallVector<AffineMap> maps(2, rewriter.getMultiDimIdentityMap(type.getRank()));
    SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
    result = linalg::GenericOp::create(rewriter, loc, init.getType(), value, init, maps, iterators,
                                       [](OpBuilder &b, Location loc, ValueRange arguments) {
                                         linalg::YieldOp::create(b, loc, buildTF32(b, loc, arguments[0]));
                                       })
                 .getResult(0);
  }
  roundedToTF32[value] = result;
  return result;
}

void NarrowValues::eraseUnused() {
  for (auto [extension, value] : llvm::reverse(narrow))
    if (extension.use_empty())
      rewriter.eraseOp(extension.getDefiningOp());
  narrow.clear();
}
