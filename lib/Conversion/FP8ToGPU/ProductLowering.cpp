// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers matrix products: chooses a configuration, and lets the family's builder make the kernel.

#include "Epilogue.h"
#include "Lowering.h"
#include "ProductConfig.h"

using namespace mlir;
using namespace fp8;

/// Returns whether scales are per row or block, which convert-fp8-to-linalg refuses.
static bool hasBlocks(Operation *op) {
  auto scaled = dyn_cast<ScaledMatmulOp>(op);
  return scaled && (scaled.getLhsBlock() || scaled.getRhsBlock());
}

bool fp8::lowerProduct(OpBuilder &builder, Operation *op, LoweringContext &context) {
  if (hasBlocks(op) || !Epilogue::isValid(op))
    return false;
  Product product(op);
  if (getElementTypeOrSelf(product.out).isF64())
    return false; // sums in f64
  ProductProblem problem{getElementTypeOrSelf(product.lhs),
                         getElementTypeOrSelf(product.rhs),
                         product.split,
                         product.knownSize(product.dims.batch),
                         product.knownSize(product.dims.m),
                         product.knownSize(product.dims.n),
                         product.knownSize(product.dims.k)};
  // Nothing to sum: the epilogue on zeros, without a product.
  if (llvm::is_contained({problem.batch, problem.m, problem.n, problem.k}, 0))
    return false;
  ProductConfig config = chooseProductConfig(context.chip, problem);
  if (!config.family)
    return lowerSimtProduct(builder, product, context);
  switch (*config.family) {
  case ProductFamily::mma:
    return lowerMmaProduct(builder, product, config, context);
  case ProductFamily::wgmma:
  case ProductFamily::tcgen05:
    return false;
  }
  llvm_unreachable("all families are listed");
}
