// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of casts' parts, and casts of them.

#include "fp8/Dialect/FP8/IR/CastParts.h"

using namespace mlir;
using namespace fp8;

TypeRange CastParts::getResultTypes() const {
  bool areTensors = llvm::all_of(outs, [](Value out) { return isa<TensorType>(out.getType()); });
  return areTensors ? TypeRange(ValueRange(outs)) : TypeRange();
}

/// Copies the parts that both casts have.
template <typename Op>
static void copyParts(CastParts &parts, Op op) {
  parts.random = op.getRandom();
  parts.stream = op.getStreamAttr();
  parts.indexingMaps = op.getIndexingMapsAttr();
  parts.rows = op.getRowsAttr();
}

QuantizeParts::QuantizeParts(QuantizeOp op, ValueRange inputs, ValueRange outs)
    : CastParts(inputs, outs), scale(op.getScale()), recordAmax(op.getRecordAmax()),
      transposition(op.getTranspositionAttr()), column(op.getColumnAttr()) {
  copyParts(*this, op);
}

QuantizeBlocksParts::QuantizeBlocksParts(QuantizeBlocksOp op, ValueRange inputs, ValueRange outs)
    : CastParts(inputs, outs), recipe(op.getRecipe()), blocks(op.getBlocksAttr()),
      transpositions(op.getTranspositionsAttr()) {
  copyParts(*this, op);
}

QuantizeOp QuantizeParts::create(OpBuilder &builder, Location loc) const {
  return QuantizeOp::create(builder, loc, getResultTypes(), inputs, scale, random, outs, recordAmax,
                            transposition, column, stream, indexingMaps, rows);
}

QuantizeBlocksOp QuantizeBlocksParts::create(OpBuilder &builder, Location loc) const {
  return QuantizeBlocksOp::create(builder, loc, getResultTypes(), inputs, random, outs, recipe, blocks,
                                  transpositions, stream, indexingMaps, rows);
}
