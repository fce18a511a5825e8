// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The epilogue of a matmul kernel: it scales a sum, adds C, runs the epilogue region and stores the results.
// Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_EPILOGUE_H
#define FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_EPILOGUE_H

#include "../Kernel/LoweringContext.h"
#include "MatmulView.h"
#include "fp8/Dialect/FP8/IR/ElementRegion.h"

namespace fp8 {

/// The epilogue of one matmul, inside its kernel. If it needs what kernels of matmuls cannot do (positions
/// that are computed, sums over some rows only), the kernel stores scaled sums to a buffer, and generic code
/// after it does the rest.
///
/// Use: create it before the kernel (it adds the arguments); in the kernel, call start() once, atRow() and
/// atColumn() for each row and column of a thread, compute() for each of its elements, and finishTile() at
/// the end; call finish() after the launch. Where scales differ along K, the kernel reads them (findScales())
/// and multiplies its sums by them itself.
class Epilogue {
public:
  /// Returns whether `op` has an epilogue with a meaning: nothing can be added to an FP8 result.
  static bool isValid(mlir::Operation *op);

  /// `sumParts`, of type index, is the number of parts in which the kernel adds up a column of all batches.
  Epilogue(mlir::OpBuilder &host, const MatmulView &matmul, KernelArguments &arguments, mlir::Value sumParts);

  /// A batch, row or column, as a thread sees it.
  struct Position {
    std::optional<Expr> exists;             ///< whether it is one; nothing for a batch
    llvm::SmallVector<mlir::Value> indices; ///< per dimension of the result; null in those of other groups
    llvm::SmallVector<mlir::Value> offsets; ///< i64 bytes, per operand of the epilogue; null for 0
    llvm::SmallVector<mlir::Value, 2> sums; ///< of a column: what the thread has added up
    std::optional<Expr> index;              ///< of a column: its number
    mlir::Value scale;                      ///< its scale_inv, f32; null if the operand has one for all rows
  };

  /// Where the scales of one row of lhs, or of one column of rhs, lie: for each part of K an f32, or a word
  /// of four E8M0 scales.
  struct LineOfScales {
    mlir::Value first; ///< the address of the first
    Expr stride;       ///< from part to part in bytes, i64
  };
  /// Returns the scales of the row of lhs, or with `isLhs` false the column of rhs, number `index` of
  /// `batch`; the row or column must exist. Not for scales that are the same for all of K.
  LineOfScales findScales(KernelBuilder &b, bool isLhs, Expr batch, Expr index) const;

