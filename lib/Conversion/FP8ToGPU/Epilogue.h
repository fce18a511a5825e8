// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a kernel of products does with a sum: scale it, add C, run the epilogue region, and store the results.
// Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_EPILOGUE_H
#define FP8_LIB_CONVERSION_FP8TOGPU_EPILOGUE_H

#include "Product.h"
#include "fp8/Dialect/FP8/IR/ElementRegion.h"

namespace fp8 {

/// The epilogue of one product, inside its kernel or, if it needs what kernels of products cannot do (sums
/// over rows, an amax, an FP8 result, positions that are computed), as generic code after it, which reads the
/// scaled sums from a buffer.
///
/// Use: create it before the kernel (it adds the arguments), call start() once at the top of the kernel, at()
/// once for each row and column of a thread, store() for each of its elements, and finish() after the launch.
class Epilogue {
public:
  /// Returns whether `op` has an epilogue with a meaning: nothing can be added to an FP8 result.
  static bool isValid(mlir::Operation *op);

  Epilogue(mlir::OpBuilder &host, const Product &product, KernelArguments &arguments);

  /// Positions of a batch, row or column: its indices in dimensions of the result, and for each operand of
  /// the epilogue its distance in bytes from the operand's start.
  struct Position {
    llvm::SmallVector<mlir::Value> indices; ///< per dimension of the result; null in those of other groups
    llvm::SmallVector<mlir::Value> offsets; ///< i64, per operand; null for 0
  };

  /// Loads the scales, and moves all operands to `batch`.
  void start(KernelBuilder &b, Expr batch);
  Position atRow(KernelBuilder &b, Expr row) const { return at(b, product.dims.m, row); }
  Position atColumn(KernelBuilder &b, Expr column) const { return at(b, product.dims.n, column); }
  /// Stores the results of `sum`, an f32, at a row and column that exist.
  void store(KernelBuilder &b, const Position &row, const Position &column, Expr sum) const;

  /// Builds the generic code that is left, after the launch.
  void finish(mlir::OpBuilder &host) const;

  /// Returns whether the kernel runs the whole epilogue.
  bool isFused() const { return fused; }

private:
  /// A memref that the epilogue reads or writes, as the kernel sees it.
  struct Operand {
    mlir::MemRefType type;
    mlir::AffineMap map; ///< from the dimensions of the result
    unsigned argument;   ///< its pointer
    /// Per dimension of the result: the distance of neighbours in bytes, or the argument that has it.
    llvm::SmallVector<int64_t> strides;
    llvm::SmallVector<std::optional<unsigned>> strideArguments;
    mlir::Value start; ///< inside of the kernel: the address of the batch
  };

  bool canFuse() const;
  void addOperand(mlir::OpBuilder &host, KernelArguments &arguments, mlir::Value memref, mlir::AffineMap map);
  Position at(KernelBuilder &b, llvm::ArrayRef<unsigned> group, Expr index) const;
  bool collapses(unsigned outer, unsigned inner) const;
  mlir::Value pointerTo(KernelBuilder &b, const Operand &operand, const Position &row,
                        const Position &column) const;

  const Product &product;
  ElementRegion region;
  ProductResults results;
  bool fused;
  mlir::Value sums;                          ///< of an epilogue that is not fused
  llvm::SmallVector<Operand> operands;       ///< the result, the inputs, and the extra results
  llvm::SmallVector<unsigned> sizeArguments; ///< per dimension of the result
  llvm::SmallVector<int64_t> sizes;          ///< per dimension of the result
  std::optional<unsigned> lhsScale, rhsScale;
  mlir::Value scale;
  Position batchPosition;
};

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_EPILOGUE_H
