// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix products: a packed f32 product, then an epilogue per element.

#include "FP8Casts.h"
#include "Lowering.h"
#include "fp8/Conversion/FP8ToLinalg/PackedGemm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace fp8;

using BodyBuilder = function_ref<void(OpBuilder &, Location, ValueRange)>;

/// A generic over the elements of `output`, which reads `inputs` at `maps`.
static void buildElementwise(OpBuilder &builder, Location loc, ValueRange inputs, ArrayRef<AffineMap> maps,
                             Value output, BodyBuilder body) {
  int64_t rank = cast<MemRefType>(output.getType()).getRank();
  SmallVector<AffineMap> allMaps(maps);
  allMaps.push_back(builder.getMultiDimIdentityMap(rank));
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  linalg::GenericOp::create(builder, loc, inputs, ValueRange{output}, allMaps, iterators, body);
}

/// A product with f64 in it sums in f64, element by element: it is rare and never packed. As
/// without f64, operands of less are multiplied in f32: what the program rounds stays rounded.
static LogicalResult lowerF64Matmul(OpBuilder &builder, MatmulOp op) {
  Location loc = op.getLoc();
  Value sums = op.getOuts();
  auto type = cast<MemRefType>(sums.getType());
  bool isNarrow = !type.getElementType().isF64();
  if (isNarrow) {
    SmallVector<Value> sizes;
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (type.isDynamicDim(d))
        sizes.push_back(memref::DimOp::create(builder, loc, op.getOuts(), d));
    sums =
        memref::AllocOp::create(builder, loc, MemRefType::get(type.getShape(), builder.getF64Type()), sizes);
  }
  if (isNarrow || !op.getAccumulate()) {
    Value zero = arith::ConstantOp::create(builder, loc, builder.getF64FloatAttr(0.0));
    linalg::FillOp::create(builder, loc, zero, sums);
  }
  ContractionDims dims = op.getContractionDims();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<utils::IteratorType> iterators(maps[0].getNumDims(), utils::IteratorType::parallel);
  for (unsigned k : dims.k)
    iterators[k] = utils::IteratorType::reduction;
  auto widen = [](OpBuilder &b, Location loc, Value value, Type type) -> Value {
    return value.getType() == type ? value : arith::ExtFOp::create(b, loc, type, value).getResult();
  };
  bool wideProduct = llvm::any_of(ValueRange{op.getLhs(), op.getRhs()},
                                  [](Value value) { return getElementTypeOrSelf(value).isF64(); });
  Type productType = wideProduct ? builder.getF64Type() : builder.getF32Type();
  linalg::GenericOp::create(
      builder, loc, ValueRange{op.getLhs(), op.getRhs()}, ValueRange{sums}, maps, iterators,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value product = arith::MulFOp::create(b, loc, widen(b, loc, args[0], productType),
                                              widen(b, loc, args[1], productType));
        Value sum = arith::AddFOp::create(b, loc, args[2], widen(b, loc, product, b.getF64Type()));
        linalg::YieldOp::create(b, loc, sum);
      });
  if (!isNarrow)
    return success();
  buildElementwise(builder, loc, sums, builder.getMultiDimIdentityMap(type.getRank()), op.getOuts(),
                   [&](OpBuilder &b, Location loc, ValueRange args) {
                     Value value = args[0];
                     if (op.getAccumulate())
                       value = arith::AddFOp::create(b, loc, value, widen(b, loc, args[1], b.getF64Type()));
                     linalg::YieldOp::create(
                         b, loc, arith::TruncFOp::create(b, loc, args[1].getType(), value).getResult());
                   });
  return success();
}

LogicalResult fp8::lowerMatmul(OpBuilder &builder, MatmulOp op) {
  if (llvm::any_of(op->getOperands(), [](Value value) { return getElementTypeOrSelf(value).isF64(); }))
    return lowerF64Matmul(builder, op);
  FailureOr<Value> sums = buildPackedContraction(builder, op.getLoc(), op.getLhs(), op.getRhs(),
                                                 op.getIndexingMapsArray(), /*split=*/false);
  if (failed(sums))
    return failure();
  int64_t rank = cast<MemRefType>(op.getOuts().getType()).getRank();
  buildElementwise(builder, op.getLoc(), *sums, builder.getMultiDimIdentityMap(rank), op.getOuts(),
                   [&](OpBuilder &b, Location loc, ValueRange args) {
                     Value value = args[0];
                     if (op.getAccumulate())
                       value = arith::AddFOp::create(b, loc, value, buildWiden(b, loc, args[1]));
                     linalg::YieldOp::create(b, loc, buildNarrow(b, loc, value, args[1].getType()));
                   });
  return success();
}

