// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Used by the casts with a scale per block or row: elements that wait in registers for their scale, the
// recipe's formula, scale_inv. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_CAST_BLOCKCASTKERNEL_H
#define FP8_LIB_CONVERSION_FP8TOGPU_CAST_BLOCKCASTKERNEL_H

#include "ScaledCastKernelBuilder.h"

namespace fp8 {

class BlockKernel : protected TileKernel {
protected:
  using TileKernel::TileKernel;

  /// Returns the type of the elements that are cast.
  mlir::Type getElementType() const;
  /// Elements of a chunk that wait for their scale: 16-bit ones in pairs.
  unsigned countHeld() const { return getElementType().getIntOrFloatBitWidth() == 16 ? kChunk / 2 : kChunk; }
  llvm::SmallVector<mlir::Value> hold(const Chunk &chunk);
  Chunk widenHeld(llvm::ArrayRef<mlir::Value> held);
  mlir::Value zeroHeld();

  /// Returns the larger of two amaxes; NaN counts nothing.
  Expr larger(Expr a, Expr other);
  Expr buildScale(Expr amax);
  /// Stores the scale_inv of a block, whose row and column are among all blocks of the batch.
  void storeScaleInv(const TileScaling &scaling, Expr scale, Expr row, Expr column);
};

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_CAST_BLOCKCASTKERNEL_H
