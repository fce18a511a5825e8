// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The lowerings of matmuls, one function per operation. Private to the library. Each emits its
// replacement before `op`, which the caller erases, or reports an error at the operation's location.

#ifndef FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_MATMULLOWERING_H
#define FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_MATMULLOWERING_H

#include "fp8/Conversion/FP8ToLinalg/PackedGemm.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/IR/Builders.h"

namespace fp8 {

// MatmulLowering.cpp: packed matmuls for `registers`, loops if that is null
mlir::LogicalResult lowerMatmul(mlir::OpBuilder &builder, MatmulOp op, const VectorRegisters *registers);
mlir::LogicalResult lowerScaledMatmul(mlir::OpBuilder &builder, ScaledMatmulOp op,
                                      const VectorRegisters *registers);

// GroupedLowering.cpp, in the same way
mlir::LogicalResult lowerGroupedMatmul(mlir::OpBuilder &builder, GroupedMatmulOp op,
                                       const VectorRegisters *registers);
mlir::LogicalResult lowerScaledGroupedMatmul(mlir::OpBuilder &builder, ScaledGroupedMatmulOp op,
                                             const VectorRegisters *registers);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_MATMULLOWERING_H
