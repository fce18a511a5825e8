// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers amax, quantize and dequantize, and the cast of a matmul's result.

#include "CastLowering.h"
#include "TensorScale.h"
#include "fp8/Conversion/FP8ToLinalg/FP8Casts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace fp8;

Value fp8::buildMagnitudeBits(OpBuilder &b, Location loc, Value value) {
  auto constant = [&](int32_t bits) { return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(bits)); };
  Value bits = arith::BitcastOp::create(b, loc, b.getI32Type(), value);
  Value magnitude = arith::AndIOp::create(b, loc, bits, constant(0x7FFFFFFF));
  Value isNaN = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ugt, magnitude, constant(0x7F800000));
  return arith::SelectOp::create(b, loc, isNaN, constant(0), magnitude);
}

static LogicalResult refuseF64(Operation *op, Type element) {
  if (!element.isF64())
    return success();
  return op->emitOpError("of f64 has no lowering for the CPU yet");
}

/// Returns the element type of the tensor that `op` casts or measures.
static Type getElementType(Operation *op) {
  ElementRegion region = *ElementRegion::of(op);
  return region.isEmpty() ? getElementTypeOrSelf(region.inputs[0]) : region.yield().getValue().getType();
}

LogicalResult fp8::lowerAmax(OpBuilder &builder, AmaxOp op) {
  if (failed(refuseF64(op, getElementType(op))))
    return failure();
  ElementLoops(builder, op).run([](OpBuilder &, Location, Value, ValueRange) {}); // nothing but the amax
  return success();
}

/// Writes 1 / scale, correctly rounded, and returns the scale.
static Value lowerScale(OpBuilder &builder, Location loc, Value scaleBuffer, Value scaleInvBuffer) {
  Value scale = memref::LoadOp::create(builder, loc, scaleBuffer);
  Value unit = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(1.0f));
  Value scaleInv = arith::DivFOp::create(builder, loc, unit, scale);
  memref::StoreOp::create(builder, loc, scaleInv, scaleInvBuffer);
  return scale;
}

CastEncoder::CastEncoder(OpBuilder &builder, Location loc, Value random, std::optional<int64_t> stream,
                         FloatType format, ArrayRef<Value> sizes)
    : format(format), sizes(sizes) {
  if (random)
    source = RandomSource::load(builder, loc, random, *stream);
}

/// Returns the number of the element at `indices`, as an i32 where that holds the numbers of all elements.
static Value numberElement(OpBuilder &b, Location loc, ArrayRef<Value> sizes, ValueRange indices) {
  Value number = arith::ConstantIndexOp::create(b, loc, 0);
  for (auto [index, size] : llvm::zip_equal(indices, sizes)) {
    number = b.createOrFold<arith::MulIOp>(loc, number, size);
    number = b.createOrFold<arith::AddIOp>(loc, number, index);
  }
  SmallVector<int64_t> known = llvm::map_to_vector(
      sizes, [](Value size) { return getConstantIntValue(size).value_or(ShapedType::kDynamic); });
  Type type = canCountIn32Bits(known) ? b.getI32Type() : b.getI64Type();
  return arith::IndexCastOp::create(b, loc, type, number);
}

Value CastEncoder::encode(OpBuilder &b, Location loc, Value scaled, ValueRange indices) const {
  if (!source)
    return buildEncodeFP8(b, loc, scaled, format);
  Value word = buildRandomWord(b, loc, *source, numberElement(b, loc, sizes, indices));
  return arith::BitcastOp::create(b, loc, format, buildStochasticFP8(b, loc, scaled, format, word));
}

LogicalResult fp8::lowerQuantize(OpBuilder &builder, QuantizeOp op) {
  if (failed(refuseF64(op, getElementType(op))))
    return failure();
  Value data = op.getOuts()[0];
  Value dataT = op.getTransposition() ? op.getOuts()[op.getDataTIndex()] : Value();
  Value scale = lowerScale(builder, op.getLoc(), op.getScale(), op.getOuts()[op.getScaleInvIndex()]);

  ElementLoops loops(builder, op);
  CastEncoder encoder(builder, op.getLoc(), op.getRandom(), op.getStream(), op.getFormat(), loops.getSizes());
  loops.run([&](OpBuilder &b, Location loc, Value element, ValueRange indices) {
    Value value = buildWiden(b, loc, element);
    Value encoded = encoder.encode(b, loc, arith::MulFOp::create(b, loc, value, scale), indices);
    memref::StoreOp::create(b, loc, encoded, data, indices);
    if (dataT) {
      auto transposed =
          llvm::map_to_vector(*op.getTransposition(), [&](int64_t d) -> Value { return indices[d]; });
      memref::StoreOp::create(b, loc, encoded, dataT, transposed);
    }
  });
  return success();
}

void fp8::lowerQuantizedEpilogue(OpBuilder &builder, Operation *op, Value outScale,
                                 ElementLoops::FirstBuilder sum) {
  ValueRange outs = ElementRegion::of(op)->outs;
  Value data = outs[0];
  auto format = cast<FloatType>(getElementTypeOrSelf(data));
  Value scale = lowerScale(builder, op->getLoc(), outScale, outs[1]);
  ElementLoops(builder, op)
      .run(
          [&](OpBuilder &b, Location loc, Value element, ValueRange indices) {
            Value value = buildWiden(b, loc, element);
            Value encoded = buildEncodeFP8(b, loc, arith::MulFOp::create(b, loc, value, scale), format);
            memref::StoreOp::create(b, loc, encoded, data, indices);
          },
          sum);
}

/// A scale per row is an operand of the loops; one per block is loaded for each element.
LogicalResult fp8::lowerDequantize(OpBuilder &builder, DequantizeOp op) {
  if (failed(refuseF64(op, getElementTypeOrSelf(op.getOuts()))))
    return failure();
  int64_t rank = cast<MemRefType>(op.getOuts().getType()).getRank();
  AffineMap identity = builder.getMultiDimIdentityMap(rank);
  TensorScale scale(op.getScaleInv(), op.getBlock(), identity);
  std::optional<AffineMap> scaleMap = scale.getMap();
  SmallVector<Value> inputs{op.getData()};
  SmallVector<AffineMap> maps{identity};
  if (scaleMap) {
    inputs.push_back(op.getScaleInv());
    maps.push_back(*scaleMap);
  }
  maps.push_back(identity);
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  linalg::GenericOp::create(
      builder, op.getLoc(), inputs, ValueRange{op.getOuts()}, maps, iterators,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value factor;
        if (scaleMap) {
          factor = buildWiden(b, loc, args[1]);
        } else {
          auto indices = llvm::map_to_vector(llvm::seq<int64_t>(rank), [&](int64_t d) -> Value {
            return linalg::IndexOp::create(b, loc, d);
          });
          factor = scale.load(b, loc, indices);
        }
        Value value = arith::MulFOp::create(b, loc, buildDecodeFP8(b, loc, args[0]), factor);
        linalg::YieldOp::create(b, loc, buildNarrow(b, loc, value, args.back().getType()));
      });
  return success();
}
