// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expands arith casts from and to FP8, also from integers, which upstream does not lower, and casts between
// f64 and bf16, and from f64 to f16, which may become calls of functions that compiler runtimes lack.

#include "fp8/Conversion/FP8ToLinalg/FP8Casts.h"
#include "fp8/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_EXPANDCASTS
#include "fp8/Conversion/Passes.h.inc"

namespace {

bool isFP8(Value value) { return isa<Float8E4M3FNType, Float8E5M2Type>(getElementTypeOrSelf(value)); }

bool isHalf(Value value) {
  Type type = getElementTypeOrSelf(value);
  return type.isBF16() || type.isF16();
}

/// `like` with elements of `element`.
Type withElement(Type like, Type element) {
  auto shaped = dyn_cast<ShapedType>(like);
  return shaped ? Type(shaped.clone(element)) : element;
}

/// `like` with elements of f32.
Type f32Like(Type like) { return withElement(like, Float32Type::get(like.getContext())); }

/// Rounds the f64 operand of `op` to f32 to odd: inexact values are truncated and get an odd last bit,
/// so that they are no tie when they are rounded again. Both roundings together then equal one from
/// f64.
Value buildRoundToOdd(arith::TruncFOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Value wide = op.getIn();
  Type bits = withElement(wide.getType(), builder.getI32Type());
  Value near = arith::TruncFOp::create(builder, loc, f32Like(wide.getType()), wide);
  Value back = arith::ExtFOp::create(builder, loc, wide.getType(), near);
  Value nearBits = arith::BitcastOp::create(builder, loc, bits, near);
  auto compare = [&](arith::CmpFPredicate predicate, Value lhs, Value rhs) {
    Value flag = arith::CmpFOp::create(builder, loc, predicate, lhs, rhs);
    return arith::ExtUIOp::create(builder, loc, bits, flag).getResult();
  };
  // Both comparisons are false for NaN, which stays unchanged.
  Value isLarger = compare(arith::CmpFPredicate::OGT, math::AbsFOp::create(builder, loc, back),
                           math::AbsFOp::create(builder, loc, wide));
  Value isInexact = compare(arith::CmpFPredicate::ONE, back, wide);
  Value cut = arith::SubIOp::create(builder, loc, nearBits, isLarger);
  Value odd = arith::OrIOp::create(builder, loc, cut, isInexact);
  return arith::BitcastOp::create(builder, loc, near.getType(), odd);
}

class ExpandCasts : public impl::ExpandCastsBase<ExpandCasts> {
public:
  void runOnOperation() final {
    if (failed(refuseFormats()))
      return signalPassFailure();
    getOperation()->walk([](arith::ExtFOp op) {
      if (isa<Float8E8M0FNUType>(getElementTypeOrSelf(op.getIn())) && !isa<TensorType>(op.getType()))
        expandExponent(op);
    });
    getOperation()->walk([](arith::ExtFOp op) {
      if (isFP8(op.getIn()) && !isa<TensorType>(op.getType()))
        expand(op);
      else if (getElementTypeOrSelf(op.getIn()).isBF16() && getElementTypeOrSelf(op.getType()).isF64() &&
               !isa<TensorType>(op.getType()))
        widenTwice(op);
    });
    getOperation()->walk([](Operation *op) {
      if (isa<arith::SIToFPOp, arith::UIToFPOp>(op) && isFP8(op->getResult(0)) &&
          !isa<TensorType>(op->getResult(0).getType()))
        expandFromInteger(op);
    });
    getOperation()->walk([](arith::TruncFOp op) {
      if (isa<TensorType>(op.getType()))
        return;
      if (getElementTypeOrSelf(op.getIn()).isF64() && (isFP8(op.getOut()) || isHalf(op.getOut())))
        op.getInMutable().assign(buildRoundToOdd(op));
      if (isFP8(op.getOut()))
        expand(op);
    });
  }

private:
  /// Reports a cast to E8M0, for which rounding up, down and to nearest are all in use, so that a
  /// program has to say which it means; and casts from and to formats of less than 16 bits without code.
  LogicalResult refuseFormats() {
    WalkResult walked = getOperation()->walk([](Operation *op) {
      bool widens = isa<arith::ExtFOp>(op);
      if (!widens && !isa<arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp>(op))
        return WalkResult::advance();
      Value narrow = widens ? op->getOperand(0) : op->getResult(0);
      auto format = cast<FloatType>(getElementTypeOrSelf(narrow));
      bool isExponent = isa<Float8E8M0FNUType>(format);
      if (format.getWidth() >= 16 || isFP8(narrow) || (isExponent && widens))
        return WalkResult::advance();
      if (isExponent)
        op->emitError()
            << "a cast to f8E8M0FNU does not say how it rounds: compute the exponent in integers and "
               "bitcast it, or cast blocks with '#fp8.mx_scaling'";
      else
        op->emitError() << "casts from and to " << format
                        << " have no lowering: those of f8E4M3FN and f8E5M2 have one, and those from "
                           "f8E8M0FNU";
      return WalkResult::interrupt();
    });
    return failure(walked.wasInterrupted());
  }

