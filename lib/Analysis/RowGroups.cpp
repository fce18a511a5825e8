// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads masks of rows element by element (ElementTrace), so that it does not matter over how many
// operations a framework spreads them.

#include "fp8/Analysis/RowGroups.h"
#include "fp8/Analysis/ElementTrace.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp8;

using Kind = TracedElement::Kind;

/// More groups than any model has; each takes a trace.
static constexpr int64_t kMostGroups = 4096;

/// Returns the operation that computes a traced element; null if none is known.
template <typename Op>
static Op getOp(const TracedElement &element) {
  return element.kind == Kind::scalar ? element.value.getDefiningOp<Op>() : Op();
}

/// Returns the tensor whose element [g] is compared, if `element` is one.
static Value getPerGroup(const TracedElement &element, AffineExpr group) {
  bool isPerGroup = element.kind == Kind::element && element.at.size() == 1 && element.at[0] == group;
  return isPerGroup ? element.value : Value();
}

namespace {
struct Bounds {
  Value starts, ends;
};
} // namespace

/// Sets a bound if `compare` is `starts[group] <= row` or `row < ends[group]`.
static void readBound(const TracedElement &element, AffineExpr group, AffineExpr row, Bounds &bounds) {
  auto compare = getOp<arith::CmpIOp>(element);
  if (!compare)
    return;
  arith::CmpIPredicate predicate = compare.getPredicate();
  Value lhs = compare.getLhs(), rhs = compare.getRhs();
  if (predicate == arith::CmpIPredicate::sge || predicate == arith::CmpIPredicate::sgt) {
    std::swap(lhs, rhs);
    predicate =
        predicate == arith::CmpIPredicate::sge ? arith::CmpIPredicate::sle : arith::CmpIPredicate::slt;
  }
  auto isPerGroup = [&](ArrayRef<AffineExpr> at) { return at.size() == 1 && at[0] == group; };
  TracedElement left = traceScalar(lhs, element.frame, isPerGroup);
  TracedElement right = traceScalar(rhs, element.frame, isPerGroup);
  if (predicate == arith::CmpIPredicate::sle && right.index == row)
    bounds.starts = getPerGroup(left, group);
  if (predicate == arith::CmpIPredicate::slt && left.index == row)
    bounds.ends = getPerGroup(right, group);
}

/// Returns whether each element of `starts` is the element of `ends` before it, and the first 0.
static bool followEachOther(const Bounds &bounds) {
  int64_t groups = cast<RankedTensorType>(bounds.ends.getType()).getDimSize(0);
  if (ShapedType::isDynamic(groups) || groups > kMostGroups)
    return false;
  for (int64_t group : llvm::seq(groups)) {
    auto number = [&](int64_t value) { return getAffineConstantExpr(value, bounds.ends.getContext()); };
    TracedElement start = traceElement(bounds.starts, number(group));
    TracedElement before = group == 0 ? TracedElement{Kind::index, {}, {}, number(0), {}, {}}
                                      : traceElement(bounds.ends, number(group - 1));
    if (!(start == before))
      return false;
  }
  return true;
}

std::optional<RowGroups> fp8::matchRowMask(Value tensor) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  if (!type || type.getRank() != 3 || !isa<FloatType>(type.getElementType()))
    return std::nullopt;
  MLIRContext *context = tensor.getContext();
  AffineExpr group = getAffineDimExpr(0, context), row = getAffineDimExpr(1, context),
             column = getAffineDimExpr(2, context);
  TracedElement element = traceElement(tensor, {group, row, column});
  auto select = getOp<arith::SelectOp>(element);
  if (!select)
    return std::nullopt;
  TracedElement zero = traceScalar(select.getFalseValue(), element.frame);
  auto number = dyn_cast_or_null<FloatAttr>(zero.constant);
  if (!number || !number.getValue().isZero())
    return std::nullopt;
  auto isRow = [&](ArrayRef<AffineExpr> at) { return at.size() == 2 && at[0] == row && at[1] == column; };
  TracedElement rows = traceScalar(select.getTrueValue(), element.frame, isRow);
  TracedElement inside = traceScalar(select.getCondition(), element.frame);
  auto both = getOp<arith::AndIOp>(inside);
  if (rows.kind != Kind::element || !isRow(rows.at) || !both)
    return std::nullopt;
  Bounds bounds;
  for (Value operand : both->getOperands())
    readBound(traceScalar(operand, inside.frame), group, row, bounds);
  if (!bounds.starts || !bounds.ends || !followEachOther(bounds))
    return std::nullopt;
  return RowGroups{rows.value, bounds.ends};
}

std::optional<GroupedMatmul> fp8::matchGroupedMatmul(Value lhs, Value rhs, ArrayRef<AffineMap> maps) {
  GroupedMatmul matmul{lhs, rhs, {}, llvm::to_vector(maps)};
  std::optional<unsigned> group;
  for (auto [operand, map] : {std::pair(&matmul.lhs, &matmul.maps[0]), {&matmul.rhs, &matmul.maps[1]}}) {
    auto rows = operand->getDefiningOp<GroupRowsOp>();
    if (!rows)
      continue;
    unsigned dim = map->getDimPosition(0);
    if (group && (*group != dim || matmul.ends != rows.getGroupEnds()))
      return std::nullopt;
    group = dim;
    matmul.ends = rows.getGroupEnds();
    *operand = rows.getRows();
    *map = map->dropResult(0);
  }
  if (!group)
    return std::nullopt;
  std::optional<GroupedDims> dims = inferGroupedDims(matmul.maps);
  if (!dims || dims->group != *group)
    return std::nullopt;
  // The rows of each operand are its first dimension.
  for (unsigned operand : {0, 1}) {
    bool isDivided = (operand == 0 ? lhs : rhs) != (operand == 0 ? matmul.lhs : matmul.rhs);
    if (isDivided && matmul.maps[operand].getDimPosition(0) != dims->rows)
      return std::nullopt;
  }
  return matmul;
}
