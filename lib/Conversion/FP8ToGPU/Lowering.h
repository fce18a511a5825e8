// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The lowerings of single operations to launches of kernels, one function per family. Private to the library.
// Each emits its replacement at the builder's insertion point, before the operation, which the caller erases;
// or returns false and creates nothing: the operation is left for convert-fp8-to-linalg.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_LOWERING_H
#define FP8_LIB_CONVERSION_FP8TOGPU_LOWERING_H

#include "AmaxBuffers.h"
#include "KernelBuilder.h"
#include "fp8/Dialect/FP8/IR/Chips.h"

namespace fp8 {

struct Product;
struct ProductConfig;

/// The chip and the kernels of the module, which every lowering uses.
struct LoweringContext {
  const Chip &chip;
  KernelTable &kernels;
  AmaxBuffers &amaxes;
  bool hasErrors = false; ///< whether an error has been reported
};

// ProductLowering.cpp: fp8.matmul and fp8.scaled_matmul.
bool lowerProduct(mlir::OpBuilder &builder, mlir::Operation *op, LoweringContext &context);

// GroupedProduct.cpp: fp8.grouped_matmul and fp8.scaled_grouped_matmul, by the kernels of MmaProduct.cpp and
// WideProduct.cpp
bool lowerGroupedProduct(mlir::Operation *op, LoweringContext &context);

// One function per family of kernels for products; `config` names the family.
// MmaProduct.cpp
bool lowerMmaProduct(mlir::OpBuilder &builder, const Product &product, const ProductConfig &config,
                     LoweringContext &context);
// SimtProduct.cpp
bool lowerSimtProduct(mlir::OpBuilder &builder, const Product &product, LoweringContext &context);
// QuantizeKernel.cpp
bool lowerQuantize(mlir::OpBuilder &builder, QuantizeOp op, LoweringContext &context);
bool lowerAmax(mlir::OpBuilder &builder, AmaxOp op, LoweringContext &context);
// QuantizeBlocksKernel.cpp
bool lowerQuantizeBlocks(mlir::OpBuilder &builder, QuantizeBlocksOp op, LoweringContext &context);
// ScaleKernel.cpp
bool lowerComputeScale(mlir::OpBuilder &builder, ComputeScaleOp op, LoweringContext &context);
// HistoryKernel.cpp
bool lowerUpdateAmaxHistory(mlir::OpBuilder &builder, UpdateAmaxHistoryOp op, LoweringContext &context);
// WideProduct.cpp: wgmma and tcgen05
bool lowerWideProduct(mlir::OpBuilder &builder, const Product &product, const ProductConfig &config,
                      LoweringContext &context);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_LOWERING_H
