// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The lowerings of casts, one function per operation. Private to the library. Each emits its
// replacement before `op`, which the caller erases, or reports an error at the operation's location.

#ifndef FP8_LIB_CONVERSION_FP8TOLINALG_CAST_CASTLOWERING_H
#define FP8_LIB_CONVERSION_FP8TOLINALG_CAST_CASTLOWERING_H

#include "ElementLoops.h"

namespace fp8 {

// QuantizeLowering.cpp
mlir::LogicalResult lowerAmax(mlir::OpBuilder &builder, AmaxOp op);
mlir::LogicalResult lowerQuantize(mlir::OpBuilder &builder, QuantizeOp op);
mlir::LogicalResult lowerQuantizeBlocks(mlir::OpBuilder &builder, QuantizeBlocksOp op);
/// Lowers the epilogue of a matmul with an FP8 result, scale_inv and amax; `sum` builds the sum.
void lowerQuantizedEpilogue(mlir::OpBuilder &builder, mlir::Operation *op, mlir::Value outScale,
                            ElementLoops::FirstBuilder sum);
mlir::LogicalResult lowerDequantize(mlir::OpBuilder &builder, DequantizeOp op);

// PackScalesLowering.cpp
mlir::LogicalResult lowerPackScales(mlir::OpBuilder &builder, PackScalesOp op);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOLINALG_CAST_CASTLOWERING_H
