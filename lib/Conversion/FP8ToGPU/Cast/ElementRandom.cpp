// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stochastic rounding in kernels: the numbers of elements, which decide their random bits.

#include "../Kernel/ElementAccess.h"
#include "ScaledCastKernel.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace fp8;

static RandomSource loadSource(KernelBuilder &b, const TileWork &work, Value pointer) {
  auto element = [&](int64_t number) {
    return b.load(b.getI64Type(), b.at(pointer, b.number(8 * number))).getValue();
  };
  bool isPart = cast<MemRefType>(work.random.memref.getType()).getDimSize(0) == 3;
  return RandomSource::of(b, b.getLoc(), element(0), element(1), isPart ? element(2) : Value(), work.stream);
}

ElementRandom::ElementRandom(KernelBuilder &b, const TileWork &work, Value pointer)
    : b(b), space(work.space), source(loadSource(b, work, pointer)) {}

Expr ElementRandom::encode(Expr scaled, FloatType format, Expr batch, Expr row, Expr column) const {
  auto wide = [&](Expr index) {
    Expr typed = index.like(b.number(0));
    return canCountIn32Bits(space.sizes) ? typed : widen(typed);
  };
  Expr rows = getRows(b, space);
  Expr number =
      (wide(batch) * (rows.isNumber() ? rows : wide(rows)) + wide(row)) * space.columns + wide(column);
  Value word = buildRandomWord(b, b.getLoc(), source, number.getValue());
  return b.expr(buildStochasticFP8(b, b.getLoc(), scaled.getValue(), format, word));
}
