// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements of the operands of casts: their places in memory, and the types in which memory holds them.
// Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_ELEMENTACCESS_H
#define FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_ELEMENTACCESS_H

#include "KernelBuilder.h"
#include "TileOperands.h"

namespace fp8 {

/// An element of a tensor, by its place in the three groups of dimensions of a TileSpace.
struct Place {
  Expr batch, row, column;
};

/// Return the number of batches or of rows: a number, or the kernel's argument, an i32.
Expr getBatches(KernelBuilder &b, const TileSpace &space);
Expr getRows(KernelBuilder &b, const TileSpace &space);
/// Returns the stride in elements: a number, or the kernel's argument, an i64.
Expr getStride(KernelBuilder &b, const TileOperand &operand, const TileStride &stride);

/// Returns whether the dynamic strides of `operand` are multiples of 16; nullopt if there are none.
std::optional<Expr> areMultiplesOf16(KernelBuilder &b, const TileOperand &operand);

/// Returns the indices of an element in the dimensions of the tensor, of type index.
llvm::SmallVector<mlir::Value> getDims(KernelBuilder &b, const TileSpace &space, const Place &place);

/// Returns the address of an element; `pointer` is that of the operand's first one. Positions are i64: they
/// may be beyond 2^31.
mlir::Value getAddress(KernelBuilder &b, const TileSpace &space, const TileOperand &operand,
                       mlir::Value pointer, const Place &place);

/// Returns the type in which memory holds elements of `type`.
mlir::Type getStorageType(mlir::Type type);
mlir::Value fromStorage(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value, mlir::Type type);
mlir::Value toStorage(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value);

/// Loads `count` adjacent elements from `address`, which is a multiple of `alignment` bytes.
llvm::SmallVector<mlir::Value> loadAdjacent(KernelBuilder &b, mlir::Value address, mlir::Type elementType,
                                            int64_t count, int64_t alignment);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_ELEMENTACCESS_H
