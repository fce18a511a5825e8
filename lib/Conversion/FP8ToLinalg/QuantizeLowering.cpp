// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// amax, quantize and dequantize. amax and quantize share one loop nest, which reads each
// element once: rows in parallel, a maximum per row, then the maximum of the rows.

#include "FP8Casts.h"
#include "Lowering.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace fp8;

namespace {

/// Rows that together hold fewer elements run on one thread: starting another takes longer.
constexpr int64_t kParallelThreshold = 32768;

/// Emits loops over all elements of a shape; `element` handles one and returns the bits
/// of its magnitude for the maximum, or nothing where none is wanted.
class ElementLoops {
public:
  using ElementBuilder = function_ref<Value(OpBuilder &, Location, ValueRange indices)>;

  ElementLoops(OpBuilder &builder, Location loc, Value like) : builder(builder), loc(loc) {
    zero = arith::ConstantIndexOp::create(builder, loc, 0);
    one = arith::ConstantIndexOp::create(builder, loc, 1);
    for (OpFoldResult size : memref::getMixedSizes(builder, loc, like))
      sizes.push_back(getValueOrCreateConstantIndexOp(builder, loc, size));
    auto type = cast<MemRefType>(like.getType());
    parallel = type.getRank() > 1 && (!type.hasStaticShape() || type.getNumElements() >= kParallelThreshold);
  }

  /// Runs over all elements and writes the maximum of what `element` returns to
  /// `amax` (rank 0, f32); without `amax` nothing is reduced.
  void run(Value amax, ElementBuilder element) {
    if (sizes.size() < 2) {
      store(amax, runInner(builder, {}, 0, noMaximum(builder, amax), element));
      return;
    }
    Value rowMaxima;
    if (amax)
      rowMaxima = memref::AllocOp::create(
          builder, loc, MemRefType::get({staticSize(0)}, builder.getI32Type()),
          staticSize(0) == ShapedType::kDynamic ? ValueRange(sizes[0]) : ValueRange());
    auto row = [&](OpBuilder &b, Location, ValueRange index) {
      Value maximum = runInner(b, index, 1, noMaximum(b, amax), element);
      if (amax)
        memref::StoreOp::create(b, loc, maximum, rowMaxima, index);
    };
    if (parallel)
      scf::ParallelOp::create(builder, loc, ValueRange(zero), ValueRange(sizes[0]), ValueRange(one), row);
    else
      scf::buildLoopNest(builder, loc, zero, sizes[0], one, row);
    if (!amax)
      return;
    auto maximum = scf::ForOp::create(builder, loc, zero, sizes[0], one, noMaximum(builder, amax),
                                      [&](OpBuilder &b, Location, Value i, ValueRange carried) {
                                        Value value = memref::LoadOp::create(b, loc, rowMaxima, i);
                                        Value larger = arith::MaxUIOp::create(b, loc, carried[0], value);
                                        scf::YieldOp::create(b, loc, larger);
                                      });
    store(amax, maximum.getResult(0));
  }

private:
  int64_t staticSize(unsigned d) {
    std::optional<int64_t> size = getConstantIntValue(sizes[d]);
    return size.value_or(ShapedType::kDynamic);
  }

  /// The starting value of the maximum; empty where none is wanted.
  SmallVector<Value> noMaximum(OpBuilder &b, Value amax) {
    if (!amax)
      return {};
    return {arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0))};
  }

  void store(Value amax, Value bits) {
    if (!amax)
      return;
    Value value = arith::BitcastOp::create(builder, loc, builder.getF32Type(), bits);
    memref::StoreOp::create(builder, loc, value, amax);
  }

  /// Sequential loops over dimensions `d`… inside `outer`; returns the maximum.
  Value runInner(OpBuilder &b, ValueRange outer, unsigned d, ValueRange carried, ElementBuilder element) {
    SmallVector<Value> indices(outer);
    if (d == sizes.size()) {
      Value bits = element(b, loc, indices);
      return carried.empty() ? Value() : Value(arith::MaxUIOp::create(b, loc, carried[0], bits));
    }
    auto loop = scf::ForOp::create(
        b, loc, zero, sizes[d], one, carried, [&](OpBuilder &inner, Location, Value i, ValueRange maxima) {
          indices.push_back(i);
          Value result = runInner(inner, indices, d + 1, maxima, element);
          scf::YieldOp::create(inner, loc, maxima.empty() ? ValueRange() : ValueRange(result));
        });
    return carried.empty() ? Value() : loop.getResult(0);
  }

  OpBuilder &builder;
  Location loc;
  Value zero, one;
  SmallVector<Value> sizes;
  bool parallel;
};

} // namespace

/// The bits of |value|, 0 for NaN: as unsigned integers they order like the magnitudes.
static Value buildMagnitudeBits(OpBuilder &b, Location loc, Value value) {
  auto constant = [&](int32_t bits) { return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(bits)); };
  Value bits = arith::BitcastOp::create(b, loc, b.getI32Type(), value);
  Value magnitude = arith::AndIOp::create(b, loc, bits, constant(0x7FFFFFFF));
  Value isNaN = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ugt, magnitude, constant(0x7F800000));
  return arith::SelectOp::create(b, loc, isNaN, constant(0), magnitude);
}

