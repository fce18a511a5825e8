// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A common view of the code that is fused into fp8.amax, fp8.quantize and fp8.quantize_blocks
// (producers) and into fp8.matmul and fp8.scaled_matmul (epilogues): scalar code that runs once per element
// of the tensor, or code on small tensors that runs once per row.

#ifndef FP8_DIALECT_FP8_IR_ELEMENTREGION_H
#define FP8_DIALECT_FP8_IR_ELEMENTREGION_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/IR/PatternMatch.h"

namespace fp8 {

/// The producer or epilogue region of an operation, with its inputs and extra results.
struct ElementRegion {
  /// Returns the view of `op`, or nullopt if it is not one of these five operations.
  static std::optional<ElementRegion> of(mlir::Operation *op);

  mlir::Operation *op;
  mlir::Region *region;      ///< empty if nothing is fused
  unsigned firstArgument;    ///< region argument of the first input: after the sum or the row index
  mlir::OperandRange inputs; ///< read by the region at `maps`
  /// The maps of the inputs, then of the extra results. If nothing is fused into a quantize or an
  /// amax, its input is the tensor and the map is an identity.
  llvm::SmallVector<mlir::AffineMap> maps;
  mlir::OperandRange outs; ///< all destinations, those of the extra results last
  unsigned numDims;        ///< rank of the tensor that the region computes
  /// Positions in the yield of the values whose amax is a result, too.
  llvm::SmallVector<int64_t> amaxes;
  /// The dimensions that make up a row; empty if the region works on elements.
  llvm::ArrayRef<int64_t> rows = {};

  bool isEmpty() const { return region->empty(); }
  mlir::Block &body() const { return region->front(); }
  YieldOp yield() const { return llvm::cast<YieldOp>(body().getTerminator()); }
  unsigned numExtras() const { return maps.size() > inputs.size() ? maps.size() - inputs.size() : 0; }
  /// The position of the first extra result among `outs` and results.
  unsigned firstExtra() const { return outs.size() - numExtras(); }
  mlir::ValueRange extras() const { return outs.drop_front(firstExtra()); }
  /// The destinations of `amaxes`, which are before those of the extra results.
  mlir::ValueRange amaxOuts() const { return outs.slice(firstExtra() - amaxes.size(), amaxes.size()); }
  llvm::ArrayRef<mlir::AffineMap> inputMaps() const { return llvm::ArrayRef(maps).take_front(inputs.size()); }
  llvm::ArrayRef<mlir::AffineMap> extraMaps() const { return llvm::ArrayRef(maps).drop_front(inputs.size()); }

  /// Returns the sizes of the tensor, each from an operand that has the dimension, a known one where there is
  /// one.
  llvm::SmallVector<int64_t> getShape() const;
  /// The dimensions that are not in `rows`, in order.
  llvm::SmallVector<unsigned> outerDims() const;
  /// Returns whether an extra result with this map is summed over elements or rows, not stored.
  bool sums(mlir::AffineMap extraMap) const;
  /// Returns the type in which the region reads or yields `operand`, an input or extra result with
  /// `map`: that of an element, or of the slice along the dimensions of a row.
  mlir::Type partOf(mlir::Value operand, mlir::AffineMap map) const;
};

/// Returns whether `expr` is one of the dimensions `rows`.
bool isRowDim(mlir::AffineExpr expr, llvm::ArrayRef<int64_t> rows);

/// Creates a copy of `op`, one of these five operations, with other inputs, destinations and maps
/// (of the inputs, then of the extra results; may be null), and moves the region of `op` into it.
/// The caller replaces the results of `op`.
mlir::Operation *rebuildElementRegion(mlir::RewriterBase &rewriter, mlir::Operation *op,
                                      mlir::ValueRange inputs, mlir::ValueRange outs, mlir::ArrayAttr maps);

/// Creates a copy of `op`, an amax or a quantize, that works on `rows`, with these inputs,
/// destinations and maps, and moves `region` into it. The caller replaces the results of `op`.
mlir::Operation *buildOnRows(mlir::RewriterBase &rewriter, mlir::Operation *op, mlir::ValueRange inputs,
                             mlir::ValueRange outs, mlir::ArrayAttr maps, llvm::ArrayRef<int64_t> rows,
                             mlir::Region &region);

/// A common view of the results of fp8.matmul and fp8.scaled_matmul.
struct MatmulResults {
  /// Returns the view of `op`, or nullopt if it is not one of these two operations.
  static std::optional<MatmulResults> of(mlir::Operation *op);

  mlir::Value outScale; ///< the scale of a result that is cast to FP8, else null
  bool accumulate;
};

/// Creates a copy of the matmul `op` with other epilogue inputs, maps and results and with
/// `record_amax` = `recordAmax`, and moves the region of `op` into it. The caller replaces the
/// results of `op`.
mlir::Operation *rebuildMatmul(mlir::RewriterBase &rewriter, mlir::Operation *op, mlir::ValueRange inputs,
                               mlir::Value outScale, llvm::ArrayRef<int64_t> recordAmax,
                               mlir::ValueRange outs, mlir::ArrayAttr maps);

/// Returns whether an extra result of a region on elements is summed over the leading dimensions,
/// not stored.
inline bool isSummed(mlir::AffineMap extraMap) { return extraMap.getNumResults() < extraMap.getNumDims(); }

} // namespace fp8

#endif // FP8_DIALECT_FP8_IR_ELEMENTREGION_H
