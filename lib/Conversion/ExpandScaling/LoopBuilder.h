// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shorthand for loops, loads and stores around the scalar code of recipes, and the declarations of
// this folder's lowerings. Private to the library.

#ifndef FP8_LIB_CONVERSION_EXPANDSCALING_LOOPBUILDER_H
#define FP8_LIB_CONVERSION_EXPANDSCALING_LOOPBUILDER_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/IR/ScalarBuilder.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace fp8 {

/// A ScalarBuilder that also builds loops, branches, loads and stores.
class LoopBuilder : public ScalarBuilder {
public:
  using ScalarBuilder::ScalarBuilder;

  mlir::Value load(mlir::Value memref, mlir::ValueRange indices) {
    return mlir::memref::LoadOp::create(b, loc, memref, indices);
  }
  void store(mlir::Value value, mlir::Value memref, mlir::ValueRange indices) {
    mlir::memref::StoreOp::create(b, loc, value, memref, indices);
  }
  void loop(mlir::Value from, mlir::Value to, llvm::function_ref<void(LoopBuilder &, mlir::Value)> body) {
    mlir::scf::ForOp::create(b, loc, from, to, index(1), mlir::ValueRange(),
                             [&](mlir::OpBuilder &inner, mlir::Location, mlir::Value i, mlir::ValueRange) {
                               LoopBuilder nested(inner, loc);
                               body(nested, i);
                               mlir::scf::YieldOp::create(inner, loc);
                             });
  }
  void ifThen(mlir::Value condition, llvm::function_ref<void(LoopBuilder &)> body) {
    mlir::scf::IfOp::create(b, loc, condition, [&](mlir::OpBuilder &inner, mlir::Location) {
      LoopBuilder nested(inner, loc);
      body(nested);
      mlir::scf::YieldOp::create(inner, loc);
    });
  }
};

/// Builds the loops of a history update before `op`, which the caller erases. Emits an error for a
/// history of dynamic shape.
mlir::LogicalResult expandUpdateAmaxHistory(mlir::OpBuilder &builder, UpdateAmaxHistoryOp op);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_EXPANDSCALING_LOOPBUILDER_H
