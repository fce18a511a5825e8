// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code on one row as operations on the tensors of many rows. Private to the library.

#ifndef FP8_LIB_CONVERSION_EXPANDROWS_LIFTROWS_H
#define FP8_LIB_CONVERSION_EXPANDROWS_LIFTROWS_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"

namespace fp8 {

/// Rewrites code on a row, which has indices in `numOuter` outer dimensions, for a box of rows. A scalar of
/// the row becomes a tensor of the outer dimensions, a tensor of the row one with the outer dimensions first.
class RowLifter {
public:
  /// `offsets` and `sizes`: the box of rows.
  RowLifter(mlir::OpBuilder &builder, mlir::Location loc, mlir::ArrayRef<mlir::OpFoldResult> offsets,
            mlir::ArrayRef<mlir::OpFoldResult> sizes)
      : b(builder), loc(loc), offsets(offsets), sizes(sizes) {}

  /// Sets what the code reads as `part`: its index in outer dimension `dim`; or the element or slice of
  /// `tensor` at `map`, from the outer dimensions, relative to the box, and the dimensions of `part`.
  void setIndex(mlir::Value part, unsigned dim) { indices[part] = dim; }
  void set(mlir::Value part, mlir::Value tensor, mlir::AffineMap map) { lifted[part] = {tensor, map}; }

  /// Rewrites one operation of the code, or emits an error.
  mlir::LogicalResult lift(mlir::Operation *op);
  /// Returns `part`, a tensor that the code has computed, of all rows, with the outer dimensions first.
  mlir::Value get(mlir::Value part) { return makeInit(part, /*isRead=*/true); }
  /// Writes `part`, which the code has computed, to `out` at `map`, as of set. Returns the written tensor.
  mlir::Value write(mlir::Value part, mlir::Value out, mlir::AffineMap map);

private:
  /// A tensor, and the map to it from the outer dimensions and those of the part of a row.
  struct Lifted {
    mlir::Value tensor;
    mlir::AffineMap map;
  };

  unsigned numOuter() const { return sizes.size(); }
  /// Returns the map from outer dimensions and `loops` to outer dimensions and the results of `map`.
  mlir::AffineMap addOuter(mlir::AffineMap map);
  /// Returns whether `value` differs from row to row.
  bool isOfRow(mlir::Value value) const { return lifted.contains(value) || indices.contains(value); }
  /// Returns `value`, the same for all rows, or its tensor, with the map from outer dimensions and `loops`.
  Lifted read(mlir::Value value, mlir::AffineMap map);
  mlir::Value makeEmpty(mlir::ArrayRef<mlir::OpFoldResult> ofRow, mlir::Type element);
  /// Returns a tensor of all rows that an operation may write in place of `init`, which has the values of
  /// `init` if `isRead`.
  mlir::Value makeInit(mlir::Value init, bool isRead);
  /// Creates a generic on all rows, of the loops of a row that `iterators` lists: it reads `inputs` and
  /// writes `inits` at maps from these loops. `body` gets the elements of both, and returns those of
  /// `results`.
  void buildGeneric(mlir::ValueRange inputs, mlir::ArrayRef<mlir::AffineMap> inputMaps,
                    mlir::ValueRange inits, mlir::ArrayRef<mlir::AffineMap> initMaps,
                    mlir::ArrayRef<mlir::utils::IteratorType> iterators, mlir::ValueRange results,
                    llvm::function_ref<mlir::SmallVector<mlir::Value>(mlir::OpBuilder &, mlir::ValueRange ins,
                                                                      mlir::ValueRange outs)>
                        body);
  void liftScalar(mlir::Operation *op);
  mlir::LogicalResult liftExtract(mlir::Operation *op);
  void liftLinalg(mlir::linalg::LinalgOp op);
  void liftMatmul(MatmulOp op);

  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::SmallVector<mlir::OpFoldResult> offsets, sizes;
  llvm::DenseMap<mlir::Value, Lifted> lifted;
  llvm::DenseMap<mlir::Value, unsigned> indices;
  mlir::IRMapping same; ///< values that are the same for all rows
};

} // namespace fp8

#endif // FP8_LIB_CONVERSION_EXPANDROWS_LIFTROWS_H
