// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The iteration space of a packed matmul: its dimensions and sizes, and the tasks that it is cut into.
// Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_PACKED_PACKEDGEMMSPACE_H
#define FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_PACKED_PACKEDGEMMSPACE_H

#include "PackedGemmDetail.h"
#include "fp8/Dialect/FP8/IR/ContractionDims.h"

namespace fp8 {

/// Returns the position of dimension `dim` in the results of `map`, if it has one.
std::optional<unsigned> findDim(mlir::AffineMap map, unsigned dim);

/// A part of the sums: a block of rows of one matmul, and a block of its columns.
struct Task {
  mlir::SmallVector<mlir::OpFoldResult> batch; ///< an index per batch dimension
  mlir::SmallVector<mlir::OpFoldResult> outer; ///< an index per dimension of M before the one that is cut
  mlir::OpFoldResult begin, count;             ///< the range of the dimension that is cut
  mlir::OpFoldResult slot;               ///< the number of its rows among the blocks of rows of all matmuls
  mlir::OpFoldResult worker;             ///< the number of the worker that took it
  mlir::OpFoldResult firstPanel, panels; ///< the range of the panels of N
  int64_t mostPanels = 0;                ///< the most that `panels` can be; 0: all panels of N
};

/// The dimensions of a matmul, their sizes, and its plan.
class MatmulSpace {
public:
  MatmulSpace(mlir::Location loc, ContractionDims dims, mlir::AffineMap outMap)
      : loc(loc), dims(std::move(dims)), outMap(outMap) {}

  mlir::OpFoldResult number(mlir::OpBuilder &b, int64_t value) const { return b.getIndexAttr(value); }
  mlir::OpFoldResult sizeOf(mlir::OpBuilder &b, mlir::ArrayRef<unsigned> group) const;
  /// Returns the size of `group` if it is known, else ShapedType::kDynamic.
  int64_t knownSize(mlir::ArrayRef<unsigned> group) const;
  /// Returns the number of `indices` in row-major order.
  mlir::OpFoldResult linearize(mlir::OpBuilder &b, mlir::ArrayRef<mlir::OpFoldResult> indices,
                               mlir::ArrayRef<unsigned> group) const;

  /// The dimensions of M before the one that is cut, the number of the others, and the size of the one.
  mlir::ArrayRef<unsigned> outerRows() const { return mlir::ArrayRef(dims.m).take_front(plan.cut); }
  unsigned rowDims() const { return dims.m.size() - plan.cut; }
  mlir::OpFoldResult cutSize(mlir::OpBuilder &b) const {
    return dims.m.empty() ? number(b, 1) : sizes[dims.m[plan.cut]];
  }
  /// The number of rows of `task`, and of blocks of rows at one index of the dimensions before.
  mlir::OpFoldResult rowsOf(mlir::OpBuilder &b, const Task &task) const {
    return multiplySizes(b, loc, {task.count, number(b, plan.inner)});
  }
  mlir::OpFoldResult countBlocks(mlir::OpBuilder &b) const {
    return ceilDivSize(b, loc, cutSize(b), plan.step);
  }
  mlir::OpFoldResult countPanels(mlir::OpBuilder &b) const {
    return ceilDivSize(b, loc, sizeOf(b, dims.n), plan.tile.columns);
  }
  /// The number of tasks that one block of rows is cut into.
  mlir::OpFoldResult countColumnTasks(mlir::OpBuilder &b) const {
    return plan.panelsPerTask ? ceilDivSize(b, loc, countPanels(b), plan.panelsPerTask) : number(b, 1);
  }

  /// Runs `body` for all indices below `counts`; without loops where there is one index only.
  void buildLoops(mlir::OpBuilder &b, mlir::ArrayRef<mlir::OpFoldResult> counts,
                  llvm::function_ref<void(mlir::OpBuilder &, mlir::ArrayRef<mlir::OpFoldResult>)> body) const;
  /// The number of blocks of rows of all matmuls.
  mlir::OpFoldResult countRowBlocks(mlir::OpBuilder &b) const {
    return multiplySizes(b, loc, {sizeOf(b, dims.batch), sizeOf(b, outerRows()), countBlocks(b)});
  }
  /// The number of workers: so many tasks are computed at a time at most. Each has buffers of its own.
  mlir::OpFoldResult countWorkers(mlir::OpBuilder &b) const;
  /// Runs `body` for all blocks of rows.
  void forEachRowBlock(mlir::OpBuilder &b,
                       llvm::function_ref<void(mlir::OpBuilder &, const Task &)> body) const;
  /// Runs `body` for all tasks. Workers take them one by one, so that a slower core computes fewer of them;
  /// `taken`, a memref<1xi64>, counts those that were taken; null if one worker computes all.
  void forEachTask(mlir::OpBuilder &b, mlir::Value taken,
                   llvm::function_ref<void(mlir::OpBuilder &, const Task &)> body) const;
  /// Runs `body` for the parts of `task` whose sums stay in the L2 cache: ranges of its panels.
  void forEachPart(mlir::OpBuilder &b, const Task &task,
                   llvm::function_ref<void(mlir::OpBuilder &, const Task &)> body) const;
  /// Returns the part of the output that `task` computes.
  OutputBox boxOf(mlir::OpBuilder &b, const Task &task) const;

  mlir::Location loc;
  ContractionDims dims;
  mlir::AffineMap outMap;
  mlir::SmallVector<mlir::OpFoldResult> sizes; ///< of all dimensions
  MatmulPlan plan;

private:
  /// The numbers of indices of a block of rows: those of the dimensions before, and of the cut one.
  mlir::SmallVector<mlir::OpFoldResult> rowBlockCounts(mlir::OpBuilder &b) const;
  /// Returns the block of rows at `indices`, with all columns.
  Task rowBlockAt(mlir::OpBuilder &b, mlir::ArrayRef<mlir::OpFoldResult> indices) const;
  /// Returns the task at `indices`: a block of rows, and a range of columns.
  Task taskAt(mlir::OpBuilder &b, mlir::ArrayRef<mlir::OpFoldResult> indices) const;
};

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_PACKED_PACKEDGEMMSPACE_H
