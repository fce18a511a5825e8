// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declares the lowerings of convert-fp8-to-gpu, one function per operation. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_LOWERING_H
#define FP8_LIB_CONVERSION_FP8TOGPU_LOWERING_H

#include "Attention/AttentionLowering.h"
#include "Cast/CastLowering.h"
#include "Matmul/MatmulLowering.h"

namespace fp8 {

// ScaleKernel.cpp
bool lowerComputeScale(mlir::OpBuilder &builder, ComputeScaleOp op, LoweringContext &context);
// HistoryKernel.cpp
bool lowerUpdateAmaxHistory(mlir::OpBuilder &builder, UpdateAmaxHistoryOp op, LoweringContext &context);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_LOWERING_H
