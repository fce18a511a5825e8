// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The epilogue of a product kernel: it scales a sum, adds C, runs the epilogue region and stores the results.
// Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_EPILOGUE_H
#define FP8_LIB_CONVERSION_FP8TOGPU_EPILOGUE_H

#include "Lowering.h"
#include "Product.h"
#include "fp8/Dialect/FP8/IR/ElementRegion.h"

namespace fp8 {

/// The epilogue of one product, inside its kernel. If it needs what kernels of products cannot do (positions
/// that are computed, sums over some rows only), the kernel stores scaled sums to a buffer, and generic code
/// after it does the rest.
///
/// Use: create it before the kernel (it adds the arguments); in the kernel, call start() once, atRow() and
/// atColumn() for each row and column of a thread, compute() for each of its elements, and finishTile() at
/// the end; call finish() after the launch.
class Epilogue {
public:
  /// Returns whether `op` has an epilogue with a meaning: nothing can be added to an FP8 result.
  static bool isValid(mlir::Operation *op);

  /// `sumParts`, of type index, is the number of parts in which the kernel adds up a column of all batches.
  Epilogue(mlir::OpBuilder &host, const Product &product, KernelArguments &arguments, mlir::Value sumParts);

  /// A batch, row or column, as a thread sees it.
  struct Position {
    std::optional<Expr> exists;             ///< whether it is one; nothing for a batch
    llvm::SmallVector<mlir::Value> indices; ///< per dimension of the result; null in those of other groups
    llvm::SmallVector<mlir::Value> offsets; ///< i64 bytes, per operand of the epilogue; null for 0
    llvm::SmallVector<mlir::Value> sums;    ///< of a column: what the thread has added up
    std::optional<Expr> index;              ///< of a column: its number
  };

  /// Loads the scales, and moves all operands to `batch`.
  void start(KernelBuilder &b, Expr batch);
  Position atRow(KernelBuilder &b, Expr row, Expr rows) const;
  Position atColumn(KernelBuilder &b, Expr column, Expr columns) const;
  /// Stores the results of `sum`, an f32, and takes them into the sums of the column and the maxima.
  void compute(KernelBuilder &b, const Position &row, Position &column, Expr sum);
  /// Adds up the sums of lanes that have the same columns and stores them as part `part`; `lanes` are the
  /// bits of the lane's number that tell apart the rows. Stores the maxima.
  void finishTile(KernelBuilder &b, llvm::ArrayRef<Position> columns, Expr part,
                  llvm::ArrayRef<int64_t> lanes);

  /// Builds the code that is left, after the launch.
  void finish(mlir::OpBuilder &host, mlir::gpu::LaunchFuncOp launch, LoweringContext &context) const;

private:
  /// A memref that the epilogue reads or writes, as the kernel sees it.
  struct Operand {
    mlir::Type element;
    unsigned argument; ///< its pointer
    /// Per dimension of the result: the distance of neighbours in bytes, and the argument that has it unless
    /// it is that of a contiguous dimension.
    llvm::SmallVector<int64_t> strides;
    llvm::SmallVector<std::optional<unsigned>> strideArguments;
    mlir::Value start; ///< inside of the kernel: the address of the batch
  };
  /// A sum over all rows: its place among the yielded values, and its parts in memory.
  struct Sum {
    unsigned yielded;
    mlir::Value out;
    mlir::AffineMap map;
    mlir::Value parts; ///< memref<parts x N x f32>
    unsigned argument;
  };

  bool canFuse() const;
  void addOperand(mlir::OpBuilder &host, KernelArguments &arguments, mlir::Value memref, mlir::AffineMap map);
  void addFusedOperands(mlir::OpBuilder &host, KernelArguments &arguments, mlir::Value sumParts);
  void prepareScalars(mlir::OpBuilder &host, KernelArguments &arguments);
  void addParts(mlir::OpBuilder &host, const Sum &sum) const;
  Position at(KernelBuilder &b, llvm::ArrayRef<unsigned> group, Expr index) const;
  bool collapses(unsigned outer, unsigned inner) const;
  mlir::Value pointerTo(KernelBuilder &b, unsigned operand, const Position &row,
                        const Position &column) const;
  llvm::SmallVector<mlir::Value> runRegion(KernelBuilder &b, const Position &row, const Position &column,
                                           mlir::Value value) const;
  llvm::SmallVector<mlir::Value> storeElement(KernelBuilder &b, const Position &row, const Position &column,
                                              Expr sum) const;

  const Product &product;
  ElementRegion region;
  ProductResults results;
  bool fused;
  mlir::Value scaledSums; ///< of an epilogue that is not fused
  /// The result, the inputs, and the extra results that are stored.
  llvm::SmallVector<Operand> operands;
  llvm::SmallVector<unsigned> storedExtras; ///< places among the yielded values
  llvm::SmallVector<Sum> sums;
  llvm::SmallVector<unsigned> sizeArguments; ///< per dimension of the result
  llvm::SmallVector<int64_t> sizes;          ///< per dimension of the result
  std::optional<unsigned> lhsScale, rhsScale, outScaleArgument, columnsArgument;
  llvm::SmallVector<unsigned> amaxArguments;

  // Values of the kernel.
  mlir::Value scale, outScale;
  llvm::SmallVector<mlir::Value> maxima; ///< bits of magnitudes
  Position batchPosition;
};

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_EPILOGUE_H
