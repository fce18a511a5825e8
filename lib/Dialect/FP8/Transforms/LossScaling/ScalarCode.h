// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elementwise operations on a tensor and on tensors of rank 0. Private to the room.

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_LOSSSCALING_SCALARCODE_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_LOSSSCALING_SCALARCODE_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace fp8 {

/// Creates an elementwise op of the shape of the first of `inputs`; the others have that shape or rank 0.
/// `build` creates the value of an element, of type `element`, from those of the inputs.
inline mlir::Value
buildElementwise(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange inputs, mlir::Type element,
                 llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, mlir::ValueRange)> build) {
  int64_t rank = mlir::cast<mlir::RankedTensorType>(inputs[0].getType()).getRank();
  llvm::SmallVector<mlir::AffineMap> maps;
  for (mlir::Value input : inputs)
    maps.push_back(mlir::cast<mlir::RankedTensorType>(input.getType()).getRank() == 0
                       ? mlir::AffineMap::get(rank, 0, builder.getContext())
                       : builder.getMultiDimIdentityMap(rank));
  maps.push_back(builder.getMultiDimIdentityMap(rank));
  mlir::Value init = mlir::tensor::EmptyOp::create(
      builder, loc, mlir::tensor::getMixedSizes(builder, loc, inputs[0]), element);
  llvm::SmallVector<mlir::utils::IteratorType> iterators(rank, mlir::utils::IteratorType::parallel);
  return mlir::linalg::GenericOp::create(
             builder, loc, init.getType(), inputs, init, maps, iterators,
             [&](mlir::OpBuilder &b, mlir::Location bodyLoc, mlir::ValueRange arguments) {
               mlir::linalg::YieldOp::create(b, bodyLoc, build(b, bodyLoc, arguments.drop_back()));
             })
      .getResult(0);
}

/// Multiplies the first value by the second, an f32: in f32, rounded to the type of the first.
inline mlir::Value buildScaled(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange values) {
  mlir::Type type = values[0].getType(), f32 = builder.getF32Type();
  bool isNarrow = type.getIntOrFloatBitWidth() < 32;
  mlir::Value wide =
      isNarrow ? mlir::arith::ExtFOp::create(builder, loc, f32, values[0]).getResult() : values[0];
  mlir::Value scale = values[1];
  if (type.isF64())
    scale = mlir::arith::ExtFOp::create(builder, loc, type, scale);
  mlir::Value product = mlir::arith::MulFOp::create(builder, loc, wide, scale);
  return isNarrow ? mlir::arith::TruncFOp::create(builder, loc, type, product).getResult() : product;
}

} // namespace fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_LOSSSCALING_SCALARCODE_H
