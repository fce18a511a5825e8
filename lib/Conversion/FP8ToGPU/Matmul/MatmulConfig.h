// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The choice of a kernel for a product: a pure function of the chip, the types and the sizes. Private to the
// library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_MATMULCONFIG_H
#define FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_MATMULCONFIG_H

#include "MatmulView.h"
#include "fp8/Dialect/FP8/IR/Chips.h"

namespace fp8 {

/// What decides on the kernel of a product; ShapedType::kDynamic stands for sizes that are not known.
struct ProductProblem {
  mlir::Type lhs, rhs; ///< element types
  bool split;          ///< sums of 128 along K are added in order
  bool strict;         ///< so also where tensor cores are as exact without
  ScalesAlongK scales; ///< of both operands
  int64_t batch, m, n, k;
  bool isTF32 = false;    ///< whether f32 operands have the precision of TF32
  bool hasGroups = false; ///< whether the rows of M or K are divided among groups
  int64_t part = kPart;   ///< see Product::getPart()
  bool hasSums = false;   ///< whether the epilogue adds up rows
};

/// Describes `product` as far as its sizes are known.
ProductProblem describeProblem(const Product &product);

/// Returns whether kernels have the scales of `product`: f32, one for all of K or for each part of it that
/// instructions end with, or packed ones.
bool canScale(const Chip &chip, const Product &product);

/// How a kernel computes products.
struct ProductConfig {
  /// Null: fused multiply-adds, for types without tensor cores.
  std::optional<ProductFamily> family;
  int64_t tileM, tileN; ///< the part of the result that a block computes at a time
  int64_t tileKBytes;   ///< the bytes along K that one stage holds
  int64_t stages;       ///< buffers that loads fill ahead of products
  /// Whether the kernel computes the transposed product: its M is the N of the product.
  bool isSwapped = false;

  /// Bytes of shared memory that the stages take.
  int64_t stageBytes() const { return (tileM + tileN) * tileKBytes; }
};

/// Chooses the kernel for `problem`.
ProductConfig chooseProductConfig(const Chip &chip, const ProductProblem &problem);

/// Returns the kernel for `product`: as its attribute kConfigAttrName says, and chosen where that says
/// nothing. Emits an error if there is no such kernel.
mlir::FailureOr<ProductConfig> findProductConfig(const Chip &chip, const Product &product);

/// Returns it for an operation: fp8.matmul or fp8.scaled_matmul (ProductLowering.cpp), fp8.grouped_matmul or
/// fp8.scaled_grouped_matmul (GroupedProduct.cpp). Returns nullopt if generic code computes it.
std::optional<mlir::FailureOr<ProductConfig>> findPlainConfig(const Chip &chip, mlir::Operation *op);
std::optional<mlir::FailureOr<ProductConfig>> findGroupedConfig(const Chip &chip, mlir::Operation *op);

/// Returns the attribute that says all of `config`.
ProductConfigAttr toAttribute(mlir::MLIRContext *context, const ProductConfig &config);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_MATMULCONFIG_H
