// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One loop nest over the elements of a tensor, which runs the fused code, stores or sums extra
// results, and computes amaxes. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOLINALG_CAST_ELEMENTLOOPS_H
#define FP8_LIB_CONVERSION_FP8TOLINALG_CAST_ELEMENTLOOPS_H

#include "fp8/Conversion/FP8ToLinalg/MatmulEpilogue.h"
#include "fp8/Conversion/FP8ToLinalg/StochasticRounding.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace fp8 {

/// Emits the loops for one operation on memrefs.
class ElementLoops {
public:
  /// Stores one element; `value` is the value that the region yields, or an element of the only input.
  using ElementBuilder = llvm::function_ref<void(mlir::OpBuilder &, mlir::Location, mlir::Value value,
                                                 mlir::ValueRange indices)>;
  /// Builds the first argument of the region at `indices`: the scaled sum of a matmul.
  using FirstBuilder =
      llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, mlir::ValueRange indices)>;

  ElementLoops(mlir::OpBuilder &builder, mlir::Operation *op);

  /// Runs over all elements, and writes the amaxes of the operation.
  void run(ElementBuilder element, FirstBuilder first = {});

  /// For loops of the caller's own: builds the code of the element at `indices`, which stores or sums the
  /// extra results, and returns the values that the region yields.
  llvm::SmallVector<mlir::Value> compute(mlir::OpBuilder &b, mlir::ValueRange indices);
  /// Builds zeros for the sums, before such loops.
  void clearSums();
  /// Returns whether the loops are to run in parallel: there are many elements, or threads.
  bool isParallel() const;
  llvm::ArrayRef<mlir::Value> getSizes() const { return sizes; }

private:
  struct Bounds {
    llvm::SmallVector<mlir::Value> lower, upper;
    mlir::Value firstColumn = {}; ///< what is added to the index of the innermost loop, or null
  };
  /// Emits the loops of one part; returns its maxima.
  using PartBuilder = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &, mlir::Value part,
                                                                        mlir::ValueRange carried)>;

  void runParts(mlir::Value count, PartBuilder buildPart);
  llvm::SmallVector<mlir::Value> runInner(mlir::OpBuilder &b, const Bounds &bounds, mlir::ValueRange outer,
                                          mlir::ValueRange carried);
  mlir::Value index(mlir::OpBuilder &b, int64_t value);
  mlir::Value shift(mlir::OpBuilder &b, const Bounds &bounds, mlir::Value column);
  void prefetchRow(mlir::scf::ForOp loop, const Bounds &bounds, mlir::Value row, mlir::Value column);
  llvm::SmallVector<mlir::Value> getInitialMaxima(mlir::OpBuilder &b);
  void storeMaxima(mlir::ValueRange bits);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  ElementRegion region;
  llvm::SmallVector<mlir::Value> sizes;
  bool sums;               ///< whether there are sums over the leading dimensions
  bool prefetches = false; ///< whether loops over columns prefetch a later row
  ElementBuilder element = {};
  FirstBuilder first = {};
};

/// Converts the scaled elements of a tensor to FP8: to nearest, or stochastically with the random bits of
/// each element.
class CastEncoder {
public:
  /// `random` and `stream` of a cast may be null and unset. `sizes` are those of the tensor and must live on.
  CastEncoder(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value random, std::optional<int64_t> stream,
              mlir::FloatType format, llvm::ArrayRef<mlir::Value> sizes);

  /// Returns the FP8 value of `scaled`, the element at `indices`, an f32.
  mlir::Value encode(mlir::OpBuilder &b, mlir::Location loc, mlir::Value scaled,
                     mlir::ValueRange indices) const;

private:
  mlir::FloatType format;
  llvm::ArrayRef<mlir::Value> sizes;
  std::optional<RandomSource> source; ///< unset for nearest
};

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOLINALG_CAST_ELEMENTLOOPS_H
