// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One view of what is fused into fp8.amax and fp8.quantize (producers) and into
// fp8.matmul and fp8.scaled_matmul (epilogues): scalar code that runs once per element of the
// tensor, or code on small tensors that runs once per row.

#ifndef FP8_DIALECT_FP8_IR_ELEMENTREGION_H
#define FP8_DIALECT_FP8_IR_ELEMENTREGION_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/IR/PatternMatch.h"

namespace fp8 {

/// The region of an operation with its inputs and extra results.
struct ElementRegion {
  /// The view of `op`; nothing where it is none of the four.
  static std::optional<ElementRegion> of(mlir::Operation *op);

  mlir::Operation *op;
  mlir::Region *region;      ///< empty where nothing is fused
  unsigned firstArgument;    ///< of the inputs: after the scaled sum of a product, the index of a row
  mlir::OperandRange inputs; ///< read by the region at `maps`
  /// Of the inputs, then of the extra results. Where nothing is fused the tensor is the input.
  llvm::SmallVector<mlir::AffineMap> maps;
  mlir::OperandRange outs; ///< all destinations, those of the extras last
  unsigned numDims;        ///< dimensions of the tensor
  /// Of which values that the region yields, by position, the amax is taken as well.
  llvm::SmallVector<int64_t> amaxes;
  /// The dimensions that make up a row; empty where the region works on elements.
  llvm::ArrayRef<int64_t> rows = {};

  bool isEmpty() const { return region->empty(); }
  mlir::Block &body() const { return region->front(); }
  YieldOp yield() const { return llvm::cast<YieldOp>(body().getTerminator()); }
  unsigned numExtras() const { return maps.size() > inputs.size() ? maps.size() - inputs.size() : 0; }
  /// The position of the first extra among `outs` and results.
  unsigned firstExtra() const { return outs.size() - numExtras(); }
  mlir::ValueRange extras() const { return outs.drop_front(firstExtra()); }
  /// Where `amaxes` go: before the extras.
  mlir::ValueRange amaxOuts() const { return outs.slice(firstExtra() - amaxes.size(), amaxes.size()); }
  llvm::ArrayRef<mlir::AffineMap> inputMaps() const { return llvm::ArrayRef(maps).take_front(inputs.size()); }
  llvm::ArrayRef<mlir::AffineMap> extraMaps() const { return llvm::ArrayRef(maps).drop_front(inputs.size()); }

  /// The dimensions that are not those of a row, in order.
  llvm::SmallVector<unsigned> outerDims() const;
  /// Whether an extra result with this map is summed over elements or rows, not stored.
  bool sums(mlir::AffineMap extraMap) const;
  /// What the region has of `operand`, an input or extra result at `map`: an element, or the
  /// slice along the dimensions of a row.
  mlir::Type partOf(mlir::Value operand, mlir::AffineMap map) const;
};

/// Whether `expr` is one of the dimensions `rows`.
bool isRowDim(mlir::AffineExpr expr, llvm::ArrayRef<int64_t> rows);

/// `op`, which has a view, with other inputs, destinations and maps (of the inputs, then of the
/// extras; may be null). It takes the region; the caller replaces the results.
mlir::Operation *rebuildElementRegion(mlir::RewriterBase &rewriter, mlir::Operation *op,
                                      mlir::ValueRange inputs, mlir::ValueRange outs, mlir::ArrayAttr maps);

/// `op`, an amax or a quantize, on rows: with these inputs, destinations and maps, and `region`,
/// which it takes. The caller replaces the results.
mlir::Operation *buildOnRows(mlir::RewriterBase &rewriter, mlir::Operation *op, mlir::ValueRange inputs,
                             mlir::ValueRange outs, mlir::ArrayAttr maps, llvm::ArrayRef<int64_t> rows,
                             mlir::Region &region);

/// What fp8.matmul and fp8.scaled_matmul share of their results.
struct ProductResults {
  /// The view of `op`; nothing where it is no product.
  static std::optional<ProductResults> of(mlir::Operation *op);

  mlir::Value outScale; ///< of a result that is cast to FP8, else null
  bool accumulate;
};

/// The product `op` with another epilogue and other results; `recordAmax` is its attribute. It takes the
/// region; the caller replaces the results.
mlir::Operation *rebuildProduct(mlir::RewriterBase &rewriter, mlir::Operation *op, mlir::ValueRange inputs,
                                mlir::Value outScale, llvm::ArrayRef<int64_t> recordAmax,
                                mlir::ValueRange outs, mlir::ArrayAttr maps);

/// An extra result with this map is summed over the leading dimensions, not stored.
inline bool isSummed(mlir::AffineMap extraMap) { return extraMap.getNumResults() < extraMap.getNumDims(); }

} // namespace fp8

#endif // FP8_DIALECT_FP8_IR_ELEMENTREGION_H
