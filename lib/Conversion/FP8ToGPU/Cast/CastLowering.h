// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declares the lowerings of casts and amaxes. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_CAST_CASTLOWERING_H
#define FP8_LIB_CONVERSION_FP8TOGPU_CAST_CASTLOWERING_H

#include "../Kernel/LoweringContext.h"
#include "fp8/Dialect/FP8/IR/FP8.h"

namespace fp8 {

// QuantizeKernel.cpp
bool lowerQuantize(mlir::OpBuilder &builder, QuantizeOp op, LoweringContext &context);
bool lowerAmax(mlir::OpBuilder &builder, AmaxOp op, LoweringContext &context);
// QuantizeBlocksKernel.cpp
bool lowerQuantizeBlocks(mlir::OpBuilder &builder, QuantizeBlocksOp op, LoweringContext &context);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_CAST_CASTLOWERING_H
