// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declares the lowerings of matmuls, one function per family of kernels. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_MATMULLOWERING_H
#define FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_MATMULLOWERING_H

#include "../Kernel/LoweringContext.h"

namespace fp8 {

struct MatmulView;
struct MatmulConfig;

// MatmulLowering.cpp: fp8.matmul and fp8.scaled_matmul.
bool lowerMatmul(mlir::OpBuilder &builder, mlir::Operation *op, LoweringContext &context);

// GroupedMatmul.cpp: fp8.grouped_matmul and fp8.scaled_grouped_matmul, by the kernels of MmaMatmul.cpp and
// WideMatmul.cpp
bool lowerGroupedMatmul(mlir::Operation *op, LoweringContext &context);

// One function per family of kernels for matmuls; `config` names the family.
// MmaMatmul.cpp
bool lowerMmaMatmul(mlir::OpBuilder &builder, const MatmulView &matmul, const MatmulConfig &config,
                    LoweringContext &context);
// SimtMatmul.cpp
bool lowerSimtMatmul(mlir::OpBuilder &builder, const MatmulView &matmul, const MatmulConfig &config,
                     LoweringContext &context);
// WideMatmul.cpp: wgmma and tcgen05
bool lowerWideMatmul(mlir::OpBuilder &builder, const MatmulView &matmul, const MatmulConfig &config,
                     LoweringContext &context);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_MATMULLOWERING_H
