// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adds results for each cast: how far the FP8 tensor is from the tensor, and which elements are lost.

#include "RecipeRewriter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fp8;

namespace {

/// Measurements of the cast of a tensor x to data · scale_inv.
struct Measures {
  Value error;     // sqrt(Σ (x - data · scale_inv)² / Σ x²), with sums in f32
  Value underflow; // the fraction of elements that become 0 and were not
  Value overflow;  // the fraction of elements too large to be rounded to the largest value
  Value amax;      // max |x| without NaN
};

/// Builds the sums of one cast and the measures, f32 of rank 0.
class CastMeasurement {
public:
  CastMeasurement(OpBuilder &builder, Value tensor, Value data, Value scaleInv, ArrayRef<int64_t> block)
      : builder(builder), loc(tensor.getLoc()), tensor(tensor), data(data), scaleInv(scaleInv), block(block) {
  }

  Measures build() { return divide(sum()); }

private:
  ValueRange sum();
  SmallVector<Value> addElement(OpBuilder &b, ValueRange args);
  Measures divide(ValueRange sums);
  Value dequantized();
  Value constant(OpBuilder &b, float value) {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  }
  Value zeroScalar(Type type);

  OpBuilder &builder;
  Location loc;
  Value tensor, data, scaleInv;
  ArrayRef<int64_t> block;
};

} // namespace

Value CastMeasurement::dequantized() {
  Value wide = tensor::EmptyOp::create(builder, loc, tensor::getMixedSizes(builder, loc, tensor),
                                       builder.getF32Type());
  return DequantizeOp::create(builder, loc, wide.getType(), data, scaleInv, wide,
                              block.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(block))
      .getResult(0);
}

Value CastMeasurement::zeroScalar(Type type) {
  Value scalar = tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>{}, type);
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  return linalg::FillOp::create(builder, loc, zero, scalar).getResult(0);
}

/// Adds an element (x, data · scale_inv, data) to the six sums.
SmallVector<Value> CastMeasurement::addElement(OpBuilder &b, ValueRange args) {
  Value x = args[0], cast = args[1];
  if (!x.getType().isF32())
    x = arith::ExtFOp::create(b, loc, b.getF32Type(), x);
  Value off = arith::SubFOp::create(b, loc, x, cast);
  Value error = arith::AddFOp::create(b, loc, args[3], arith::MulFOp::create(b, loc, off, off));
  Value square = arith::AddFOp::create(b, loc, args[4], arith::MulFOp::create(b, loc, x, x));

  auto addIf = [&](Value condition, Value to) -> Value {
    return arith::AddIOp::create(b, loc, to, arith::ExtUIOp::create(b, loc, to.getType(), condition));
  };
  auto compare = [&](arith::CmpFPredicate how, Value left, Value right) -> Value {
    return arith::CmpFOp::create(b, loc, how, left, right);
  };
  Value zero = constant(b, 0), size = math::AbsFOp::create(b, loc, x);
  Value isLost = arith::AndIOp::create(b, loc, compare(arith::CmpFPredicate::OGT, size, zero),
                                       compare(arith::CmpFPredicate::OEQ, cast, zero));
  // Up to the middle between the largest value and the next power of two's step, rounding is no loss.
  auto format = llvm::cast<FloatType>(getElementTypeOrSelf(data.getType()));
  float largest = getFP8Max(format);
  float half = isa<Float8E4M3FNType>(format) ? 16.0f / 448.0f : 4096.0f / 57344.0f;
  Value stored = math::AbsFOp::create(b, loc, arith::ExtFOp::create(b, loc, b.getF32Type(), args[2]));
  Value rounded = arith::MulFOp::create(b, loc, math::AbsFOp::create(b, loc, cast), constant(b, 1 + half));
  Value isCut =
      arith::AndIOp::create(b, loc, compare(arith::CmpFPredicate::OEQ, stored, constant(b, largest)),
                            compare(arith::CmpFPredicate::OGT, size, rounded));
  Value one = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(1));
  return {error,
          square,
          addIf(isLost, args[5]),
          addIf(isCut, args[6]),
          arith::AddIOp::create(b, loc, args[7], one),
          arith::MaxNumFOp::create(b, loc, args[8], size)};
}

