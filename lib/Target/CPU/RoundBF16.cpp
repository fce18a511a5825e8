// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rounds the results of bf16 arithmetic to bf16 without a test for NaN. Upstream's expansion needs the
// test, because rounding up may turn a NaN whose last bits are set into a zero. Processors return
// either a NaN that was an operand, whose last 16 bits are zero if it was a bf16, or a NaN whose last
// bits are zero: rounding changes neither.

#include "fp8/Target/CPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace fp8 {
#define GEN_PASS_DEF_ROUNDBF16
#include "fp8/Target/CPU/Passes.h.inc"
} // namespace fp8

using namespace mlir;

/// Returns whether `value`, an f32, is a bf16 that was extended, or a constant number.
static bool isShort(Value value) {
  if (auto extension = value.getDefiningOp<arith::ExtFOp>())
    return getElementTypeOrSelf(extension.getIn()).isBF16();
  APFloat constant(0.0f);
  return matchPattern(value, m_ConstantFloat(&constant)) && !constant.isNaN();
}

/// Returns whether the last 16 bits of `value` are zero if it is a NaN.
static bool hasShortNaN(Value value) {
  Operation *op = value.getDefiningOp();
  return op && isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::NegFOp>(op) &&
         llvm::all_of(op->getOperands(), isShort);
}

/// Rounds to nearest, ties to even: adds half of the last place that is kept, less one unit of f32 if the
/// last bit that is kept is 0.
static Value buildRounded(arith::TruncFOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto shaped = dyn_cast<VectorType>(op.getType());
  auto typeOf = [&](Type element) -> Type { return shaped ? Type(shaped.clone(element)) : element; };
  Type wide = typeOf(b.getI32Type());
  auto constant = [&](int32_t value) -> Value {
    TypedAttr attr = b.getI32IntegerAttr(value);
    if (shaped)
      attr = DenseElementsAttr::get(cast<VectorType>(wide), value);
    return arith::ConstantOp::create(b, loc, attr);
  };
  Value bits = arith::BitcastOp::create(b, loc, wide, op.getIn());
  Value kept = arith::ShRUIOp::create(b, loc, bits, constant(16));
  Value isOdd = arith::AndIOp::create(b, loc, kept, constant(1));
  Value half = arith::AddIOp::create(b, loc, bits, constant(0x7FFF));
  Value rounded = arith::AddIOp::create(b, loc, half, isOdd);
  Value high = arith::ShRUIOp::create(b, loc, rounded, constant(16));
  Value narrow = arith::TruncIOp::create(b, loc, typeOf(b.getI16Type()), high);
  return arith::BitcastOp::create(b, loc, op.getType(), narrow);
}

namespace {
struct RoundBF16Pass : public fp8::impl::RoundBF16Base<RoundBF16Pass> {
  void runOnOperation() override {
    getOperation()->walk([](arith::TruncFOp op) {
      if (!getElementTypeOrSelf(op.getType()).isBF16() || isa<TensorType>(op.getType()) ||
          !hasShortNaN(op.getIn()))
        return;
      op.replaceAllUsesWith(buildRounded(op));
      op.erase();
    });
  }
};
} // namespace