static LogicalResult refuseBlocks(Operation *op, std::optional<ArrayRef<int64_t>> block) {
  if (!block)
    return success();
  return op->emitOpError(
      "with scales per row or block has no lowering for the CPU yet; use --recipe=delayed or "
      "--recipe=current");
}

static LogicalResult refuseF64(Operation *op, Value value) {
  if (!getElementTypeOrSelf(value).isF64())
    return success();
  return op->emitOpError("of f64 has no lowering for the CPU yet");
}

LogicalResult fp8::lowerAmax(OpBuilder &builder, AmaxOp op) {
  if (failed(refuseBlocks(op, op.getBlock())) || failed(refuseF64(op, op.getInput())))
    return failure();
  ElementLoops(builder, op.getLoc(), op.getInput())
      .run(op.getOuts(), [&](OpBuilder &b, Location loc, ValueRange i) {
        Value value = memref::LoadOp::create(b, loc, op.getInput(), i);
        return buildMagnitudeBits(b, loc, buildWiden(b, loc, value));
      });
  return success();
}

/// The element to cast, before scaling: the input itself or what the producer computes.
static Value buildProducer(OpBuilder &b, Location loc, QuantizeOp op, ValueRange indices) {
  if (op.getProducer().empty())
    return memref::LoadOp::create(b, loc, op.getInputs().front(), indices);
  Block &body = op.getProducer().front();
  IRMapping mapping;
  for (auto [i, input] : llvm::enumerate(op.getInputs())) {
    AffineMap map = cast<AffineMapAttr>((*op.getIndexingMaps())[i]).getValue();
    SmallVector<Value> position;
    for (AffineExpr expr : map.getResults())
      position.push_back(affine::expandAffineExpr(b, loc, expr, indices, ValueRange()));
    mapping.map(body.getArgument(i), memref::LoadOp::create(b, loc, input, position).getResult());
  }
  for (Operation &inner : body.without_terminator())
    b.clone(inner, mapping);
  return mapping.lookupOrDefault(cast<YieldOp>(body.getTerminator()).getValue());
}

LogicalResult fp8::lowerQuantize(OpBuilder &builder, QuantizeOp op) {
  if (failed(refuseBlocks(op, op.getBlock())) ||
      llvm::any_of(op.getInputs(), [&](Value input) { return failed(refuseF64(op, input)); }))
    return failure();
  Location loc = op.getLoc();
  Value data = op.getOuts()[0];
  Value dataT = op.getTransposition() ? op.getOuts()[op.getDataTIndex()] : Value();
  Value amax = op.getRecordAmax() ? op.getOuts()[op.getAmaxIndex()] : Value();

  Value scale = memref::LoadOp::create(builder, loc, op.getScale());
  Value unit = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(1.0f));
  Value scaleInv = arith::DivFOp::create(builder, loc, unit, scale);
  memref::StoreOp::create(builder, loc, scaleInv, op.getOuts()[op.getScaleInvIndex()]);

  ElementLoops(builder, loc, data).run(amax, [&](OpBuilder &b, Location loc, ValueRange indices) {
    Value value = buildWiden(b, loc, buildProducer(b, loc, op, indices));
    Value encoded = buildEncodeFP8(b, loc, arith::MulFOp::create(b, loc, value, scale), op.getFormat());
    memref::StoreOp::create(b, loc, encoded, data, indices);
    if (dataT) {
      auto transposed =
          llvm::map_to_vector(*op.getTransposition(), [&](int64_t d) -> Value { return indices[d]; });
      memref::StoreOp::create(b, loc, encoded, dataT, transposed);
    }
    return amax ? buildMagnitudeBits(b, loc, value) : Value();
  });
  return success();
}

LogicalResult fp8::lowerDequantize(OpBuilder &builder, DequantizeOp op) {
  if (failed(refuseBlocks(op, op.getBlock())) || failed(refuseF64(op, op.getOuts())))
    return failure();
  int64_t rank = cast<MemRefType>(op.getOuts().getType()).getRank();
  AffineMap identity = builder.getMultiDimIdentityMap(rank);
  AffineMap scalar = AffineMap::get(rank, 0, builder.getContext());
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  linalg::GenericOp::create(builder, op.getLoc(), ValueRange{op.getData(), op.getScaleInv()},
                            ValueRange{op.getOuts()}, ArrayRef<AffineMap>{identity, scalar, identity},
                            iterators, [&](OpBuilder &b, Location loc, ValueRange args) {
                              Value value =
                                  arith::MulFOp::create(b, loc, buildDecodeFP8(b, loc, args[0]), args[1]);
                              linalg::YieldOp::create(b, loc, buildNarrow(b, loc, value, args[2].getType()));
                            });
  return success();
}
