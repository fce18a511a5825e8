// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers fp8.pack_scales: each byte of the result is computed from its place, for all targets.

#include "CastLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp8;

namespace {

/// Writes the code of one byte: arithmetic of unsigned indices.
class PackedByte {
public:
  PackedByte(OpBuilder &b, Location loc, Value scales, ArrayRef<Value> sizes)
      : b(b), loc(loc), scales(scales), sizes(sizes) {}

  /// Returns the byte at `place` of the result; 0 if there is no scale for it.
  Value build(Value place) {
    Value tile = divide(place, 512), column = remainder(place, 4);
    Value row = add(multiply(remainder(divide(place, 4), 4), number(32)), remainder(divide(place, 16), 32));
    Value tilesX = arith::CeilDivUIOp::create(b, loc, sizes.back(), number(4));
    Value tilesY = arith::CeilDivUIOp::create(b, loc, *(sizes.end() - 2), number(128));
    column = add(column, multiply(remainder(tile, tilesX), number(4)));
    tile = divide(tile, tilesX);
    row = add(row, multiply(remainder(tile, tilesY), number(128)));
    Value batch = divide(tile, tilesY);
    SmallVector<Value> indices(sizes.size());
    indices.back() = column;
    *(indices.end() - 2) = row;
    for (size_t dim = sizes.size() - 2; dim-- > 0; batch = divide(batch, sizes[dim]))
      indices[dim] = remainder(batch, sizes[dim]);
    Value exists =
        arith::AndIOp::create(b, loc, isBelow(row, *(sizes.end() - 2)), isBelow(column, sizes.back()));
    return loadIf(exists, indices);
  }

private:
  Value number(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value multiply(Value x, Value y) { return arith::MulIOp::create(b, loc, x, y); }
  Value divide(Value x, Value y) { return arith::DivUIOp::create(b, loc, x, y); }
  Value divide(Value x, int64_t y) { return divide(x, number(y)); }
  Value remainder(Value x, Value y) { return arith::RemUIOp::create(b, loc, x, y); }
  Value remainder(Value x, int64_t y) { return remainder(x, number(y)); }
  Value isBelow(Value x, Value y) { return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, x, y); }

  Value loadIf(Value exists, ValueRange indices) {
    auto load = [&](OpBuilder &nested, Location loc) {
      Value scale = memref::LoadOp::create(nested, loc, scales, indices);
      Value byte = arith::BitcastOp::create(nested, loc, nested.getI8Type(), scale);
      scf::YieldOp::create(nested, loc, byte);
    };
    auto zero = [&](OpBuilder &nested, Location loc) {
      Value byte = arith::ConstantOp::create(nested, loc, nested.getI8IntegerAttr(0));
      scf::YieldOp::create(nested, loc, byte);
    };
    Value byte = scf::IfOp::create(b, loc, exists, load, zero).getResult(0);
    return arith::BitcastOp::create(b, loc, Float8E8M0FNUType::get(b.getContext()), byte);
  }

  OpBuilder &b;
  Location loc;
  Value scales;
  ArrayRef<Value> sizes;
};

} // namespace

LogicalResult fp8::lowerPackScales(OpBuilder &builder, PackScalesOp op) {
  Location loc = op.getLoc();
  SmallVector<Value> sizes;
  for (OpFoldResult size : memref::getMixedSizes(builder, loc, op.getScales()))
    sizes.push_back(getValueOrCreateConstantIndexOp(builder, loc, size));
  linalg::GenericOp::create(
      builder, loc, ValueRange(), ValueRange{op.getOuts()}, ArrayRef<AffineMap>{builder.getDimIdentityMap()},
      utils::IteratorType::parallel, [&](OpBuilder &b, Location loc, ValueRange) {
        Value place = linalg::IndexOp::create(b, loc, 0);
        linalg::YieldOp::create(b, loc, PackedByte(b, loc, op.getScales(), sizes).build(place));
      });
  return success();
}
