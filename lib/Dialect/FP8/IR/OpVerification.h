// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks that the verifiers of several operations share, and one pattern. Private to the library.

#ifndef FP8_LIB_DIALECT_FP8_IR_OPVERIFICATION_H
#define FP8_LIB_DIALECT_FP8_IR_OPVERIFICATION_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/IR/PatternMatch.h"

namespace fp8::detail {

/// Tensors give one result per `outs` operand, memrefs none; a mix is refused.
mlir::LogicalResult verifyDestinationStyle(mlir::DestinationStyleOpInterface op);

/// Dynamic sizes agree with every size.
bool sizesMatch(int64_t a, int64_t b);
bool shapesMatch(mlir::ShapedType a, mlir::ShapedType b);

/// The shape of a scale: rank 0 without `block`, else one entry per block of `data`.
llvm::SmallVector<int64_t> getScaleShape(mlir::ShapedType data, std::optional<llvm::ArrayRef<int64_t>> block);

/// `scale`, called `name` in messages, has the shape that `data` and `block` ask for.
mlir::LogicalResult verifyScale(mlir::Operation *op, llvm::StringRef name, mlir::ShapedType scale,
                                mlir::ShapedType data, std::optional<llvm::ArrayRef<int64_t>> block);

/// The fp8.yield that ends `body`; null where something else or nothing does: an
/// operation is verified before its regions are.
YieldOp getYield(mlir::Block &body);

/// The region `name` (producer, epilogue) of `op`, where it has one, fits its inputs and
/// extra results. That there are as many `outs` as wanted has been checked.
mlir::LogicalResult verifyElementRegion(mlir::Operation *op, llvm::StringRef name);

/// What the region of `op` yields first is an element of `tensor`, or a row of it.
mlir::LogicalResult verifyYieldedPart(mlir::Operation *op, mlir::ShapedType tensor);

/// Canonicalization: extra results of a region that nothing reads are not computed.
mlir::LogicalResult dropUnusedExtras(mlir::Operation *op, mlir::PatternRewriter &rewriter);

template <typename Op>
struct DropUnusedExtras : mlir::OpRewritePattern<Op> {
  using mlir::OpRewritePattern<Op>::OpRewritePattern;
  mlir::LogicalResult matchAndRewrite(Op op, mlir::PatternRewriter &rewriter) const final {
    return dropUnusedExtras(op, rewriter);
  }
};

/// Reads of all inputs, writes of all inits, and reads of inits where `readsInit` says so.
void addEffects(
    mlir::DestinationStyleOpInterface op,
    llvm::SmallVectorImpl<mlir::SideEffects::EffectInstance<mlir::MemoryEffects::Effect>> &effects,
    llvm::function_ref<bool(mlir::OpOperand &)> readsInit);

/// Result shapes are those of the inits.
mlir::LogicalResult reifyShapesOfInits(mlir::DestinationStyleOpInterface op, mlir::OpBuilder &builder,
                                       mlir::ReifiedRankedShapedTypeDims &shapes);

} // namespace fp8::detail

#define FP8_DEFINE_DPS_METHODS(OP, READS_INIT)                                                               \
  void OP::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {        \
    fp8::detail::addEffects(*this, effects, [&](OpOperand &init) -> bool {                                   \
      (void)init;                                                                                            \
      return READS_INIT;                                                                                     \
    });                                                                                                      \
  }                                                                                                          \
  LogicalResult OP::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {             \
    return fp8::detail::reifyShapesOfInits(*this, builder, shapes);                                          \
  }

#endif // FP8_LIB_DIALECT_FP8_IR_OPVERIFICATION_H
