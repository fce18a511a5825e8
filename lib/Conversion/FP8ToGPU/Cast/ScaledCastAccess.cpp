// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements of the operands of a kernel of tiles: 8 at a time, as a vector of 16 bytes or one by one.

#include "../Kernel/ElementAccess.h"
#include "ScaledCastKernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp8;

SmallVector<Value> TileKernel::getDims(Expr row, Expr column) {
  return fp8::getDims(b, space, {batch, row, column});
}

Value TileKernel::getAddress(const TileOperand &operand, Expr row, Expr column) {
  return fp8::getAddress(b, space, operand, pointer(operand), {batch, row, column});
}

/// Loads the elements of the thread's columns. Rows and columns beyond the tensor read as the last ones.
TileKernel::Chunk TileKernel::loadChunk(const TileOperand &operand, Expr row) {
  if (!space.hasMultipleOfRows(kGroup))
    row = atMost(row, rowsLess(1));
  if (!operand.hasAdjacentColumns(space) || space.columns < kChunk)
    return loadScalars(operand, row);
  if (space.columns % kChunk == 0)
    return loadVector(operand, row);
  return Chunk(ifElse(
      firstColumn < space.columns - (kChunk - 1), [&] { return loadVector(operand, row); },
      [&] { return loadScalars(operand, row); }));
}

TileKernel::Chunk TileKernel::loadVector(const TileOperand &operand, Expr row) {
  int64_t alignment = std::gcd(operand.getRowAlignment(), kChunk * operand.getElementBytes());
  return Chunk(
      loadAdjacent(b, getAddress(operand, row, firstColumn), operand.getElementType(), kChunk, alignment));
}

TileKernel::Chunk TileKernel::loadScalars(const TileOperand &operand, Expr row) {
  bool same = operand.strides && operand.strides->column.known == 0;
  Chunk chunk;
  for (int64_t j = 0; j < (same ? 1 : kChunk); ++j) {
    Expr column = firstColumn + j;
    if (space.columns % kChunk != 0)
      column = atMost(column, space.columns - 1);
    Expr value = b.load(getStorageType(operand.getElementType()), getAddress(operand, row, column));
    chunk.push_back(fromStorage(b, b.getLoc(), value.getValue(), operand.getElementType()));
  }
  if (same)
    chunk.resize(kChunk, chunk[0]);
  return chunk;
}

/// Stores the elements of the thread's columns that are in the tensor: `vector` at once where all of them
/// are, else those of `stored`.
void TileKernel::storeChunk(const TileOperand &operand, Expr row, ArrayRef<Value> stored, Value vector) {
  auto storeScalars = [&]() -> SmallVector<Value> {
    for (auto [j, value] : llvm::enumerate(stored)) {
      Expr column = firstColumn + j;
      when(isColumn(column),
           [&, value = value] { b.store(b.expr(value), getAddress(operand, row, column)); });
    }
    return {};
  };
  auto storeVector = [&]() -> SmallVector<Value> {
    int64_t alignment = std::gcd(operand.getRowAlignment(), kChunk * operand.getElementBytes());
    LLVM::StoreOp::create(b, vector, getAddress(operand, row, firstColumn), alignment);
    return {};
  };
  when(isRow(row), [&] {
    if (!operand.hasAdjacentColumns(space) || space.columns < kChunk)
      storeScalars();
    else if (space.columns % kChunk == 0)
      storeVector();
    else
      ifElse(firstColumn < space.columns - (kChunk - 1), storeVector, storeScalars);
  });
}

TileKernel::Chunk TileKernel::toStorage(const Chunk &chunk) {
  return Chunk(llvm::map_range(chunk, [&](Value value) { return fp8::toStorage(b, b.getLoc(), value); }));
}
