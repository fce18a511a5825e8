// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replaces math operations on f32 by straight-line code of correctly rounded operations.

#include "Expansions.h"
#include "fp8/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"
#include <limits>
#include <optional>

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_EXPANDMATH
#include "fp8/Conversion/Passes.h.inc"

namespace {

/// The number that `value` or each of its elements is, if it is a constant.
std::optional<double> getConstant(Value value) {
  Attribute attr;
  if (!matchPattern(value, m_Constant(&attr)))
    return std::nullopt;
  if (auto splat = dyn_cast<SplatElementsAttr>(attr))
    attr = splat.getSplatValue<Attribute>();
  if (auto number = dyn_cast<FloatAttr>(attr))
    return number.getValueAsDouble();
  if (auto number = dyn_cast<IntegerAttr>(attr))
    return static_cast<double>(number.getValue().getSExtValue());
  return std::nullopt;
}

/// Returns x^exponent for exponents that need no more than four roundings.
std::optional<Expr> expandConstantPower(Expr x, double exponent) {
  if (exponent == 0.5 || exponent == -0.5) {
    // The root of -0 is -0 and that of -infinity NaN, but their powers are 0 and infinity.
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    Expr root = select(x == -kInfinity, kInfinity, sqrt(x + 0.0));
    return exponent > 0 ? root : 1.0 / root;
  }
  if (exponent == 0.0)
    return Expr(1.0).like(x);
  Expr base = exponent < 0 ? 1.0 / x : x;
  if (exponent == 1.0 || exponent == -1.0)
    return base;
  Expr square = base * base;
  if (exponent == 2.0 || exponent == -2.0)
    return square;
  if (exponent == 3.0 || exponent == -3.0)
    return square * base;
  if (exponent == 4.0)
    return square * square;
  return std::nullopt;
}

/// An exponent as i32. Beyond i32, f32 has no base but 1 and -1 whose power is neither infinite nor
/// zero, so only the last bit counts, which says whether the exponent is odd.
Expr narrowExponent(Expr n) {
  ImplicitLocOpBuilder &builder = n.getBuilder();
  auto withElement = [&](Type element) {
    auto shaped = dyn_cast<ShapedType>(n.getType());
    return shaped ? Type(shaped.clone(element)) : element;
  };
  if (isa<IndexType>(getElementTypeOrSelf(n.getType())))
    n = Expr(builder, arith::IndexCastOp::create(builder, withElement(builder.getI64Type()), n.getValue()));
  unsigned width = getElementTypeOrSelf(n.getType()).getIntOrFloatBitWidth();
  if (width < 32)
    return Expr(builder, arith::ExtSIOp::create(builder, withElement(builder.getI32Type()), n.getValue()));
  if (width == 32)
    return n;
  Expr bounded = (atLeast(atMost(n, 0x7ffffffe), -0x7ffffffe) & ~int64_t(1)) | (n & 1.0);
  return lowHalf(bounded);
}

Expr expandPower(math::PowFOp op, Expr x, Expr y) {
  if (std::optional<double> exponent = getConstant(op.getRhs()))
    if (std::optional<Expr> power = expandConstantPower(x, *exponent))
      return *power;
  return expandPowF(x, y);
}

Expr expandPower(math::FPowIOp op, Expr x, Expr n) {
  if (std::optional<double> exponent = getConstant(op.getRhs()))
    if (std::optional<Expr> power = expandConstantPower(x, *exponent))
      return *power;
  return expandFPowI(x, narrowExponent(n));
}

/// Returns the function of an operation with one operand, or null if there is no expansion.
Expr (*getExpansion(Operation *op))(Expr) {
  using Function = Expr (*)(Expr);
  return llvm::TypeSwitch<Operation *, Function>(op)
      .Case([](math::ExpOp) { return &expandExp; })
      .Case([](math::Exp2Op) { return &expandExp2; })
      .Case([](math::ExpM1Op) { return &expandExpM1; })
      .Case([](math::TanhOp) { return &expandTanh; })
      .Case([](math::SinhOp) { return &expandSinh; })
      .Case([](math::CoshOp) { return &expandCosh; })
      .Case([](math::LogOp) { return &expandLog; })
      .Case([](math::Log2Op) { return &expandLog2; })
      .Case([](math::Log10Op) { return &expandLog10; })
      .Case([](math::Log1pOp) { return &expandLog1p; })
      .Case([](math::AsinhOp) { return &expandAsinh; })
      .Case([](math::AcoshOp) { return &expandAcosh; })
      .Case([](math::AtanhOp) { return &expandAtanh; })
      .Case([](math::CbrtOp) { return &expandCbrt; })
      .Case([](math::RsqrtOp) { return &expandRsqrt; })
      .Case([](math::SinOp) { return &expandSin; })
      .Case([](math::CosOp) { return &expandCos; })
      .Case([](math::TanOp) { return &expandTan; })
      .Case([](math::AsinOp) { return &expandAsin; })
      .Case([](math::AcosOp) { return &expandAcos; })
      .Case([](math::AtanOp) { return &expandAtan; })
      .Case([](math::ErfOp) { return &expandErf; })
      .Case([](math::ErfcOp) { return &expandErfc; })
      .Default([](Operation *) -> Function { return nullptr; });
}

/// The remainder of f32, bf16 or f16, which is exact in all of them.
Value expandRemainder(ImplicitLocOpBuilder &builder, Operation *op) {
  Type type = op->getResult(0).getType(), wide = builder.getF32Type();
  if (auto shaped = dyn_cast<ShapedType>(type))
    wide = shaped.clone(wide);
  if (type == wide)
    return expandRemF(Expr(builder, op->getOperand(0)), Expr(builder, op->getOperand(1))).getValue();
  auto widenOperand = [&](unsigned i) {
    return Expr(builder, arith::ExtFOp::create(builder, wide, op->getOperand(i)));
  };
  return arith::TruncFOp::create(builder, type, expandRemF(widenOperand(0), widenOperand(1)).getValue());
}

/// Returns the values that replace the results of `op`; none if it stays.
SmallVector<Value> expand(Operation *op) {
  ImplicitLocOpBuilder builder(op->getLoc(), op);
  auto operand = [&](unsigned i) { return Expr(builder, op->getOperand(i)); };
  if (auto power = dyn_cast<math::PowFOp>(op))
    return {expandPower(power, operand(0), operand(1)).getValue()};
  if (auto power = dyn_cast<math::FPowIOp>(op))
    return {expandPower(power, operand(0), operand(1)).getValue()};
  if (isa<arith::RemFOp>(op))
    return {expandRemainder(builder, op)};
  if (isa<math::IPowIOp>(op))
    return {expandIPowI(operand(0), operand(1)).getValue()};
  if (isa<math::Atan2Op>(op))
    return {expandAtan2(operand(0), operand(1)).getValue()};
  if (isa<math::SincosOp>(op)) {
    auto [sine, cosine] = expandSincos(operand(0));
    return {sine.getValue(), cosine.getValue()};
  }
  if (auto function = getExpansion(op))
    return {function(operand(0)).getValue()};
  return {};
}

bool isExpandable(Operation *op) {
  if (isa<arith::RemFOp>(op)) {
    Type type = op->getResult(0).getType();
    return !isa<TensorType>(type) && getElementTypeOrSelf(type).getIntOrFloatBitWidth() <= 32;
  }
  if (isa<math::IPowIOp>(op))
    return op->getResult(0).getType().isSignlessInteger();
  if (!isa_and_nonnull<math::MathDialect>(op->getDialect()) || op->getNumResults() == 0)
    return false;
  Type type = op->getResultTypes().front();
  return !isa<TensorType>(type) && getElementTypeOrSelf(type).isF32();
}

class ExpandMath : public impl::ExpandMathBase<ExpandMath> {
public:
  void runOnOperation() final {
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isExpandable(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      SmallVector<Value> results = expand(op);
      if (results.empty())
        continue;
      op->replaceAllUsesWith(results);
      op->erase();
    }
  }
};

} // namespace
} // namespace fp8
