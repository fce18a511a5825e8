// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Places, addresses and types of elements in memory.

#include "ElementAccess.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp8;

/// Returns `known`, or argument number `argument`.
static Expr getCount(KernelBuilder &b, int64_t known, unsigned argument) {
  return ShapedType::isDynamic(known) ? b.argument(argument) : Expr(known);
}

Expr fp8::getBatches(KernelBuilder &b, const TileSpace &space) {
  return getCount(b, space.batches, space.batchesArgument);
}

Expr fp8::getRows(KernelBuilder &b, const TileSpace &space) {
  return getCount(b, space.rows, space.rowsArgument);
}

Expr fp8::getStride(KernelBuilder &b, const TileOperand &operand, const TileStride &stride) {
  return stride.isDynamic() ? b.argument(operand.strideArguments[stride.number]) : Expr(stride.known);
}

std::optional<Expr> fp8::areMultiplesOf16(KernelBuilder &b, const TileOperand &operand) {
  std::optional<Expr> all;
  for (auto [number, argument] : llvm::enumerate(operand.strideArguments)) {
    if (!operand.needsStride(number))
      continue;
    Expr isMultiple = lowHalf(b.argument(argument)) % 16 == 0;
    all = all ? *all & isMultiple : isMultiple;
  }
  return all;
}

SmallVector<Value> fp8::getDims(KernelBuilder &b, const TileSpace &space, const Place &place) {
  SmallVector<Value> dims(space.sizes.size());
  auto toIndex = [&](Expr value) -> Value {
    return arith::IndexCastUIOp::create(b, b.getIndexType(), value.getValue());
  };
  auto split = [&](Expr index, unsigned first, unsigned last) {
    for (unsigned dim = last; dim-- > first;) {
      if (dim == first) {
        dims[dim] = toIndex(index);
        break;
      }
      Expr size = getCount(b, space.sizes[dim], space.sizeArguments[dim]);
      dims[dim] = toIndex(index % size);
      index = index / size;
    }
  };
  if (dims.empty())
    return dims;
  split(place.column.like(b.number(0)), dims.size() - space.columnDims, dims.size()); // it may be a number
  split(place.row, space.batchDims, dims.size() - space.columnDims);
  split(place.batch, 0, space.batchDims);
  return dims;
}

Value fp8::getAddress(KernelBuilder &b, const TileSpace &space, const TileOperand &operand, Value pointer,
                      const Place &place) {
  Expr position = 0;
  if (operand.strides) {
    const TileStrides &strides = *operand.strides;
    auto offset = [&](const Expr &index, const TileStride &stride) {
      return widen(index.like(b.number(0))) * getStride(b, operand, stride);
    };
    position = offset(place.row, strides.row) + offset(place.column, strides.column);
    if (strides.batch.known != 0)
      position = position + offset(place.batch, strides.batch);
  } else {
    SmallVector<Value> symbols;
    for (unsigned argument : operand.strideArguments)
      symbols.push_back(arith::IndexCastOp::create(b, b.getIndexType(), b.getKernel().getArgument(argument)));
    Value index =
        affine::expandAffineExpr(b, b.getLoc(), operand.position, getDims(b, space, place), symbols);
    position = b.expr(arith::IndexCastOp::create(b, b.getI64Type(), index));
  }
  return b.at(pointer, position * operand.getElementBytes());
}

Type fp8::getStorageType(Type type) {
  if (isa<Float8E4M3FNType, Float8E5M2Type>(type) || type.isInteger(1))
    return IntegerType::get(type.getContext(), 8);
  return type.isIndex() ? IntegerType::get(type.getContext(), 64) : type;
}

Value fp8::fromStorage(OpBuilder &b, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  if (type.isIndex())
    return arith::IndexCastOp::create(b, loc, type, value);
  if (type.isInteger(1))
    return arith::TruncIOp::create(b, loc, type, value);
  return arith::BitcastOp::create(b, loc, type, value);
}

Value fp8::toStorage(OpBuilder &b, Location loc, Value value) {
  Type type = value.getType(), storage = getStorageType(type);
  if (type == storage)
    return value;
  if (type.isIndex())
    return arith::IndexCastOp::create(b, loc, storage, value);
  if (type.isInteger(1))
    return arith::ExtUIOp::create(b, loc, storage, value);
  return arith::BitcastOp::create(b, loc, storage, value);
}

SmallVector<Value> fp8::loadAdjacent(KernelBuilder &b, Value address, Type elementType, int64_t count,
                                     int64_t alignment) {
  Type type = getStorageType(elementType);
  bool asWords = type.isInteger(8) && alignment % 4 == 0; // LLVM loads a vector of bytes one by one
  auto vectorType = VectorType::get(count, type);
  Type loadedType = asWords ? VectorType::get(count / 4, b.getI32Type()) : vectorType;
  Value vector = LLVM::LoadOp::create(b, loadedType, address, alignment);
  if (asWords)
    vector = vector::BitCastOp::create(b, vectorType, vector);
  SmallVector<Value> elements;
  for (int64_t j = 0; j < count; ++j)
    elements.push_back(fromStorage(b, b.getLoc(), vector::ExtractOp::create(b, vector, j), elementType));
  return elements;
}
