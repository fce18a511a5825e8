// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Casts by a recipe's own code: elementwise code in place of fp8.quantize, and products of values that the
// recipe dequantizes in place of matmuls of FP8.

#include "RecipeRewriter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fp8;

/// Applies `build` to every element of `tensor` and the value of `scalar`, of rank 0.
static Value mapElements(OpBuilder &builder, Location loc, Value tensor, Value scalar, Type element,
                         function_ref<Value(OpBuilder &, Location, Value element, Value scalar)> build) {
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  AffineMap all = builder.getMultiDimIdentityMap(rank), none = AffineMap::get(rank, 0, builder.getContext());
  Value init = tensor::EmptyOp::create(builder, loc, tensor::getMixedSizes(builder, loc, tensor), element);
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  return linalg::GenericOp::create(builder, loc, init.getType(), ValueRange{tensor, scalar}, init,
                                   {all, none, all}, iterators,
                                   [&](OpBuilder &b, Location inner, ValueRange values) {
                                     Value result = build(b, inner, values[0], values[1]);
                                     linalg::YieldOp::create(b, inner, result);
                                   })
      .getResult(0);
}

static Value toF32(OpBuilder &b, Location loc, Value value) {
  Type f32 = b.getF32Type();
  if (value.getType() == f32)
    return value;
  if (value.getType().isF64())
    return arith::TruncFOp::create(b, loc, f32, value);
  return arith::ExtFOp::create(b, loc, f32, value);
}

FunctionRewriter::Cast FunctionRewriter::castByRecipe(const QuantizedOperand &operand, Value source,
                                                      Value scale, bool record) {
  Location loc = operand.matmul->getLoc();
  auto quantize = [&](OpBuilder &b, Location inner, Value element, Value own) -> Value {
    Value byte =
        operand.recipe.buildQuantize(b, inner, operand.matmul, operand.kind(), toF32(b, inner, element), own);
    return arith::BitcastOp::create(b, inner, operand.format(), byte);
  };
  Cast made;
  made.data = mapElements(builder, loc, source, scale, operand.format(), quantize);
  auto unit = DenseElementsAttr::get(cast<RankedTensorType>(scale.getType()), 1.0f);
  made.scaleInv = arith::DivFOp::create(builder, loc, arith::ConstantOp::create(builder, loc, unit), scale);
  if (record) {
    Value init = tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>{}, builder.getF32Type());
    made.amax = AmaxOp::create(builder, loc, init.getType(), source, init).getResult(0);
  }
  return made;
}

Value FunctionRewriter::dequantize(const QuantizedOperand &operand, Value data, Value scaleInv) {
  Location loc = operand.matmul->getLoc();
  if (operand.ownBytes() || !operand.recipe.hasOwnDequantize(operand.kind())) {
    Value init = emptyLike(loc, data, builder.getF32Type());
    return DequantizeOp::create(builder, loc, init.getType(), data, scaleInv, init, DenseI64ArrayAttr())
        .getResult(0);
  }
  return mapElements(builder, loc, data, scaleInv, builder.getF32Type(),
                     [&](OpBuilder &b, Location inner, Value element, Value own) {
                       Value byte = arith::BitcastOp::create(b, inner, b.getI8Type(), element);
                       return operand.recipe.buildDequantize(b, inner, operand.matmul, operand.kind(), byte,
                                                             own);
                     });
}

void FunctionRewriter::multiplyDequantized(const QuantizedOperand &lhs, const QuantizedOperand &rhs,
                                           Value lhsData, Value rhsData) {
  MatmulOp op = lhs.matmul;
  op.getLhsMutable().set(dequantize(lhs, lhsData, getOrCreateCast(lhs).scaleInv));
  op.getRhsMutable().set(dequantize(rhs, rhsData, getOrCreateCast(rhs).scaleInv));
  op.removeRecipeAttr();
  op.setKept("its operands are FP8, which the recipe's own function dequantizes");
}
