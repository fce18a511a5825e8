// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expands arith casts from and to FP8, which upstream does not lower.

#include "FP8Casts.h"
#include "fp8/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_EXPANDCASTS
#include "fp8/Conversion/Passes.h.inc"

namespace {

bool isFP8(Value value) { return isa<Float8E4M3FNType, Float8E5M2Type>(getElementTypeOrSelf(value)); }

/// `like` with elements of f32.
Type f32Like(Type like) {
  Type f32 = Float32Type::get(like.getContext());
  auto shaped = dyn_cast<ShapedType>(like);
  return shaped ? Type(shaped.clone(f32)) : f32;
}

class ExpandCasts : public impl::ExpandCastsBase<ExpandCasts> {
public:
  void runOnOperation() final {
    getOperation()->walk([](arith::ExtFOp op) {
      if (isFP8(op.getIn()) && !isa<TensorType>(op.getType()))
        expand(op);
    });
    getOperation()->walk([](arith::TruncFOp op) {
      if (isFP8(op.getOut()) && !isa<TensorType>(op.getType()))
        expand(op);
    });
  }

private:
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

  static void expand(arith::TruncFOp op) {
    OpBuilder builder(op);
    Value value = op.getIn();
    Type f32 = f32Like(value.getType()), element = getElementTypeOrSelf(value);
    if (element.isF64())
      return; // rounding twice could differ: leave it for the error of whoever needs it lowered
    if (!element.isF32())
      value = arith::ExtFOp::create(builder, op.getLoc(), f32, value);
    op.replaceAllUsesWith(
        buildEncodeFP8(builder, op.getLoc(), value, cast<FloatType>(getElementTypeOrSelf(op.getType()))));
    op.erase();
  }
};

} // namespace
} // namespace fp8