  /// Loads the scales, and moves all operands to `batch`.
  void start(KernelBuilder &b, Expr batch);
  Position atRow(KernelBuilder &b, Expr row, Expr rows) const;
  Position atColumn(KernelBuilder &b, Expr column, Expr columns) const;
  /// Stores the results of sums, f32, of neighbouring columns, and takes them into the sums of the columns
  /// and the maxima. The number of columns is a power of two, of which the first column is a multiple.
  /// Elements that lie side by side are accessed together, up to 16 bytes.
  void compute(KernelBuilder &b, const Position &row, llvm::MutableArrayRef<Position> columns,
               llvm::ArrayRef<mlir::Value> sums);
  /// Returns the columns that compute() takes together at most, a power of two.
  int64_t getRun() const;
  /// Returns whether lanes with two columns each of every 8 exchange them first (exchangeColumns()): two
  /// elements of up to 16 bits from each of four lanes are half a sector of memory or less.
  bool gainsByExchange() const { return operands[0].run >= 8; }
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
    /// Per dimension of the result: how many neighbours are one, as rows of a block are for its scale.
    llvm::SmallVector<int64_t> extents;
    /// How many columns, from a multiple of this number on, lie side by side at a multiple of their bytes, in
    /// every row: a power of two of up to 16 bytes.
    int64_t run = 1;
    mlir::Value start = {}; ///< inside of the kernel: the address of the batch
  };
  /// The elements of one operand or value at neighbouring columns, each alone or two as a vector.
  using Elements = llvm::SmallVector<mlir::Value>;
  /// The scale_inv of lhs or rhs, unless there is one for the whole operand.
  struct Scales {
    Operand operand;
    std::optional<unsigned> kStride = {}; ///< the argument that has the bytes from block to block along K
    /// Of an operand with a matrix for each group of rows: the argument that has the bytes from one to the
    /// next.
    std::optional<unsigned> groupStride = {};
    /// Of packed scales: the arguments that have the parts of K, and the tiles of 128 rows of a batch, if the
    /// operand has batches.
    std::optional<unsigned> packedParts = {}, packedTiles = {};
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
  Operand makeOperand(mlir::OpBuilder &host, KernelArguments &arguments, mlir::Value memref,
                      llvm::ArrayRef<std::optional<unsigned>> dims, llvm::ArrayRef<int64_t> extents) const;
  void addOperand(mlir::OpBuilder &host, KernelArguments &arguments, mlir::Value memref, mlir::AffineMap map);
  void addScales(mlir::OpBuilder &host, KernelArguments &arguments);
  Scales makePackedScales(mlir::OpBuilder &host, KernelArguments &arguments, bool isLhs) const;
  Scales makeScales(mlir::OpBuilder &host, KernelArguments &arguments, bool isLhs) const;
  void addFusedOperands(mlir::OpBuilder &host, KernelArguments &arguments, mlir::Value sumParts);
  void prepareScalars(mlir::OpBuilder &host, KernelArguments &arguments);
  void addParts(mlir::OpBuilder &host, const Sum &sum, LoweringContext &context) const;
  Position at(KernelBuilder &b, llvm::ArrayRef<unsigned> group, Expr index,
              llvm::ArrayRef<Operand> operands) const;
  bool collapses(llvm::ArrayRef<Operand> operands, unsigned outer, unsigned inner) const;
  mlir::Value findInBatch(KernelBuilder &b, const Scales &of, Expr batch) const;
  mlir::Value loadScale(KernelBuilder &b, bool isLhs, Expr index, Expr exists) const;
  std::optional<Expr> findScale(KernelBuilder &b, const Position &row, const Position &column) const;
  mlir::Value pointerTo(KernelBuilder &b, unsigned operand, const Position &row,
                        const Position &column) const;
  int64_t findRun(const Operand &operand, mlir::Value memref) const;
  Elements loadElements(KernelBuilder &b, unsigned operand, const Position &row,
                        llvm::ArrayRef<Position> columns) const;
  void storeElements(KernelBuilder &b, unsigned operand, const Position &row,
                     llvm::ArrayRef<Position> columns, llvm::ArrayRef<mlir::Value> values) const;
  void storeData(KernelBuilder &b, const Position &row, llvm::ArrayRef<Position> columns,
                 llvm::ArrayRef<mlir::Value> values) const;
  llvm::SmallVector<Elements> runRegion(KernelBuilder &b, const Position &row,
                                        llvm::ArrayRef<Position> columns, llvm::ArrayRef<mlir::Value> values,
                                        llvm::ArrayRef<Elements> inputs) const;
  llvm::SmallVector<mlir::Value> storeResults(KernelBuilder &b, const Position &row,
                                              llvm::ArrayRef<Position> columns,
                                              llvm::ArrayRef<mlir::Value> sums) const;
  void computeRun(KernelBuilder &b, const Position &row, llvm::MutableArrayRef<Position> columns,
                  llvm::ArrayRef<mlir::Value> sums);

  const MatmulView &matmul;
  ElementRegion region;
  MatmulResults results;
  bool fused;
  mlir::Value scaledSums; ///< of an epilogue that is not fused
  /// The result, the inputs, and the extra results that are stored.
  llvm::SmallVector<Operand> operands;
  llvm::SmallVector<unsigned> storedExtras; ///< places among the yielded values
  llvm::SmallVector<Sum> sums;
  llvm::SmallVector<unsigned> sizeArguments; ///< per dimension of the result
  llvm::SmallVector<int64_t> sizes;          ///< per dimension of the result
  // The scale_inv of lhs and rhs: of the whole operand, the number of an argument, or others.
  std::array<std::optional<unsigned>, 2> wholeScales;
  std::array<std::optional<Scales>, 2> scales;
  std::optional<unsigned> outScaleArgument, columnsArgument;
  llvm::SmallVector<unsigned> amaxArguments;

  // Values of the kernel.
  std::array<mlir::Value, 2> scaleValues; ///< of the whole operands
  mlir::Value outScale;
  llvm::SmallVector<mlir::Value> maxima; ///< bits of magnitudes
  Position batchPosition;
};

/// Four neighbouring lanes have two columns each of four groups of 8 columns, one group after the other in
/// `sums`; then each has all columns of one group.
void exchangeColumns(KernelBuilder &b, llvm::MutableArrayRef<mlir::Value> sums);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_EPILOGUE_H
