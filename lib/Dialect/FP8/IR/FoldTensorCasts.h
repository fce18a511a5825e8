// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A canonicalization pattern that folds tensor.cast into operations. Private to the library.

#ifndef FP8_LIB_DIALECT_FP8_IR_FOLDTENSORCASTS_H
#define FP8_LIB_DIALECT_FP8_IR_FOLDTENSORCASTS_H

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

namespace fp8::detail {

/// Folds a tensor.cast of an operand that makes static sizes dynamic. Upstream has the same pattern
/// for every destination-style op, but it cannot clone ops with a region without blocks; this
/// pattern has a higher benefit, so that it is tried first.
template <typename Op>
struct FoldTensorCasts : mlir::OpRewritePattern<Op> {
  explicit FoldTensorCasts(mlir::MLIRContext *context) : mlir::OpRewritePattern<Op>(context, /*benefit=*/2) {}

  mlir::LogicalResult matchAndRewrite(Op op, mlir::PatternRewriter &rewriter) const final {
    if (!mlir::tensor::hasFoldableTensorCastOperand(op))
      return rewriter.notifyMatchFailure(op, "reads no tensor.cast that loses sizes");
    llvm::SmallVector<mlir::Type> types(op->getResultTypes());
    llvm::SmallVector<mlir::Value> operands = mlir::tensor::getUpdatedOperandsAfterCastOpFolding(op, types);
    mlir::Operation *copy = rewriter.clone(*op);
    rewriter.modifyOpInPlace(copy, [&] {
      copy->setOperands(operands);
      for (auto [result, type] : llvm::zip(copy->getResults(), types))
        result.setType(type);
    });
    llvm::SmallVector<mlir::Value> results;
    for (auto [old, result] : llvm::zip(op->getResults(), copy->getResults()))
      results.push_back(old.getType() == result.getType()
                            ? mlir::Value(result)
                            : mlir::tensor::CastOp::create(rewriter, op.getLoc(), old.getType(), result));
    rewriter.replaceOp(op, results);
    return mlir::success();
  }
};

} // namespace fp8::detail

#endif // FP8_LIB_DIALECT_FP8_IR_FOLDTENSORCASTS_H
