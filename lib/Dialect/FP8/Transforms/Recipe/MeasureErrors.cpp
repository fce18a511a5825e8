// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adds a result per cast: how far the FP8 tensor is from the tensor.

#include "RecipeRewriter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fp8;

/// Builds sqrt(Σ (x - data · scale_inv)² / Σ x²), an f32 of rank 0, with sums in f32.
static Value buildError(OpBuilder &builder, Location loc, Value tensor, Value data, Value scaleInv,
                        ArrayRef<int64_t> block) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, tensor);
  Value wide = tensor::EmptyOp::create(builder, loc, sizes, builder.getF32Type());
  Value cast = DequantizeOp::create(builder, loc, wide.getType(), data, scaleInv, wide,
                                    block.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(block))
                   .getResult(0);
  int64_t rank = sizes.size();
  Value scalar = tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>{}, builder.getF32Type());
  Value zero = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0.0f));
  Value init = linalg::FillOp::create(builder, loc, zero, scalar).getResult(0);
  AffineMap identity = builder.getMultiDimIdentityMap(rank),
            whole = AffineMap::get(rank, 0, builder.getContext());
  SmallVector<utils::IteratorType> reduction(rank, utils::IteratorType::reduction);
  auto sums = linalg::GenericOp::create(
      builder, loc, TypeRange{init.getType(), init.getType()}, ValueRange{tensor, cast},
      ValueRange{init, init}, ArrayRef<AffineMap>{identity, identity, whole, whole}, reduction,
      [](OpBuilder &b, Location loc, ValueRange args) {
        Value x = args[0];
        if (!x.getType().isF32())
          x = arith::ExtFOp::create(b, loc, b.getF32Type(), x);
        Value off = arith::SubFOp::create(b, loc, x, args[1]);
        Value error = arith::AddFOp::create(b, loc, args[2], arith::MulFOp::create(b, loc, off, off));
        Value square = arith::AddFOp::create(b, loc, args[3], arith::MulFOp::create(b, loc, x, x));
        linalg::YieldOp::create(b, loc, ValueRange{error, square});
      });
  AffineMap none = AffineMap::get(0, 0, builder.getContext());
  return linalg::GenericOp::create(builder, loc, scalar.getType(), sums.getResults(), scalar,
                                   ArrayRef<AffineMap>{none, none, none}, ArrayRef<utils::IteratorType>{},
                                   [](OpBuilder &b, Location loc, ValueRange args) {
                                     Value ratio = arith::DivFOp::create(b, loc, args[0], args[1]);
                                     linalg::YieldOp::create(b, loc,
                                                             math::SqrtOp::create(b, loc, ratio).getResult());
                                   })
      .getResult(0);
}

void FunctionRewriter::measureErrors() {
  auto terminator = cast<func::ReturnOp>(function.getBody().front().getTerminator());
  for (MeasuredCast &one : measured) {
    if (one.cast.data.getParentBlock() != terminator->getBlock())
      continue; // inside a loop or branch there is no one error of the step
    builder.setInsertionPoint(terminator);
    Value error =
        buildError(builder, one.tensor.getLoc(), one.tensor, one.cast.data, one.cast.scaleInv, one.block);
    DictionaryAttr attrs = builder.getDictionaryAttr(
        {builder.getNamedAttr("jax.result_info", builder.getStringAttr("error." + one.name))});
    // This cannot fail, because the function's type matches its results.
    (void)function.insertResult(function.getNumResults(), error.getType(), attrs);
    terminator.getOperandsMutable().append(error);
  }
}
