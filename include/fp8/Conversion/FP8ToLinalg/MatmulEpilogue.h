// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code of epilogues and producers, for lowerings of every target.

#ifndef FP8_CONVERSION_FP8TOLINALG_MATMULEPILOGUE_H
#define FP8_CONVERSION_FP8TOLINALG_MATMULEPILOGUE_H

#include "fp8/Dialect/FP8/IR/ElementRegion.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "mlir/IR/IRMapping.h"

namespace fp8 {

/// Copies the code of `region` to the insertion point of `b`. `mapping` holds the values of the region
/// arguments, `indexOf` returns the index of the element in a dimension.
void cloneElementCode(mlir::OpBuilder &b, const ElementRegion &region, mlir::IRMapping &mapping,
                      llvm::function_ref<mlir::Value(int64_t)> indexOf);

/// Builds the whole epilogue of `op`, an fp8.matmul or fp8.scaled_matmul on memrefs, as linalg or loops: adds
/// C, runs the region, and stores all results. `sums` is an f32 memref in the shape of the result: the sums
/// of matmuls, multiplied by the scales; unless `isScaled` the epilogue multiplies, by scales that are one
/// for all of K. Emits an error where the operation has an epilogue without meaning.
mlir::LogicalResult buildMatmulEpilogue(mlir::OpBuilder &builder, mlir::Operation *op, mlir::Value sums,
                                        bool isScaled = true);

/// Marks the linalg ops, copies and loops between `before`, which may be null, and `op`, unless they are
/// marked, with the word for what `op` computes (kComputesAttrName).
void markCode(mlir::Operation *before, mlir::Operation *op);

} // namespace fp8

#endif // FP8_CONVERSION_FP8TOLINALG_MATMULEPILOGUE_H