/// Sums over all elements: of squared errors, of squares, of what is lost, cut off and there, and the amax.
ValueRange CastMeasurement::sum() {
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  Value real = zeroScalar(builder.getF32Type()), count = zeroScalar(builder.getI32Type());
  SmallVector<Value> inits{real, real, count, count, count, real};
  AffineMap identity = builder.getMultiDimIdentityMap(rank);
  AffineMap whole = AffineMap::get(rank, 0, builder.getContext());
  SmallVector<AffineMap> maps(3, identity);
  maps.append(inits.size(), whole);
  SmallVector<utils::IteratorType> reduction(rank, utils::IteratorType::reduction);
  return linalg::GenericOp::create(builder, loc, TypeRange(ValueRange(inits)),
                                   ValueRange{tensor, dequantized(), data}, inits, maps, reduction,
                                   [&](OpBuilder &b, Location, ValueRange args) {
                                     linalg::YieldOp::create(b, loc, addElement(b, args));
                                   })
      .getResults();
}

Measures CastMeasurement::divide(ValueRange sums) {
  Value scalar = tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>{}, builder.getF32Type());
  SmallVector<Value> outs(3, scalar);
  AffineMap none = AffineMap::get(0, 0, builder.getContext());
  SmallVector<AffineMap> maps(5 + outs.size(), none);
  auto results = linalg::GenericOp::create(
      builder, loc, TypeRange(ValueRange(outs)), sums.take_front(5), outs, maps,
      ArrayRef<utils::IteratorType>{}, [&](OpBuilder &b, Location, ValueRange args) {
        Value one = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(1));
        Value count = arith::SIToFPOp::create(b, loc, b.getF32Type(),
                                              arith::MaxSIOp::create(b, loc, args[4], one).getResult());
        auto fraction = [&](Value of) -> Value {
          return arith::DivFOp::create(b, loc, arith::SIToFPOp::create(b, loc, b.getF32Type(), of), count);
        };
        Value ratio = arith::DivFOp::create(b, loc, args[0], args[1]);
        linalg::YieldOp::create(b, loc,
                                ValueRange{math::SqrtOp::create(b, loc, ratio).getResult(), fraction(args[2]),
                                           fraction(args[3])});
      });
  return {results.getResult(0), results.getResult(1), results.getResult(2), sums[5]};
}

void FunctionRewriter::measureErrors() {
  auto terminator = cast<func::ReturnOp>(function.getBody().front().getTerminator());
  auto addResult = [&](const Twine &name, Value value, bool isForward) {
    DictionaryAttr attrs =
        builder.getDictionaryAttr({builder.getNamedAttr("jax.result_info", builder.getStringAttr(name))});
    if (pair)
      return isForward ? pair->addForwardResult(value, attrs) : pair->addBackwardResult(value, attrs);
    // This cannot fail, because the function's type matches its results.
    (void)function.insertResult(function.getNumResults(), value.getType(), attrs);
    terminator.getOperandsMutable().append(value);
  };
  for (MeasuredCast &one : measured) {
    if (one.cast.data.getParentBlock() != terminator->getBlock())
      continue; // inside a loop or branch there is no one error of the step
    bool isForward = pair && pair->isForward(one.cast.data);
    builder.setInsertionPoint(isForward ? pair->getEndForward().getOperation() : terminator);
    Measures measures =
        CastMeasurement(builder, one.tensor, one.cast.data, one.cast.scaleInv, one.block).build();
    addResult("error." + one.name, measures.error, isForward);
    addResult("underflow." + one.name, measures.underflow, isForward);
    addResult("overflow." + one.name, measures.overflow, isForward);
    addResult("amax." + one.name, measures.amax, isForward);
  }
}
