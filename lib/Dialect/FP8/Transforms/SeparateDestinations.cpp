// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One tensor.empty per use. Sharing them, as common subexpression elimination does, means
// nothing for the program, but bufferization then weighs every use against every other:
// its time grew with the square of the program's length.

#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace fp8 {
#define GEN_PASS_DEF_SEPARATEDESTINATIONS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;

namespace {
struct SeparateDestinationsPass : public fp8::impl::SeparateDestinationsBase<SeparateDestinationsPass> {
  void runOnOperation() override {
    SmallVector<tensor::EmptyOp> shared;
    getOperation().walk([&](tensor::EmptyOp op) {
      if (!op->hasOneUse())
        shared.push_back(op);
    });
    for (tensor::EmptyOp op : shared) {
      for (OpOperand &use : llvm::make_early_inc_range(op->getUses())) {
        OpBuilder builder(use.getOwner());
        use.set(builder.clone(*op)->getResult(0));
      }
      op.erase();
    }
  }
};
} // namespace