/// The epilogue region on one element: its arguments are the sum and the inputs.
static Value inlineEpilogue(OpBuilder &builder, ScaledMatmulOp op, Value sum, ValueRange inputs) {
  if (op.getEpilogue().empty())
    return sum;
  Block &body = op.getEpilogue().front();
  IRMapping mapping;
  mapping.map(body.getArgument(0), sum);
  mapping.map(body.getArguments().drop_front(), inputs);
  for (Operation &inner : body.without_terminator())
    builder.clone(inner, mapping);
  return mapping.lookupOrDefault(cast<YieldOp>(body.getTerminator()).getValue());
}

/// Elements of `output`: (lhs_scale_inv · rhs_scale_inv) · sum [+ C], then the epilogue.
static void buildScaledEpilogue(OpBuilder &builder, ScaledMatmulOp op, Value sums, Value output) {
  int64_t rank = cast<MemRefType>(output.getType()).getRank();
  AffineMap identity = builder.getMultiDimIdentityMap(rank);
  AffineMap scalar = AffineMap::get(rank, 0, builder.getContext());
  SmallVector<Value> inputs{sums, op.getLhsScaleInv(), op.getRhsScaleInv()};
  SmallVector<AffineMap> maps{identity, scalar, scalar};
  if (op.getAccumulate()) {
    inputs.push_back(op.getOuts().front());
    maps.push_back(identity);
  }
  llvm::append_range(inputs, op.getEpilogueInputs());
  if (op.getEpilogueMaps())
    llvm::append_range(maps, op.getEpilogueMaps()->getAsValueRange<AffineMapAttr>());

  buildElementwise(builder, op.getLoc(), inputs, maps, output,
                   [&](OpBuilder &b, Location loc, ValueRange args) {
                     Value scale = arith::MulFOp::create(b, loc, args[1], args[2]);
                     Value value = arith::MulFOp::create(b, loc, scale, args[0]);
                     size_t next = 3;
                     if (op.getAccumulate())
                       value = arith::AddFOp::create(b, loc, value, buildWiden(b, loc, args[next++]));
                     value = inlineEpilogue(b, op, value, args.slice(next, op.getEpilogueInputs().size()));
                     Type element = args.back().getType();
                     if (value.getType() != element)
                       value = buildNarrow(b, loc, buildWiden(b, loc, value), element);
                     linalg::YieldOp::create(b, loc, value);
                   });
}

LogicalResult fp8::lowerScaledMatmul(OpBuilder &builder, ScaledMatmulOp op) {
  if (op.getLhsBlock() || op.getRhsBlock())
    return op.emitOpError(
        "with scales per row or block has no lowering for the CPU yet; use --recipe=delayed or "
        "--recipe=current");
  FailureOr<Value> sums =
      buildPackedContraction(builder, op.getLoc(), op.getLhs(), op.getRhs(), op.getIndexingMapsArray(),
                             op.getAccumulation() == Accumulation::split);
  if (failed(sums))
    return failure();
  if (!op.getOutScale()) {
    buildScaledEpilogue(builder, op, *sums, op.getOuts().front());
    return success();
  }

  // An FP8 result is the cast of an f32 one: the same quantize as everywhere else.
  if (op.getAccumulate())
    return op.emitOpError("cannot add to an FP8 result");
  Location loc = op.getLoc();
  auto type = cast<MemRefType>(op.getOuts().front().getType());
  if (!type.hasStaticShape())
    return op.emitOpError("with an FP8 result of dynamic shape has no lowering for the CPU yet");
  Value wide = memref::AllocOp::create(builder, loc, MemRefType::get(type.getShape(), builder.getF32Type()));
  buildScaledEpilogue(builder, op, *sums, wide);
  auto quantize = QuantizeOp::create(builder, loc, TypeRange(), wide, op.getOutScale(), op.getOuts(),
                                     /*record_amax=*/true, DenseI64ArrayAttr(), DenseI64ArrayAttr(),
                                     IntegerAttr(), ArrayAttr());
  LogicalResult result = lowerQuantize(builder, quantize);
  quantize.erase();
  return result;
}