  /// Expands an E8M0 byte, which is the exponent of an f32; 0 is 2^-127, a subnormal.
  static void expandExponent(arith::ExtFOp op) {
    OpBuilder builder(op);
    Location loc = op.getLoc();
    Type f32 = f32Like(op.getType()), bits = withElement(f32, builder.getI32Type());
    auto constant = [&](int32_t value) -> Value {
      auto vector = dyn_cast<ShapedType>(bits);
      TypedAttr attr = builder.getI32IntegerAttr(value);
      if (vector)
        attr = DenseElementsAttr::get(vector, value);
      return arith::ConstantOp::create(builder, loc, attr);
    };
    Value byte = arith::BitcastOp::create(builder, loc, withElement(f32, builder.getI8Type()), op.getIn());
    Value exponent = arith::ExtUIOp::create(builder, loc, bits, byte);
    Value result = arith::ShLIOp::create(builder, loc, exponent, constant(23));
    auto replace = [&](int32_t from, int32_t to) {
      Value found = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, exponent, constant(from));
      result = arith::SelectOp::create(builder, loc, found, constant(to), result);
    };
    replace(0, 0x00400000);
    replace(255, 0x7FC00000);
    Value wide = arith::BitcastOp::create(builder, loc, f32, result);
    unsigned width = getElementTypeOrSelf(op.getType()).getIntOrFloatBitWidth();
    if (width < 32)
      wide = arith::TruncFOp::create(builder, loc, op.getType(), wide);
    else if (width > 32)
      wide = arith::ExtFOp::create(builder, loc, op.getType(), wide);
    op.replaceAllUsesWith(wide);
    op.erase();
  }

  /// Converts integers by way of f32, which rounds only those that FP8 saturates.
  static void expandFromInteger(Operation *op) {
    OpBuilder builder(op);
    Type narrow = op->getResult(0).getType();
    Operation *wide = builder.clone(*op);
    wide->getResult(0).setType(f32Like(narrow));
    op->replaceAllUsesWith(ValueRange(buildEncodeFP8(builder, op->getLoc(), wide->getResult(0),
                                                     cast<FloatType>(getElementTypeOrSelf(narrow)))));
    op->erase();
  }

  static void expand(arith::ExtFOp op) {
    OpBuilder builder(op);
    Value wide = buildDecodeFP8(builder, op.getLoc(), op.getIn());
    Type element = getElementTypeOrSelf(op.getType());
    if (element.getIntOrFloatBitWidth() < 32)
      wide = arith::TruncFOp::create(builder, op.getLoc(), op.getType(),
                                     wide); // exact: bf16 and f16 hold all of FP8
    else if (element.isF64())
      wide = arith::ExtFOp::create(builder, op.getLoc(), op.getType(), wide);
    op.replaceAllUsesWith(wide);
    op.erase();
  }

  /// Widens bf16 to f64 by way of f32. LLVM narrows a comparison of the f64 with a constant to one of bf16,
  /// which not all processors have, and rounds the constant by a call.
  static void widenTwice(arith::ExtFOp op) {
    OpBuilder builder(op);
    op.getInMutable().assign(arith::ExtFOp::create(builder, op.getLoc(), f32Like(op.getType()), op.getIn()));
  }

  static void expand(arith::TruncFOp op) {
    OpBuilder builder(op);
    Value value = op.getIn();
    Type f32 = f32Like(value.getType());
    if (!getElementTypeOrSelf(value).isF32())
      value = arith::ExtFOp::create(builder, op.getLoc(), f32, value);
    op.replaceAllUsesWith(
        buildEncodeFP8(builder, op.getLoc(), value, cast<FloatType>(getElementTypeOrSelf(op.getType()))));
    op.erase();
  }
};

} // namespace
} // namespace fp8
