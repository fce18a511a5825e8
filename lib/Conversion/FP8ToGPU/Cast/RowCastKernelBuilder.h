// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The builder of a kernel of rows, whose parts lie in several files. Private to them.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_CAST_ROWCASTKERNELBUILDER_H
#define FP8_LIB_CONVERSION_FP8TOGPU_CAST_ROWCASTKERNELBUILDER_H

#include "../Kernel/ElementAccess.h"
#include "RowCastKernel.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

namespace fp8 {

/// Writes the code of one kernel. Element j of a thread is element j % width of its chunk j / width.
class RowKernel {
public:
  RowKernel(KernelBuilder &b, const TileWork &work, const RowPlan &plan);
  void build();

private:
  using Values = llvm::SmallVector<mlir::Value>;
  /// Rows of one 16-byte part of a column.
  static constexpr int64_t kPartRows = 16;

  // RowCastKernel.cpp: rows, and their results.
  Values computeRow(Expr rowOfBlock, mlir::ValueRange before);
  void storeStatistics();
  void writeChunk(int64_t chunk, Expr rowOfBlock, Values &carried);
  void storeChunk(const TileOperand &operand, int64_t chunk, llvm::ArrayRef<mlir::Value> values);
  void storeData(int64_t chunk, Expr rowOfBlock, llvm::ArrayRef<mlir::Value> values);
  Expr encode(int64_t chunk, llvm::ArrayRef<mlir::Value> values);
  Expr encodeRandomly(int64_t chunk, llvm::ArrayRef<mlir::Value> values, mlir::FloatType format);
  mlir::Value countMagnitudes(mlir::Value amax, llvm::ArrayRef<mlir::Value> values, int64_t chunk);

  // RowCastResults.cpp: the results of a block.
  void storeSums(mlir::ValueRange sums);
  void storeSum(const TileOperand &operand, mlir::ValueRange sums);
  void storeColumns();
  void storeColumnPart(Expr word, Expr half);
  void raiseAmax(Expr amax);

  // RowCastElements.cpp: the region's values.
  mlir::Value getElement(mlir::Value value, int64_t element);
  mlir::Value getScalar(mlir::Value value);
  void loadChunk(mlir::BlockArgument argument, int64_t chunk);
  mlir::Value cloneOn(mlir::Operation *op, llvm::function_ref<mlir::Value(mlir::Value)> getOperand);
  mlir::Value reduce(mlir::vector::ReductionOp op);
  mlir::Value combine(mlir::vector::CombiningKind kind, mlir::Value lhs, mlir::Value rhs);
  mlir::Value combineLanes(mlir::vector::CombiningKind kind, mlir::Value part);

  Place at(int64_t chunk) { return {batch, row, columnOf(chunk)}; }
  Expr columnOf(int64_t chunk) { return (lane + chunk * plan.lanes) * plan.width; }
  /// The condition that the chunk is in the row; nullopt if it always is.
  std::optional<Expr> isInRow(int64_t chunk);
  Expr isRow(Expr row);
  void when(std::optional<Expr> condition, llvm::function_ref<void()> body);
  mlir::Value pointer(const TileOperand &operand) { return pointers[operand.argument]; }
  mlir::Value toIndex(Expr value);
  /// The number of 32-bit words of a row of FP8 in shared memory.
  int64_t getSharedPitch() const { return llvm::alignTo(space.columns / 4, RowPlan::kWarp); }

  KernelBuilder &b;
  const TileWork &work;
  const TileSpace &space;
  const RowPlan &plan;
  const ElementRegion &region;
  Values pointers; ///< per argument
  Expr rows = 0;   ///< of a batch; 0 if there are no elements
  Expr thread = 0, lane = 0, batch = 0, firstRow = 0, row = 0;
  std::optional<Expr> scale;
  std::optional<ElementRandom> random; ///< of a cast that rounds stochastically
  mlir::Value shared;                  ///< words for the columns and the sums of warps
  mlir::IRMapping captured;
  // Of the row that is being computed.
  mlir::IRMapping scalars;
  llvm::DenseMap<mlir::Value, Values> elements;
  unsigned reductions = 0;
};

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_CAST_ROWCASTKERNELBUILDER_H
