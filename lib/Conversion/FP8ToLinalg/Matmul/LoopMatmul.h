// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A matmul as plain loops. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_LOOPMATMUL_H
#define FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_LOOPMATMUL_H

#include "MatmulScales.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"

namespace fp8 {

/// Emits the sums of the matmul of `lhs` and `rhs`, whose `maps` are projected permutations of one iteration
/// space (lhs, rhs, output), into a new f32 buffer of the output's shape, and returns the buffer. The sums
/// are those of buildPackedMatmul, bit for bit, with the `scales` that enter before the result; they begin
/// with the elements of `start` unless that is null. The loop carries `marks` (MatmulMarks.h).
mlir::Value buildLoopMatmul(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value lhs, mlir::Value rhs,
                            mlir::ArrayRef<mlir::AffineMap> maps, const MatmulScales &scales, bool split,
                            mlir::ArrayAttr marks, mlir::Value start = {});

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_LOOPMATMUL_H
