// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Indices in the code of elements: their bounds, and which integers are one.

#include "fp8/Analysis/Attention/ElementCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace mlir;
using namespace fp8;
using Kind = CodeNode::Kind;

/// Bits of the integers that are indices.
static constexpr unsigned kIndexBits = 32;

std::optional<int64_t> ElementCode::getLargest(AffineExpr expr) const {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue() < 0 ? std::nullopt : std::optional(constant.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    int64_t size = sizes[dim.getPosition()];
    return ShapedType::isDynamic(size) ? std::nullopt : std::optional(size - 1);
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  std::optional<int64_t> lhs = getLargest(binary.getLHS()), rhs = getLargest(binary.getRHS());
  if (!rhs)
    return std::nullopt;
  if (binary.getKind() == AffineExprKind::Mod)
    return lhs ? std::min(*lhs, *rhs - 1) : *rhs - 1;
  if (!lhs)
    return std::nullopt;
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return *lhs + *rhs;
  case AffineExprKind::Mul:
    return *lhs * *rhs;
  case AffineExprKind::FloorDiv:
    return *rhs == 0 ? std::nullopt : std::optional(*lhs / *rhs);
  default:
    return std::nullopt;
  }
}

std::optional<ElementCode::Bounds> ElementCode::getBounds(AffineExpr expr) const {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    auto number = static_cast<double>(constant.getValue());
    return Bounds{number, number};
  }
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    int64_t size = sizes[dim.getPosition()];
    return Bounds{0, ShapedType::isDynamic(size) ? kMostIndices : static_cast<double>(size) - 1};
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  std::optional<Bounds> lhs = getBounds(binary.getLHS()), rhs = getBounds(binary.getRHS());
  if (!lhs || !rhs)
    return std::nullopt;
  if (binary.getKind() == AffineExprKind::Add)
    return Bounds{lhs->least + rhs->least, lhs->largest + rhs->largest};
  if (binary.getKind() == AffineExprKind::Mul) {
    double corners[] = {lhs->least * rhs->least, lhs->least * rhs->largest, lhs->largest * rhs->least,
                        lhs->largest * rhs->largest};
    return Bounds{*llvm::min_element(corners), *llvm::max_element(corners)};
  }
  if (rhs->least != rhs->largest || rhs->least <= 0)
    return std::nullopt;
  double divisor = rhs->least;
  if (binary.getKind() == AffineExprKind::Mod)
    return Bounds{0, divisor - 1};
  return Bounds{std::floor(lhs->least / divisor), std::ceil(lhs->largest / divisor)};
}

/// Drops divisions and remainders that the ranges of the indices decide, or that cancel.
AffineExpr ElementCode::simplify(AffineExpr expr) const {
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return expr;
  AffineExpr lhs = simplify(binary.getLHS()), rhs = simplify(binary.getRHS());
  auto divisor = dyn_cast<AffineConstantExpr>(rhs);
  std::optional<int64_t> largest = getLargest(lhs);
  bool isBelow = divisor && largest && *largest < divisor.getValue();
  if (isBelow && binary.getKind() == AffineExprKind::FloorDiv)
    return getAffineConstantExpr(0, expr.getContext());
  if (isBelow && binary.getKind() == AffineExprKind::Mod)
    return lhs;
  AffineExpr simple = getAffineBinaryOpExpr(binary.getKind(), lhs, rhs);
  // An index that a reshape divides and another one joins: (x floordiv 4) * 4 + x mod 4.
  bool joins = binary.getKind() == AffineExprKind::Add &&
               (lhs.getKind() == AffineExprKind::Mod || rhs.getKind() == AffineExprKind::Mod);
  return joins ? simplifyAffineExpr(simple, sizes.size(), 0) : simple;
}

/// Returns the index that a node is; null if it is none.
AffineExpr ElementCode::readIndex(const CodeNode *node) const {
  if (node->kind == Kind::index)
    return node->at[0];
  MLIRContext *context = node->type.getContext();
  if (node->kind == Kind::constant)
    if (auto number = dyn_cast<IntegerAttr>(node->constant);
        number && number.getValue().getSignificantBits() <= 64)
      return getAffineConstantExpr(number.getValue().getSExtValue(), context);
  Operation *op = node->getOperation();
  if (isa_and_nonnull<arith::IndexCastOp, arith::ExtSIOp>(op))
    return toIndex(node->operands[0]);
  if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return {};
  AffineExpr lhs = toIndex(node->operands[0]), rhs = toIndex(node->operands[1]);
  if (!lhs || !rhs)
    return {};
  if (isa<arith::MulIOp>(op))
    return lhs.isSymbolicOrConstant() || rhs.isSymbolicOrConstant() ? lhs * rhs : AffineExpr();
  return isa<arith::AddIOp>(op) ? lhs + rhs : lhs - rhs;
}

AffineExpr ElementCode::toIndex(const CodeNode *node) const {
  AffineExpr index = readIndex(node);
  std::optional<Bounds> bounds = index ? getBounds(index) : std::nullopt;
  if (!bounds)
    return {};
  unsigned bits =
      node->type.isIndex() ? kIndexBits : std::min(node->type.getIntOrFloatBitWidth(), kIndexBits);
  double end = std::ldexp(1, static_cast<int>(bits) - 1);
  return bounds->least >= -end && bounds->largest < end ? index : AffineExpr();
}

/// Returns the bit that a comparison of indices is for all indices; nothing if it differs.
std::optional<bool> ElementCode::decide(const CodeNode *condition) const {
  auto compare = dyn_cast_or_null<arith::CmpIOp>(condition->getOperation());
  AffineExpr lhs = compare ? toIndex(condition->operands[0]) : AffineExpr(),
             rhs = compare ? toIndex(condition->operands[1]) : AffineExpr();
  std::optional<Bounds> distance = lhs && rhs ? getBounds(lhs - rhs) : std::nullopt;
  if (!distance)
    return std::nullopt;
  // Comparisons of signed numbers are monotone in the distance.
  auto compareDistance = [&](double number) {
    return arith::applyCmpPredicate(compare.getPredicate(), APInt(64, static_cast<int64_t>(number), true),
                                    APInt(64, 0));
  };
  bool isSigned = llvm::is_contained({arith::CmpIPredicate::slt, arith::CmpIPredicate::sle,
                                      arith::CmpIPredicate::sgt, arith::CmpIPredicate::sge},
                                     compare.getPredicate());
  bool isOne = compareDistance(distance->least);
  return isSigned && isOne == compareDistance(distance->largest) ? std::optional(isOne) : std::nullopt;
}
