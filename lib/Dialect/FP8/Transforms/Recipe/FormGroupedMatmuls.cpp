// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns matmuls of fp8.group_rows into grouped matmuls, which read the rows in place.

#include "fp8/Analysis/RowGroups.h"
#include "fp8/Dialect/FP8/IR/MixedPrecision.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"

namespace fp8 {
#define GEN_PASS_DEF_FORMGROUPEDMATMULS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

//===----------------------------------------------------------------------===//
// Grouped matmuls
//===----------------------------------------------------------------------===//

static Value createGrouped(RewriterBase &rewriter, MatmulOp op, const GroupedMatmul &matmul, Value init) {
  GroupedMatmulOp::Properties properties;
  properties.setIndexingMaps(rewriter.getAffineMapArrayAttr(matmul.maps));
  properties.setSite(op.getSiteAttr());
  properties.setRole(op.getRoleAttr());
  properties.setKept(op.getKeptAttr());
  auto grouped =
      GroupedMatmulOp::create(rewriter, op.getLoc(), {matmul.lhs, matmul.rhs, matmul.ends, init}, properties);
  if (Attribute isTF32 = op->getAttr(kTF32AttrName))
    grouped->setAttr(kTF32AttrName, isTF32);
  return grouped->getResult(0);
}

static Value createGrouped(RewriterBase &rewriter, ScaledMatmulOp op, const GroupedMatmul &matmul,
                           Value init) {
  ScaledGroupedMatmulOp::Properties properties;
  properties.setIndexingMaps(rewriter.getAffineMapArrayAttr(matmul.maps));
  properties.setAccumulation(op.getAccumulationAttr());
  properties.setSite(op.getSiteAttr());
  properties.setRole(op.getRoleAttr());
  properties.setRecipe(op.getRecipeAttr());
  properties.setLhsBlock(op.getLhsBlockAttr());
  properties.setRhsBlock(op.getRhsBlockAttr());
  return ScaledGroupedMatmulOp::create(
             rewriter, op.getLoc(),
             {matmul.lhs, matmul.rhs, matmul.ends, op.getLhsScaleInv(), op.getRhsScaleInv(), init},
             properties)
      ->getResult(0);
}

/// Adds `sums` (f32) to `init`, and rounds once to its type.
static Value addTo(RewriterBase &rewriter, Location loc, Value sums, Value init) {
  auto type = cast<RankedTensorType>(init.getType());
  AffineMap identity = rewriter.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  auto body = [&](OpBuilder &b, Location loc, ValueRange arguments) {
    Value old = arguments[1];
    if (old.getType().getIntOrFloatBitWidth() < 32)
      old = arith::ExtFOp::create(b, loc, b.getF32Type(), old);
    Value sum = arith::AddFOp::create(b, loc, arguments[0], old);
    if (sum.getType() != type.getElementType())
      sum = arith::TruncFOp::create(b, loc, type.getElementType(), sum);
    linalg::YieldOp::create(b, loc, sum);
  };
  return linalg::GenericOp::create(rewriter, loc, type, sums, init, ArrayRef{identity, identity}, iterators,
                                   body)
      .getResult(0);
}

/// Returns whether `op` begins with the sums of another matmul, which a grouped matmul cannot.
static bool resumesSums(Operation *op) {
  auto matmulOp = dyn_cast<MatmulOp>(op);
  return matmulOp && matmulOp.getResume();
}

template <typename Op>
static void form(RewriterBase &rewriter, Op op) {
  std::optional<GroupedMatmul> matmul =
      matchGroupedMatmul(op.getLhs(), op.getRhs(), op.getIndexingMapsArray());
  auto isWide = [](Value value) { return getElementTypeOrSelf(value).isF64(); };
  if (!matmul || !op.isPlain() || resumesSums(op) || llvm::any_of(op->getOperands(), isWide))
    return;
  rewriter.setInsertionPoint(op);
  Value init = op.getInit(), destination = init;
  if (op.getAccumulate())
    destination = tensor::EmptyOp::create(
        rewriter, op.getLoc(), tensor::getMixedSizes(rewriter, op.getLoc(), init), rewriter.getF32Type());
  Value result = createGrouped(rewriter, op, *matmul, destination);
  if (op.getAccumulate())
    result = addTo(rewriter, op.getLoc(), result, init);
  rewriter.replaceOp(op, result);
}

//===----------------------------------------------------------------------===//
// Rows outside of all groups
//===----------------------------------------------------------------------===//

/// Returns the first row of each group: the largest end of the groups before, at least 0.
static Value computeStarts(RewriterBase &rewriter, Location loc, Value ends) {
  auto type = cast<RankedTensorType>(ends.getType());
  Type element = type.getElementType();
  Value zero = arith::ConstantOp::create(rewriter, loc, rewriter.getIntegerAttr(element, 0));
  Value empty = tensor::EmptyOp::create(rewriter, loc, tensor::getMixedSizes(rewriter, loc, ends), element);
  Value init = linalg::FillOp::create(rewriter, loc, zero, empty).getResult(0);
  AffineMap groups = AffineMap::get(2, 0, rewriter.getAffineDimExpr(0));
  AffineMap others = AffineMap::get(2, 0, rewriter.getAffineDimExpr(1));
  auto body = [](OpBuilder &b, Location loc, ValueRange arguments) {
    Value isBefore = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                           linalg::IndexOp::create(b, loc, 1).getResult(),
                                           linalg::IndexOp::create(b, loc, 0).getResult());
    Value later = arith::MaxSIOp::create(b, loc, arguments[0], arguments[1]);
    linalg::YieldOp::create(b, loc,
                            arith::SelectOp::create(b, loc, isBefore, later, arguments[1]).getResult());
  };
  return linalg::GenericOp::create(rewriter, loc, type, ends, init, ArrayRef{others, groups},
                                   {utils::IteratorType::parallel, utils::IteratorType::reduction}, body)
      .getResult(0);
}

