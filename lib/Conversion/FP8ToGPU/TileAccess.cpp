// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements of the operands of a kernel of tiles: 8 at a time, as a vector of 16 bytes or one by one.

#include "TileKernelBuilder.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp8;

/// Returns the type in which memory holds elements of `type`.
static Type getStorageType(Type type) {
  if (isa<Float8E4M3FNType, Float8E5M2Type>(type) || type.isInteger(1))
    return IntegerType::get(type.getContext(), 8);
  return type.isIndex() ? IntegerType::get(type.getContext(), 64) : type;
}

static Value fromStorage(OpBuilder &b, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  if (type.isIndex())
    return arith::IndexCastOp::create(b, loc, type, value);
  if (type.isInteger(1))
    return arith::TruncIOp::create(b, loc, type, value);
  return arith::BitcastOp::create(b, loc, type, value);
}

static Value toStorage(OpBuilder &b, Location loc, Value value) {
  Type type = value.getType(), storage = getStorageType(type);
  if (type == storage)
    return value;
  if (type.isIndex())
    return arith::IndexCastOp::create(b, loc, storage, value);
  if (type.isInteger(1))
    return arith::ExtUIOp::create(b, loc, storage, value);
  return arith::BitcastOp::create(b, loc, storage, value);
}

/// Returns the indices of an element in the dimensions of the tensor.
SmallVector<Value> TileKernel::getDims(Expr row, Expr column) {
  SmallVector<Value> dims(space.sizes.size());
  auto split = [&](Expr index, unsigned first, unsigned last) {
    for (unsigned dim = last; dim-- > first; index = index / space.sizes[dim])
      dims[dim] = toIndex(dim == first ? index : index % space.sizes[dim]);
  };
  if (dims.empty())
    return dims;
  split(column, dims.size() - space.columnDims, dims.size());
  split(row, space.batchDims, dims.size() - space.columnDims);
  split(batch, 0, space.batchDims);
  return dims;
}

/// Returns the address of the element. Positions are i64: they may be beyond 2^31.
Value TileKernel::getAddress(const TileOperand &operand, Expr row, Expr column) {
  Expr position = 0;
  if (operand.strides) {
    const TileStrides &strides = *operand.strides;
    position = widen(row) * strides.row + widen(column) * strides.column;
    if (strides.batch != 0)
      position = position + widen(batch) * strides.batch;
  } else {
    Value index = affine::expandAffineExpr(b, b.getLoc(), operand.position, getDims(row, column), {});
    position = b.expr(arith::IndexCastOp::create(b, b.getI64Type(), index));
  }
  return b.at(pointer(operand), position * operand.getElementBytes());
}

/// Loads the elements of the thread's columns. Rows and columns beyond the tensor read as the last ones.
TileKernel::Chunk TileKernel::loadChunk(const TileOperand &operand, Expr row) {
  if (space.rows % kGroup != 0)
    row = atMost(row, space.rows - 1);
  if (!operand.hasAdjacentColumns(space) || space.columns < kChunk)
    return loadScalars(operand, row);
  if (space.columns % kChunk == 0)
    return loadVector(operand, row);
  return Chunk(ifElse(
      firstColumn < space.columns - (kChunk - 1), [&] { return loadVector(operand, row); },
      [&] { return loadScalars(operand, row); }));
}

TileKernel::Chunk TileKernel::loadVector(const TileOperand &operand, Expr row) {
  Type type = getStorageType(operand.getElementType());
  int64_t alignment = std::gcd(operand.getRowAlignment(), kChunk * operand.getElementBytes());
  bool asWords = type.isInteger(8) && alignment % 4 == 0; // LLVM loads a vector of bytes one by one
  auto vectorType = VectorType::get(kChunk, type);
  Type loadedType = asWords ? VectorType::get(kChunk / 4, b.getI32Type()) : vectorType;
  Value vector = LLVM::LoadOp::create(b, loadedType, getAddress(operand, row, firstColumn), alignment);
  if (asWords)
    vector = vector::BitCastOp::create(b, vectorType, vector);
  Chunk chunk;
  for (int64_t j = 0; j < kChunk; ++j)
    chunk.push_back(
        fromStorage(b, b.getLoc(), vector::ExtractOp::create(b, vector, j), operand.getElementType()));
  return chunk;
}

TileKernel::Chunk TileKernel::loadScalars(const TileOperand &operand, Expr row) {
  bool same = operand.strides && operand.strides->column == 0;
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
  return Chunk(llvm::map_range(chunk, [&](Value value) { return ::toStorage(b, b.getLoc(), value); }));
}
