// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions that pack the rows of a matrix into panels for tile registers: for every 16 pairs of bf16
// elements along K, the rows of the panel one after the other. Masked loads read zeros beyond K and beyond
// the last row.

#include "PackedGemmDetail.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp8;

/// Pairs along K, and rows, of a tile register.
static constexpr int64_t kSide = 16;

namespace {
/// Emits the body of one packing function.
class TilePackBuilder {
public:
  TilePackBuilder(Location loc, ValueRange operands, bool alongK)
      : loc(loc), source(operands[0]), panels(operands[1]), firstPanel(operands[2]), alongK(alongK),
        width(cast<MemRefType>(panels.getType()).getShape().back()),
        element(cast<MemRefType>(source.getType()).getElementType()) {}

  void build(OpBuilder &b);

private:
  Value index(OpBuilder &b, int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value sum(OpBuilder &b, Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  /// Loads the first `valid` of `count` elements of the source from (row, k) on, and zeros.
  Value load(OpBuilder &b, Value row, Value k, Value valid, int64_t count);
  /// Packs the pairs at indices [k, k + 32) of K of the panel's row `lane`, which is `row` of the source.
  void packRow(OpBuilder &b, Value panel, Value row, Value k, Value lane);
  /// Packs those of 16 rows from `lane` on, which begin at `row` of the source.
  void packSquare(OpBuilder &b, Value panel, Value row, Value k, int64_t lane);
  /// Stores the pairs of one row of a panel at indices of K from `k` on.
  void store(OpBuilder &b, Value pairs, Value panel, Value k, Value lane);

  Location loc;
  Value source, panels, firstPanel;
  bool alongK;
  int64_t width;
  Type element;
  Value outer, depth; ///< sizes of the source
};
} // namespace

/// Returns the least of `size` - `begin` and `most`, at least 0.
static Value countLeft(OpBuilder &b, Location loc, Value size, Value begin, int64_t most) {
  Value left = arith::SubIOp::create(b, loc, size, begin);
  Value bounded = arith::MinSIOp::create(b, loc, left, arith::ConstantIndexOp::create(b, loc, most));
  return arith::MaxSIOp::create(b, loc, bounded, arith::ConstantIndexOp::create(b, loc, 0));
}

Value TilePackBuilder::load(OpBuilder &b, Value row, Value k, Value valid, int64_t count) {
  auto type = VectorType::get(count, element);
  Value mask = vector::CreateMaskOp::create(b, loc, type.clone(b.getI1Type()), valid);
  Value zeros = arith::ConstantOp::create(
      b, loc, b.getZeroAttr(type.clone(b.getIntegerType(element.getIntOrFloatBitWidth()))));
  zeros = arith::BitcastOp::create(b, loc, type, zeros);
  Value at[] = {row, k};
  if (!alongK)
    std::swap(at[0], at[1]);
  return vector::MaskedLoadOp::create(b, loc, type, source, ValueRange(at), mask, zeros);
}

void TilePackBuilder::store(OpBuilder &b, Value pairs, Value panel, Value k, Value lane) {
  // k / 2 pairs before, in `width` rows; then rows of 16 pairs.
  Value rows =
      arith::DivUIOp::create(b, loc, arith::MulIOp::create(b, loc, lane, index(b, kSide)), index(b, width));
  Value at = sum(b, arith::DivUIOp::create(b, loc, k, index(b, 2)), rows);
  Value inRow =
      arith::RemUIOp::create(b, loc, arith::MulIOp::create(b, loc, lane, index(b, kSide)), index(b, width));
  vector::StoreOp::create(b, loc, pairs, panels, ValueRange{panel, at, inRow});
}

void TilePackBuilder::packRow(OpBuilder &b, Value panel, Value row, Value k, Value lane) {
  Value elements = load(b, row, k, countLeft(b, loc, depth, k, 2 * kSide), 2 * kSide);
  store(b, buildAdjacentPairs(b, loc, elements), panel, k, lane);
}

void TilePackBuilder::packSquare(OpBuilder &b, Value panel, Value row, Value k, int64_t lane) {
  Value valid = countLeft(b, loc, outer, row, kSide), none = index(b, 0);
  SmallVector<Value> pairs;
  for (int64_t pair = 0; pair < kSide; ++pair) {
    Value low = sum(b, k, index(b, 2 * pair)), high = sum(b, k, index(b, 2 * pair + 1));
    Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, low, depth);
    Value count = arith::SelectOp::create(b, loc, isInside, valid, none); // K is even
    Value elements[] = {extendToF32(b, loc, load(b, row, low, count, kSide)),
                        extendToF32(b, loc, load(b, row, high, count, kSide))};
    pairs.push_back(buildPairs(b, loc, elements[0], elements[1]));
  }
  for (auto [i, vector] : llvm::enumerate(transposeSquare(b, loc, pairs)))
    store(b, vector, panel, k, index(b, lane + static_cast<int64_t>(i)));
}

void TilePackBuilder::build(OpBuilder &b) {
  outer = memref::DimOp::create(b, loc, source, alongK ? 0 : 1);
  depth = memref::DimOp::create(b, loc, source, alongK ? 1 : 0);
  Value zero = index(b, 0), one = index(b, 1), step = index(b, 2 * kSide);
  Value count = memref::DimOp::create(b, loc, panels, 0);
  Value lastRow = arith::SubIOp::create(b, loc, outer, one);
  scf::buildLoopNest(
      b, loc, {zero, zero}, {count, depth}, {one, step}, [&](OpBuilder &body, Location, ValueRange at) {
        Value first = arith::MulIOp::create(body, loc, sum(body, firstPanel, at[0]), index(body, width));
        if (!alongK) {
          for (int64_t lane = 0; lane < width; lane += kSide)
            packSquare(body, at[0], sum(body, first, index(body, lane)), at[1], lane);
          return;
        }
        // Rows beyond the last one repeat it: nothing reads their sums.
        auto rows = scf::ForOp::create(body, loc, zero, index(body, width), one);
        OpBuilder inside = OpBuilder::atBlockTerminator(rows.getBody());
        Value lane = rows.getInductionVar();
        Value row = arith::MinSIOp::create(inside, loc, sum(inside, first, lane), lastRow);
        packRow(inside, at[0], row, at[1], lane);
      });
}

void fp8::buildTilePack(OpBuilder &builder, Location loc, const OperandMatrix &matrix, Value panels,
                        OpFoldResult first) {
  int64_t width = cast<MemRefType>(panels.getType()).getShape().back();
  Type element = cast<MemRefType>(matrix.view.getType()).getElementType();
  std::string name = "fp8_cpu_pack_";
  llvm::raw_string_ostream(name) << element << "_tiles" << (matrix.alongK ? "_k_" : "_rows_") << width;
  Type inputs[] = {getStridedType(element, 2), getStridedType(builder.getF32Type(), 3, width),
                   builder.getIndexType()};
  func::FuncOp pack = getOrCreateFunction(builder, name, inputs, [&](OpBuilder &body, ValueRange arguments) {
    TilePackBuilder(body.getUnknownLoc(), arguments, matrix.alongK).build(body);
  });
  callFunction(builder, loc, pack,
               ValueRange{matrix.view, panels, getValueOrCreateConstantIndexOp(builder, loc, first)});
}
