// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements in registers and scales, of kernels with a scale per block or row.

#include "BlockCastKernel.h"
#include "../Kernel/ElementAccess.h"
#include "fp8/Conversion/FP8ToLinalg/FP8Casts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp8;

Type BlockKernel::getElementType() const {
  const ElementRegion &region = *work.region;
  return region.isEmpty() ? getElementTypeOrSelf(region.inputs[0]) : region.yield().getValue().getType();
}

SmallVector<Value> BlockKernel::hold(const Chunk &chunk) {
  if (countHeld() == kChunk)
    return SmallVector<Value>(widenChunk(chunk));
  Value vector = vector::FromElementsOp::create(b, VectorType::get(kChunk, getElementType()), chunk);
  Value pairs = vector::BitCastOp::create(b, VectorType::get(kChunk / 2, b.getI32Type()), vector);
  SmallVector<Value> words;
  for (int64_t i = 0; i < kChunk / 2; ++i)
    words.push_back(vector::ExtractOp::create(b, pairs, i));
  return words;
}

TileKernel::Chunk BlockKernel::widenHeld(ArrayRef<Value> held) {
  if (countHeld() == kChunk)
    return Chunk(held);
  Value pairs = vector::FromElementsOp::create(b, VectorType::get(kChunk / 2, b.getI32Type()), held);
  Value vector = vector::BitCastOp::create(b, VectorType::get(kChunk, getElementType()), pairs);
  Chunk chunk;
  for (int64_t i = 0; i < kChunk; ++i)
    chunk.push_back(vector::ExtractOp::create(b, vector, i));
  return widenChunk(chunk);
}

Value BlockKernel::zeroHeld() {
  return countHeld() == kChunk ? b.real(0.0f).getValue() : b.number(0).getValue();
}

Expr BlockKernel::larger(Expr a, Expr other) {
  return b.expr(arith::MaxNumFOp::create(b, a.getValue(), other.getValue()));
}

Expr BlockKernel::buildScale(Expr amax) {
  QuantizeBlocksOp op = work.blocks;
  ScaleInputs inputs{amax.getValue(), b.real(getFP8Max(op.getFormat())).getValue(), b.real(1.0f).getValue(),
                     cast<FloatType>(getElementType())};
  return b.expr(op.getRecipe().buildScale(b, b.getLoc(), op, inputs));
}

/// Returns 1 / `scale` as memory holds it in `type`: f32, or E8M0.
static Expr buildScaleInv(KernelBuilder &b, Expr scale, Type type) {
  if (type.isF32())
    return b.real(1.0f) / scale;
  Value inverse = buildInverseE8M0(b, b.getLoc(), scale.getValue());
  return b.expr(arith::BitcastOp::create(b, b.getI8Type(), inverse));
}

void BlockKernel::storeScaleInv(const TileScaling &scaling, Expr scale, Expr row, Expr column) {
  for (const TileOperand &operand : scaling.scaleInv) {
    const TileStrides &strides = *operand.strides;
    Expr position = widen(row) * getStride(b, operand, strides.row) +
                    widen(column) * getStride(b, operand, strides.column);
    if (strides.batch.known != 0)
      position = position + widen(batch) * getStride(b, operand, strides.batch);
    b.store(buildScaleInv(b, scale, operand.getElementType()),
            b.at(pointer(operand), position * operand.getElementBytes()));
  }
}
