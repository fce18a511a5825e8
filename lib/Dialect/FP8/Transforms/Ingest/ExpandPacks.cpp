// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Undoes the data tiling of a host compiler: the packing of operands for linalg.mmt4d becomes
// pads, reshapes and transposes, which the later passes understand.

#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace fp8 {
#define GEN_PASS_DEF_EXPANDPACKS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;

namespace {

struct ExpandPacks : fp8::impl::ExpandPacksBase<ExpandPacks> {
  void runOnOperation() final {
    IRRewriter rewriter(&getContext());
    WalkResult walked = getOperation()->walk([&](Operation *op) {
      if (!isa<linalg::PackOp, linalg::UnPackOp>(op))
        return WalkResult::advance();
      rewriter.setInsertionPoint(op);
      auto pack = dyn_cast<linalg::PackOp>(op);
      // Without slices, which the later passes do not look through as easily as pads and reshapes.
      bool done = pack ? succeeded(linalg::lowerPack(rewriter, pack, /*lowerPadLikeWithInsertSlice=*/false))
                       : succeeded(linalg::lowerUnPack(rewriter, cast<linalg::UnPackOp>(op),
                                                       /*lowerUnpadLikeWithExtractSlice=*/false));
      if (done)
        return WalkResult::advance();
      op->emitError("cannot be expanded: its tile sizes are known only at run time; give it static ones");
      return WalkResult::interrupt();
    });
    if (walked.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
