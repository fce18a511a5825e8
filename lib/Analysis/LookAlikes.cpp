// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Explains why an op with the maps or the name of a matmul is not one.

#include "fp8/Analysis/LookAlikes.h"
#include "fp8/Analysis/FloatContraction.h"
#include "fp8/Analysis/SummedProduct.h"
#include "fp8/Dialect/FP8/IR/ContractionDims.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"

using namespace mlir;
using namespace fp8;

/// Returns whether `op` has the maps of a matmul with a K dimension and an M or N dimension. Without
/// an M or N dimension, all kinds of sums over two tensors have such maps.
static bool hasMatrixMaps(linalg::LinalgOp op) {
  if (!hasContractionMaps(op))
    return false;
  std::optional<ContractionDims> dims = inferContractionDims(op.getIndexingMapsArray());
  return dims && (!dims->m.empty() || !dims->n.empty());
}

/// Returns whether the body multiplies: sums over windows have the maps of a convolution, too.
static bool multiplies(linalg::LinalgOp op) {
  return llvm::any_of(*op.getBlock(), llvm::IsaPred<arith::MulFOp, arith::MulIOp, complex::MulOp>);
}

static std::string explainElements(linalg::LinalgOp op) {
  for (Value operand : op->getOperands()) {
    Type type = getElementTypeOrSelf(operand);
    if (isa<ComplexType>(type))
      return "multiplies complex numbers";
    if (type.isIntOrIndex())
      return "multiplies integers";
  }
  return "";
}

static std::string explainBody(linalg::LinalgOp op) {
  Block *body = op.getBlock();
  bool readsIndex = llvm::any_of(*body, llvm::IsaPred<linalg::IndexOp>);
  if (readsIndex)
    return "its body depends on the indices";
  Operation *last = body->getTerminator()->getOperand(0).getDefiningOp();
  if (last && !isa<arith::AddFOp, arith::SubFOp>(last))
    return "combines elements with " + last->getName().getStringRef().str() + ", which is no sum";
  return "its body is no sum of products of its operands";
}

/// Returns whether `op` sums matmuls of three or more tensors, two of which would be a matmul
/// by themselves: they share a summed dimension, and each has a dimension of its own.
static bool multipliesMany(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumDpsInputs() < 3 || op.getNumDpsInits() != 1 || !multiplies(op))
    return false;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap out = maps.pop_back_val();
  auto hasDim = [&](AffineMap in, AffineMap notIn, bool inResult) {
    return llvm::any_of(llvm::seq(out.getNumDims()), [&](unsigned d) {
      return in.isFunctionOfDim(d) && notIn.isFunctionOfDim(d) != inResult &&
             out.isFunctionOfDim(d) == inResult;
    });
  };
  return llvm::any_of(maps, [&](AffineMap a) {
    return llvm::any_of(maps, [&](AffineMap b) {
      return hasDim(a, b, /*inResult=*/false) && hasDim(a, b, true) && hasDim(b, a, true);
    });
  });
}

std::string fp8::explainLookAlike(linalg::LinalgOp op) {
  if (isa<linalg::ConvolutionOpInterface>(*op))
    return op->getName().getStringRef().contains("pooling") ? "pooling: nothing is multiplied"
                                                            : "convolution";
  if (linalg::isaConvolutionOpInterface(op) && multiplies(op))
    return "convolution";
  if (std::optional<SummedProduct> product = matchSummedProduct(op))
    return "its products are rounded to " + getFormatName(product->productType) + " before they are added";
  bool named =
      isa<linalg::ContractionOpInterface, linalg::QuantizedMatmulOp, linalg::QuantizedBatchMatmulOp>(*op);
  bool many = multipliesMany(op);
  if (!named && !many && !hasMatrixMaps(op))
    return "";
  if (std::string reason = explainElements(op); !reason.empty())
    return reason;
  if (many)
    return "multiplies more than two tensors";
  if (!op.hasPureTensorSemantics())
    return "works on buffers (memrefs), not on tensors";
  return explainBody(op);
}
