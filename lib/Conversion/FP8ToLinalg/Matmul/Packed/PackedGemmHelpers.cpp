// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic on sizes, and the private functions that all packed matmuls of a module share.

#include "PackedGemmDetail.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace fp8;

OpFoldResult fp8::multiplySizes(OpBuilder &builder, Location loc, ArrayRef<OpFoldResult> sizes) {
  AffineExpr product = builder.getAffineConstantExpr(1);
  for (auto index : llvm::seq<unsigned>(sizes.size()))
    product = product * builder.getAffineSymbolExpr(index);
  return affine::makeComposedFoldedAffineApply(builder, loc, product, sizes);
}

OpFoldResult fp8::addSizes(OpBuilder &builder, Location loc, OpFoldResult a, OpFoldResult b) {
  AffineExpr sum = builder.getAffineSymbolExpr(0) + builder.getAffineSymbolExpr(1);
  return affine::makeComposedFoldedAffineApply(builder, loc, sum, {a, b});
}

OpFoldResult fp8::ceilDivSize(OpBuilder &builder, Location loc, OpFoldResult size, int64_t width) {
  AffineExpr quotient = builder.getAffineSymbolExpr(0).ceilDiv(width);
  return affine::makeComposedFoldedAffineApply(builder, loc, quotient, {size});
}

OpFoldResult fp8::remainingSize(OpBuilder &builder, Location loc, OpFoldResult size, OpFoldResult begin,
                                int64_t width) {
  if (std::optional<int64_t> known = getConstantIntValue(size); known && *known % width == 0)
    return builder.getIndexAttr(width);
  AffineExpr whole = builder.getAffineConstantExpr(width);
  AffineExpr left = builder.getAffineSymbolExpr(0) - builder.getAffineSymbolExpr(1);
  auto map = AffineMap::get(0, 2, {whole, left}, builder.getContext());
  return affine::makeComposedFoldedAffineMin(builder, loc, map, {size, begin});
}

MemRefType fp8::getStridedType(Type element, unsigned rank, int64_t last) {
  SmallVector<int64_t> shape(rank, ShapedType::kDynamic), strides(rank, ShapedType::kDynamic);
  shape.back() = last;
  strides.back() = 1;
  if (rank > 2) // a panel
    strides[rank - 2] = last;
  auto layout = StridedLayoutAttr::get(element.getContext(), ShapedType::kDynamic, strides);
  return MemRefType::get(shape, element, layout);
}

func::FuncOp fp8::getOrCreateFunction(OpBuilder &builder, StringRef name, ArrayRef<Type> inputs,
                                      function_ref<void(OpBuilder &, ValueRange)> build) {
  auto module = builder.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  if (auto existing = module.lookupSymbol<func::FuncOp>(name))
    return existing;
  OpBuilder top(module.getBodyRegion());
  Location loc = top.getUnknownLoc();
  auto function = func::FuncOp::create(top, loc, name, top.getFunctionType(inputs, {}));
  function.setPrivate();
  OpBuilder body = OpBuilder::atBlockEnd(function.addEntryBlock());
  build(body, function.getArguments());
  func::ReturnOp::create(body, loc);
  return function;
}

func::CallOp fp8::callFunction(OpBuilder &builder, Location loc, func::FuncOp function,
                               ValueRange arguments) {
  SmallVector<Value> operands;
  for (auto [argument, type] : llvm::zip_equal(arguments, function.getArgumentTypes()))
    operands.push_back(argument.getType() == type ? argument
                                                  : memref::CastOp::create(builder, loc, type, argument));
  return func::CallOp::create(builder, loc, function, operands);
}
