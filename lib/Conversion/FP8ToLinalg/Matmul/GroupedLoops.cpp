// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A grouped matmul as plain loops: one parallel iteration per element of the result, which finds its
// group and sums. Targets without packed matmuls use it where they have no kernel for a grouped matmul.

#include "GroupedMatmul.h"
#include "fp8/Conversion/FP8ToLinalg/FP8Casts.h"
#include "fp8/Dialect/FP8/IR/MatmulMarks.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp8;

/// A split sum adds blocks of this many matmuls, each summed from zero.
static constexpr int64_t kSplitBlock = 128;

namespace {
/// Builds the code of one element of the result.
class ElementBuilder {
public:
  ElementBuilder(const GroupedParts &parts, OpBuilder &b) : parts(parts), b(b), loc(parts.loc), indices(4) {}

  void build(ValueRange position);

private:
  struct Range {
    Value begin, end;
  };
  Value number(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value load(OpBuilder &inner, unsigned operand, Value k);
  Range findRows(Value group);
  Value findGroup(Value row);
  Value sum(OpBuilder &inner, Value begin, Value end, Value start);
  Value sumRange(Range range);
  void store(Value sum);

  const GroupedParts &parts;
  OpBuilder &b;
  Location loc;
  SmallVector<Value> indices; ///< per dimension of the iteration space; that of K is not set
};
} // namespace

/// Returns the rows of `group`.
ElementBuilder::Range ElementBuilder::findRows(Value group) {
  auto before = scf::ForOp::create(b, loc, number(0), group, number(1), number(0),
                                   [&](OpBuilder &inner, Location, Value other, ValueRange begin) {
                                     Value end = parts.buildEnd(inner, other, begin[0]);
                                     scf::YieldOp::create(inner, loc, end);
                                   });
  Value begin = before.getResult(0);
  return {begin, parts.buildEnd(b, group, begin)};
}

/// Returns the group of `row`, the number of groups if it is in none: how many groups end before.
Value ElementBuilder::findGroup(Value row) {
  SmallVector<Value> start{number(0), number(0)};
  auto loop = scf::ForOp::create(
      b, loc, number(0), parts.buildSize(b, parts.dims.group), number(1), start,
      [&](OpBuilder &inner, Location, Value group, ValueRange state) {
        Value end = parts.buildEnd(inner, group, state[0]);
        Value isBefore = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::ule, end, row);
        Value count = arith::AddIOp::create(inner, loc, state[1],
                                            arith::ConstantIndexOp::create(inner, loc, 1).getResult());
        Value next = arith::SelectOp::create(inner, loc, isBefore, count, state[1]);
        scf::YieldOp::create(inner, loc, ValueRange{end, next});
      });
  return loop.getResult(1);
}

/// Returns the element of an operand at index `k` of K, as f32.
Value ElementBuilder::load(OpBuilder &inner, unsigned operand, Value k) {
  SmallVector<Value> at;
  for (AffineExpr expr : parts.maps[operand].getResults()) {
    unsigned dim = cast<AffineDimExpr>(expr).getPosition();
    at.push_back(dim == parts.matmul.k.front() ? k : indices[dim]);
  }
  return buildWiden(inner, loc, memref::LoadOp::create(inner, loc, parts.operands[operand], at));
}

/// Adds the products from `begin` to `end` to `start`.
Value ElementBuilder::sum(OpBuilder &inner, Value begin, Value end, Value start) {
  auto loop = scf::ForOp::create(
      inner, loc, begin, end, number(1), start, [&](OpBuilder &body, Location, Value k, ValueRange sum) {
        Value next = math::FmaOp::create(body, loc, load(body, 0, k), load(body, 1, k), sum[0]);
        scf::YieldOp::create(body, loc, next);
      });
  return loop.getResult(0);
}

Value ElementBuilder::sumRange(Range range) {
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  if (!parts.split)
    return sum(b, range.begin, range.end, zero);
  Value step = number(kSplitBlock);
  auto blocks = scf::ForOp::create(
      b, loc, range.begin, range.end, step, zero,
      [&](OpBuilder &inner, Location, Value begin, ValueRange total) {
        Value next = arith::AddIOp::create(inner, loc, begin, step);
        Value block = sum(inner, begin, arith::MinUIOp::create(inner, loc, next, range.end), zero);
        // The first block is the sum, bit for bit: 0 + -0 would be 0.
        Value isFirst = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::eq, begin, range.begin);
        Value added = arith::AddFOp::create(inner, loc, total[0], block);
        scf::YieldOp::create(inner, loc,
                             arith::SelectOp::create(inner, loc, isFirst, block, added).getResult());
      });
  return blocks.getResult(0);
}

void ElementBuilder::store(Value sum) {
  Value scale = parts.buildScale(b, indices);
  Value value = scale ? arith::MulFOp::create(b, loc, scale, sum).getResult() : sum;
  SmallVector<Value> at;
  for (AffineExpr expr : parts.maps[2].getResults())
    at.push_back(indices[cast<AffineDimExpr>(expr).getPosition()]);
  memref::StoreOp::create(b, loc, buildNarrow(b, loc, value, getElementTypeOrSelf(parts.out)), parts.out, at);
}

void ElementBuilder::build(ValueRange position) {
  for (auto [expr, index] : llvm::zip_equal(parts.maps[2].getResults(), position))
    indices[cast<AffineDimExpr>(expr).getPosition()] = index;
  if (parts.dims.divided == 2)
    return store(sumRange(findRows(indices[parts.dims.group])));
  // A row of no group has nothing to sum, and reads the scales of the last group.
  Value group = findGroup(indices[parts.dims.rows]), groups = parts.buildSize(b, parts.dims.group);
  Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, group, groups);
  Value last = arith::SubIOp::create(b, loc, groups, number(1));
  indices[parts.dims.group] = arith::SelectOp::create(b, loc, inside, group, last);
  Value length = parts.buildSize(b, parts.matmul.k.front());
  Value total = sumRange({number(0), arith::SelectOp::create(b, loc, inside, length, number(0))});
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  store(arith::SelectOp::create(b, loc, inside, total, zero));
}

LogicalResult fp8::lowerGroupedToLoops(OpBuilder &builder, const GroupedParts &parts) {
  Location loc = parts.loc;
  SmallVector<Value> upper, lower, steps;
  for (AffineExpr expr : parts.maps[2].getResults()) {
    upper.push_back(parts.buildSize(builder, cast<AffineDimExpr>(expr).getPosition()));
    lower.push_back(arith::ConstantIndexOp::create(builder, loc, 0));
    steps.push_back(arith::ConstantIndexOp::create(builder, loc, 1));
  }
  auto kernel = scf::ParallelOp::create(
      builder, loc, lower, upper, steps,
      [&](OpBuilder &b, Location, ValueRange position) { ElementBuilder(parts, b).build(position); });
  kernel->setAttr(kMatmulsAttrName, parts.mark("f32 loops", "GPU threads"));
  return success();
}
