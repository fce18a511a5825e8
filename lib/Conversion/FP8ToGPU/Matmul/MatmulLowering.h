// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declares the lowerings of products, one function per family of kernels. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_MATMULLOWERING_H
#define FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_MATMULLOWERING_H

#include "../Kernel/LoweringContext.h"

namespace fp8 {

struct Product;
struct ProductConfig;

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
// WideProduct.cpp: wgmma and tcgen05
bool lowerWideProduct(mlir::OpBuilder &builder, const Product &product, const ProductConfig &config,
                      LoweringContext &context);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_MATMULLOWERING_H
