// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Casts built from parts with names. The region is the caller's to fill.

#ifndef FP8_DIALECT_FP8_IR_CASTPARTS_H
#define FP8_DIALECT_FP8_IR_CASTPARTS_H

#include "fp8/Dialect/FP8/IR/FP8.h"

namespace fp8 {

/// The parts that both casts have. Results have the types of `outs`; on memrefs there are none.
struct CastParts {
  CastParts(mlir::ValueRange inputs, mlir::ValueRange outs) : inputs(inputs), outs(outs) {}
  mlir::TypeRange getResultTypes() const;

  llvm::SmallVector<mlir::Value> inputs, outs;
  mlir::Value random;       ///< of a cast that rounds stochastically, with `stream`
  mlir::IntegerAttr stream; ///< null for none, as all of the attributes below
  mlir::ArrayAttr indexingMaps;
  mlir::DenseI64ArrayAttr rows;
};

/// The parts of an fp8.quantize.
struct QuantizeParts : CastParts {
  QuantizeParts(mlir::ValueRange inputs, mlir::Value scale, mlir::ValueRange outs)
      : CastParts(inputs, outs), scale(scale) {}
  /// The parts of `op`, but for inputs and destinations.
  QuantizeParts(QuantizeOp op, mlir::ValueRange inputs, mlir::ValueRange outs);

  QuantizeOp create(mlir::OpBuilder &builder, mlir::Location loc) const;

  mlir::Value scale;
  bool recordAmax = false;
  mlir::DenseI64ArrayAttr transposition;
  mlir::IntegerAttr column;
};

/// The parts of an fp8.quantize_blocks.
struct QuantizeBlocksParts : CastParts {
  QuantizeBlocksParts(mlir::ValueRange inputs, RecipeAttrInterface recipe, mlir::ArrayAttr blocks,
                      mlir::ValueRange outs)
      : CastParts(inputs, outs), recipe(recipe), blocks(blocks) {}
  /// The parts of `op`, but for inputs and destinations.
  QuantizeBlocksParts(QuantizeBlocksOp op, mlir::ValueRange inputs, mlir::ValueRange outs);

  QuantizeBlocksOp create(mlir::OpBuilder &builder, mlir::Location loc) const;

  RecipeAttrInterface recipe;
  mlir::ArrayAttr blocks, transpositions;
};

} // namespace fp8

#endif // FP8_DIALECT_FP8_IR_CASTPARTS_H
