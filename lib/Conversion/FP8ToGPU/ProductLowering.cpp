// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers matrix products: chooses a configuration, and lets the family's builder make the kernel.

#include "Epilogue.h"
#include "Lowering.h"
#include "ProductConfig.h"
#include "fp8/Conversion/Kernel.h"

using namespace mlir;
using namespace fp8;

/// Returns whether scales are per row or block, which convert-fp8-to-linalg refuses.
static bool hasBlocks(Operation *op) {
  auto scaled = dyn_cast<ScaledMatmulOp>(op);
  return scaled && (scaled.getLhsBlock() || scaled.getRhsBlock());
}

/// Changes `config` as the operation says (kConfigAttrName), if it does.
static LogicalResult applyGivenConfig(Operation *op, const Chip &chip, const ProductProblem &problem,
                                      ProductConfig &config) {
  Attribute attribute = op->getAttr(kConfigAttrName);
  if (!attribute)
    return success();
  auto given = dyn_cast<DictionaryAttr>(attribute);
  if (!given || config.family == ProductFamily::mma)
    return op->emitOpError() << "has the attribute " << kConfigAttrName
                             << ", which must be a dictionary, and is for kernels of wgmma and tcgen05";
  if (auto tile = given.getAs<IntegerAttr>("tile_n")) {
    int64_t widest = getWidestTile(chip, problem), columns = tile.getInt();
    if (columns < kNarrowestTile || columns > widest || !llvm::isPowerOf2_64(columns))
      return op->emitOpError() << "has tile_n = " << columns << ", which must be a power of two from "
                               << kNarrowestTile << " to " << widest;
    config.tileN = columns;
    config.stages = countWideStages(chip, config);
  }
  config.isSwapped = given.contains("swapped");
  return success();
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
                         hasModuleAttr(op, kStrictAccumulationAttrName),
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
  if (failed(applyGivenConfig(op, context.chip, problem, config))) {
    context.hasErrors = true;
    return false;
  }
  switch (*config.family) {
  case ProductFamily::mma:
    return lowerMmaProduct(builder, product, config, context);
  case ProductFamily::wgmma:
  case ProductFamily::tcgen05:
    return lowerWideProduct(builder, product, config, context);
  }
  llvm_unreachable("all families are listed");
}
