// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The checks and interface methods that several operations share, and one canonicalization pattern.
// Private to the library.

#ifndef FP8_LIB_DIALECT_FP8_IR_OPVERIFICATION_H
#define FP8_LIB_DIALECT_FP8_IR_OPVERIFICATION_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/IR/PatternMatch.h"

namespace fp8::detail {

/// Checks that an operation on tensors has one result per `outs` operand, that one on memrefs has
/// none, and that it does not mix both.
mlir::LogicalResult verifyDestinationStyle(mlir::DestinationStyleOpInterface op);

/// Return whether sizes or shapes can be equal at run time: a dynamic size matches every size.
bool sizesMatch(int64_t a, int64_t b);
bool shapesMatch(mlir::ShapedType a, mlir::ShapedType b);

/// Returns the shape of a scale: rank 0 without `block`, else one entry per block of `data`.
llvm::SmallVector<int64_t> getScaleShape(mlir::ShapedType data, std::optional<llvm::ArrayRef<int64_t>> block);

/// Checks that `scale`, called `name` in messages, has the shape of getScaleShape.
mlir::LogicalResult verifyScale(mlir::Operation *op, llvm::StringRef name, mlir::ShapedType scale,
                                mlir::ShapedType data, std::optional<llvm::ArrayRef<int64_t>> block);

/// Checks the scale_inv of the first (`isLhs`) or second operand of a matmul with these dimensions, whose
/// batches may be groups: E8M0 scales may be packed, as fp8.pack_scales does for each batch.
mlir::LogicalResult verifyMatmulScale(mlir::Operation *op, bool isLhs, mlir::Type scaleType,
                                      mlir::Type dataType, std::optional<llvm::ArrayRef<int64_t>> block,
                                      mlir::AffineMap map, const ContractionDims &dims);

/// Checks an operation without a producer region: one input of floats, no maps, no rows.
mlir::LogicalResult verifyPlainInput(mlir::Operation *op, mlir::ValueRange inputs,
                                     std::optional<mlir::ArrayAttr> maps);
/// Checks that elements of `type` can be cast to FP8 and measured; `what` begins the error.
mlir::LogicalResult verifyCastType(mlir::Operation *op, llvm::StringRef what, mlir::Type type);

/// Checks that `random` of a cast has seed and step, and maybe the number of the first element, and that it
/// comes with a stream.
mlir::LogicalResult verifyRandom(mlir::Operation *op, mlir::Value random, std::optional<int64_t> stream);

/// Returns the fp8.yield that terminates `body`; null if there is none, because verifiers of
/// operations run before those of their regions.
YieldOp getYield(mlir::Block &body);

/// Checks that the region `name` (producer, epilogue) of `op`, if there is one, fits the inputs and
/// extra results. The number of `outs` must have been checked before.
mlir::LogicalResult verifyElementRegion(mlir::Operation *op, llvm::StringRef name);

/// Checks that the first value that the region of `op` yields is an element of `tensor`, or a row.
mlir::LogicalResult verifyYieldedPart(mlir::Operation *op, mlir::ShapedType tensor);

/// Canonicalization: removes unused extra results of a region.
mlir::LogicalResult dropUnusedExtras(mlir::Operation *op, mlir::PatternRewriter &rewriter);

template <typename Op>
struct DropUnusedExtras : mlir::OpRewritePattern<Op> {
  using mlir::OpRewritePattern<Op>::OpRewritePattern;
  mlir::LogicalResult matchAndRewrite(Op op, mlir::PatternRewriter &rewriter) const final {
    return dropUnusedExtras(op, rewriter);
  }
};

/// Adds memory effects: reads of all inputs, writes of all inits, and reads of those inits for which
/// `readsInit` returns true.
void addEffects(
    mlir::DestinationStyleOpInterface op,
    llvm::SmallVectorImpl<mlir::SideEffects::EffectInstance<mlir::MemoryEffects::Effect>> &effects,
    llvm::function_ref<bool(mlir::OpOperand &)> readsInit);

/// Reifies the shapes of the results, which are those of the inits.
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
