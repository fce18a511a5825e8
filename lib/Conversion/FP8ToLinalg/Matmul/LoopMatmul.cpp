// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A matmul as plain loops: one parallel iteration per element of the result, each with one loop over the
// contracted dimensions. Targets without packed matmuls use it where they have no kernel for a matmul.

#include "LoopMatmul.h"
#include "fp8/Conversion/FP8ToLinalg/FP8Casts.h"
#include "fp8/Dialect/FP8/IR/MatmulMarks.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace fp8;

/// A split sum adds blocks of this many matmuls, each summed from zero.
static constexpr int64_t kSplitBlock = 128;

namespace {
class LoopMatmulBuilder {
public:
  LoopMatmulBuilder(OpBuilder &builder, Location loc, Value lhs, Value rhs, ArrayRef<AffineMap> maps,
                    const MatmulScales &scales, bool split, Value start)
      : builder(builder), loc(loc), operands{lhs, rhs}, maps(maps), scales(scales), split(split),
        start(start) {}

  Value build(ArrayAttr marks);

private:
  Value number(OpBuilder &b, int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value sizeOf(unsigned dim);
  Value load(OpBuilder &b, unsigned operand, ArrayRef<Value> indices);
  Value sumRange(OpBuilder &b, Value begin, Value end, Value start);
  /// Adds `block`, the sum of the products from `begin` on, to `sum`.
  Value addBlock(OpBuilder &b, Value begin, Value block, Value sum);
  Value sumAll(OpBuilder &b);

  OpBuilder &builder;
  Location loc;
  Value operands[2];
  ArrayRef<AffineMap> maps;
  const MatmulScales &scales;
  bool split;
  Value start; ///< the sums that those of the products are added to; or null
  SmallVector<unsigned> contracted;
  Value length;                ///< of the contracted dimensions together
  SmallVector<Value> sizes;    ///< of the contracted dimensions
  SmallVector<Value> position; ///< index per dimension of the iteration space
};
} // namespace

Value LoopMatmulBuilder::sizeOf(unsigned dim) {
  for (auto [operand, map] : llvm::zip(operands, maps))
    if (std::optional<unsigned> result = map.getResultPosition(builder.getAffineDimExpr(dim)))
      return getValueOrCreateConstantIndexOp(builder, loc,
                                             memref::getMixedSize(builder, loc, operand, *result));
  llvm_unreachable("a dimension of a contraction is in an operand");
}

/// Returns an element of an operand as f32, times its scale where scales are of elements.
Value LoopMatmulBuilder::load(OpBuilder &b, unsigned operand, ArrayRef<Value> indices) {
  SmallVector<Value> at;
  for (AffineExpr expr : maps[operand].getResults())
    at.push_back(indices[cast<AffineDimExpr>(expr).getPosition()]);
  Value value = buildWiden(b, loc, memref::LoadOp::create(b, loc, operands[operand], at));
  if (scales.getPlace(operand) != MatmulScales::Place::elements)
    return value;
  return arith::MulFOp::create(b, loc, value, scales.operands[operand].load(b, loc, indices));
}

/// Adds the matmuls `begin` to `end` of the contracted dimensions, which count as one, to `start`.
Value LoopMatmulBuilder::sumRange(OpBuilder &b, Value begin, Value end, Value start) {
  auto loop = scf::ForOp::create(
      b, loc, begin, end, number(b, 1), start, [&](OpBuilder &inner, Location loc, Value k, ValueRange sum) {
        SmallVector<Value> indices(position);
        for (auto [dim, size] : llvm::reverse(llvm::zip_equal(contracted, sizes))) {
          bool isFirst = dim == contracted.front();
          indices[dim] = isFirst ? k : arith::RemUIOp::create(inner, loc, k, size).getResult();
          if (!isFirst)
            k = arith::DivUIOp::create(inner, loc, k, size);
        }
        Value next =
            math::FmaOp::create(inner, loc, load(inner, 0, indices), load(inner, 1, indices), sum[0]);
        scf::YieldOp::create(inner, loc, next);
      });
  return loop.getResult(0);
}

Value LoopMatmulBuilder::addBlock(OpBuilder &b, Value begin, Value block, Value sum) {
  if (scales.isOfBlocks()) {
    SmallVector<Value> indices(position);
    indices[contracted.front()] = begin;
    Value factors[] = {scales.operands[scales.first].load(b, loc, indices),
                       scales.operands[1 - scales.first].load(b, loc, indices)};
    return math::FmaOp::create(b, loc, arith::MulFOp::create(b, loc, block, factors[0]), factors[1], sum);
  }
  // The first block is the sum, bit for bit: 0 + -0 would be 0.
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, begin, number(b, 0));
  Value total = arith::AddFOp::create(b, loc, sum, block);
  return arith::SelectOp::create(b, loc, isFirst, block, total);
}

