// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chooses the kernel for a product.

#include "ProductConfig.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace fp8;

/// Returns whether tensor cores multiply the two types: FP8 of both formats, bf16 · bf16 and f16 · f16.
static bool haveTensorCores(Type lhs, Type rhs) {
  auto isFP8 = [](Type type) { return isa<Float8E4M3FNType, Float8E5M2Type>(type); };
  return (isFP8(lhs) && isFP8(rhs)) || (lhs == rhs && (lhs.isBF16() || lhs.isF16()));
}

/// Returns whether a dimension is known to have at most `limit` elements.
static bool isAtMost(int64_t size, int64_t limit) { return !ShapedType::isDynamic(size) && size <= limit; }

/// Two blocks of 256 threads share a multiprocessor: three stages of 16 KiB each. Half the tile where half
/// of it would be empty, or where two sums per element would take more than half of the registers.
static ProductConfig chooseMma(const ProductProblem &problem) {
  int64_t tileM = isAtMost(problem.m, 64) ? 64 : 128;
  int64_t tileN = isAtMost(problem.n, 64) || problem.split ? 64 : 128;
  return {ProductFamily::mma, tileM, tileN, /*tileKBytes=*/64, /*stages=*/3};
}

ProductConfig fp8::chooseProductConfig(const Chip &chip, const ProductProblem &problem) {
  if (!haveTensorCores(problem.lhs, problem.rhs))
    return {std::nullopt, /*tileM=*/64, /*tileN=*/64, /*tileKBytes=*/64, /*stages=*/1};
  // The instructions of the mma family run on every chip.
  return chooseMma(problem);
}