/// Replaces `op` by a selection of the rows of each group.
static void expand(RewriterBase &rewriter, GroupRowsOp op) {
  rewriter.setInsertionPoint(op);
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getType());
  ReifiedRankedShapedTypeDims sizes;
  if (failed(op.reifyResultShapes(rewriter, sizes)))
    return;
  Value starts = computeStarts(rewriter, loc, op.getGroupEnds());
  Value zero = arith::ConstantOp::create(rewriter, loc, rewriter.getFloatAttr(type.getElementType(), 0.0));
  Value init = tensor::EmptyOp::create(rewriter, loc, sizes[0], type.getElementType());
  if (init.getType() != type)
    init = tensor::CastOp::create(rewriter, loc, type, init);
  AffineExpr group = rewriter.getAffineDimExpr(0);
  AffineMap perGroup = AffineMap::get(3, 0, group), all = rewriter.getMultiDimIdentityMap(3);
  SmallVector<utils::IteratorType> iterators(3, utils::IteratorType::parallel);
  auto body = [&](OpBuilder &b, Location loc, ValueRange arguments) {
    Value row = arith::IndexCastOp::create(b, loc, arguments[1].getType(),
                                           linalg::IndexOp::create(b, loc, 1).getResult());
    Value begun = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, arguments[1], row);
    Value goesOn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, row, arguments[2]);
    Value inside = arith::AndIOp::create(b, loc, begun, goesOn);
    linalg::YieldOp::create(b, loc, arith::SelectOp::create(b, loc, inside, arguments[0], zero).getResult());
  };
  auto generic = linalg::GenericOp::create(
      rewriter, loc, type, ValueRange{op.getRows(), starts, op.getGroupEnds()}, init,
      ArrayRef{all.getMinorSubMap(2), perGroup, perGroup, all}, iterators, body);
  rewriter.replaceOp(op, generic.getResult(0));
}

namespace {

struct FormGroupedMatmuls : fp8::impl::FormGroupedMatmulsBase<FormGroupedMatmuls> {
  void runOnOperation() final {
    IRRewriter rewriter(&getContext());
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa<MatmulOp, ScaledMatmulOp, GroupRowsOp>(op))
        ops.push_back(op);
    });
    for (Operation *&op : ops) {
      if (isa<GroupRowsOp>(op))
        continue;
      if (auto matmulOp = dyn_cast<MatmulOp>(op))
        form(rewriter, matmulOp);
      else
        form(rewriter, cast<ScaledMatmulOp>(op));
      op = nullptr;
    }
    for (Operation *op : ops)
      if (op && op->use_empty())
        rewriter.eraseOp(op);
      else if (op)
        expand(rewriter, cast<GroupRowsOp>(op));
  }
};

} // namespace