Value LoopMatmulBuilder::sumAll(OpBuilder &b) {
  if (start) {
    SmallVector<Value> at = llvm::map_to_vector(maps[2].getResults(), [&](AffineExpr expr) {
      return position[cast<AffineDimExpr>(expr).getPosition()];
    });
    return sumRange(b, number(b, 0), length, memref::LoadOp::create(b, loc, start, at));
  }
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  if (!split && !scales.isOfBlocks())
    return sumRange(b, number(b, 0), length, zero);
  Value step = number(b, scales.isOfBlocks() ? scales.length : kSplitBlock);
  auto blocks = scf::ForOp::create(b, loc, number(b, 0), length, step, zero,
                                   [&](OpBuilder &inner, Location loc, Value begin, ValueRange sum) {
                                     Value next = arith::AddIOp::create(inner, loc, begin, step);
                                     Value end = arith::MinUIOp::create(inner, loc, next, length);
                                     Value block = sumRange(inner, begin, end, zero);
                                     scf::YieldOp::create(inner, loc, addBlock(inner, begin, block, sum[0]));
                                   });
  return blocks.getResult(0);
}

Value LoopMatmulBuilder::build(ArrayAttr marks) {
  AffineMap output = maps[2];
  unsigned numDims = output.getNumDims();
  position.resize(numDims);
  SmallVector<Value> lower, upper, steps, dynamic;
  SmallVector<int64_t> shape;
  for (AffineExpr expr : output.getResults()) {
    Value size = sizeOf(cast<AffineDimExpr>(expr).getPosition());
    shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
    if (ShapedType::isDynamic(shape.back()))
      dynamic.push_back(size);
    lower.push_back(number(builder, 0));
    upper.push_back(size);
    steps.push_back(number(builder, 1));
  }
  for (unsigned dim : llvm::seq(numDims))
    if (!output.isFunctionOfDim(dim))
      contracted.push_back(dim);
  length = number(builder, 1);
  for (unsigned dim : contracted) {
    sizes.push_back(sizeOf(dim));
    length = arith::MulIOp::create(builder, loc, length, sizes.back());
  }
  Value sums = memref::AllocOp::create(builder, loc, MemRefType::get(shape, builder.getF32Type()), dynamic);
  auto store = [&](OpBuilder &b, ValueRange indices) {
    for (auto [expr, index] : llvm::zip_equal(output.getResults(), indices))
      position[cast<AffineDimExpr>(expr).getPosition()] = index;
    memref::StoreOp::create(b, loc, sumAll(b), sums, indices);
  };
  if (shape.empty()) { // a dot product: one thread
    auto kernel =
        scf::ForOp::create(builder, loc, number(builder, 0), number(builder, 1), number(builder, 1));
    OpBuilder inside = OpBuilder::atBlockBegin(kernel.getBody());
    store(inside, {});
    kernel->setAttr(kMatmulsAttrName, marks);
    return sums;
  }
  auto kernel =
      scf::ParallelOp::create(builder, loc, lower, upper, steps,
                              [&](OpBuilder &b, Location, ValueRange indices) { store(b, indices); });
  kernel->setAttr(kMatmulsAttrName, marks);
  return sums;
}

Value fp8::buildLoopMatmul(OpBuilder &builder, Location loc, Value lhs, Value rhs, ArrayRef<AffineMap> maps,
                           const MatmulScales &scales, bool split, ArrayAttr marks, Value start) {
  return LoopMatmulBuilder(builder, loc, lhs, rhs, maps, scales, split, start).build(marks);
}
