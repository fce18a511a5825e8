// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The builder of a packed matmul as one kernel. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_PACKED_PACKEDGEMMBUILDER_H
#define FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_PACKED_PACKEDGEMMBUILDER_H

#include "PackedGemmSpace.h"

namespace fp8 {

/// Allocates an f32 buffer that begins with a cache line.
mlir::Value allocateF32(mlir::OpBuilder &b, mlir::Location loc, mlir::ArrayRef<mlir::OpFoldResult> sizes);

/// Emits the kernel: packing, matmuls and epilogues of all tasks.
class MatmulBuilder : private MatmulSpace {
public:
  MatmulBuilder(mlir::Location loc, mlir::Value lhs, mlir::Value rhs, mlir::ArrayRef<mlir::AffineMap> maps,
                ContractionDims dims, const PackedMatmulOptions &options)
      : MatmulSpace(loc, std::move(dims), maps[2]), lhs(lhs), rhs(rhs), lhsMap(maps[0]), rhsMap(maps[1]),
        options(options), scales(options.scales) {}

  mlir::Value build(mlir::OpBuilder &b, EpilogueBuilder epilogue);

private:
  /// A range of K.
  struct Segment {
    mlir::OpFoldResult begin, length;
  };

  /// An operand and its panels. `scales` is without source if there are no scales along K.
  struct Side {
    PackedOperand operand, scales;
    unsigned rowDims;        ///< the last dimensions of `outer` that rows of one call run through
    mlir::Value panels;      ///< [worker, block of rows or batch][panel][K][tile rows or columns]
    mlir::Value scalePanels; ///< [worker, block of rows or batch][panel][block of K][tile rows or columns]
  };

  void findSizes(mlir::OpBuilder &b);
  /// Returns the most that the size of `group` can be, ShapedType::kDynamic if that is not known.
  int64_t mostSize(mlir::ArrayRef<unsigned> group) const;
  /// Returns a divisor of the size of `group`.
  int64_t divisorOf(mlir::ArrayRef<unsigned> group) const;
  void choose(mlir::OpBuilder &b, bool mayCutColumns);
  void allocate(mlir::OpBuilder &b);
  /// Returns options.result as a buffer [batch][M][N] of sums; null if it is none, or its memory has another
  /// form: strides, another order of the dimensions, or columns that are not whole panels.
  mlir::Value viewResult(mlir::OpBuilder &b);
  /// Returns the positions in the output of the dimensions of `group` that are not known to have one index.
  mlir::SmallVector<unsigned> positionsInResult(mlir::ArrayRef<unsigned> group) const;
  mlir::Value buildEmpty(mlir::OpBuilder &b, EpilogueBuilder epilogue);
  void buildSegments(mlir::OpBuilder &b, EpilogueBuilder epilogue);
  void buildTasks(mlir::OpBuilder &b, EpilogueBuilder epilogue, mlir::Value isLast);
  /// Emits a call that packs the range `part` of `operand`, which begins at `offsets` and has `rows` rows.
  void pack(mlir::OpBuilder &b, const PackedOperand &operand, const Segment &part, unsigned rowDims,
            mlir::ArrayRef<mlir::OpFoldResult> offsets, mlir::OpFoldResult rows,
            llvm::function_ref<void(const OperandMatrix &)> build);
  /// Packs this segment of an operand and of its scales: `count` panels from `first` on.
  void packSide(mlir::OpBuilder &b, const Side &side, mlir::ArrayRef<mlir::OpFoldResult> offsets,
                mlir::OpFoldResult rows, mlir::OpFoldResult slot, mlir::OpFoldResult first,
                mlir::OpFoldResult count);
  /// Packs the rows of `task`, `count` panels from `first` on.
  void packRows(mlir::OpBuilder &b, const Task &task, mlir::OpFoldResult first, mlir::OpFoldResult count);
  void packColumns(mlir::OpBuilder &b, mlir::ArrayRef<mlir::OpFoldResult> batch, mlir::OpFoldResult first,
                   mlir::OpFoldResult count);
  void packAllColumns(mlir::OpBuilder &b);
  void packAllRows(mlir::OpBuilder &b);
  /// Whether a task packs the rows, or the columns, that it multiplies: no other task reads them.
  bool packsOwnRows() const { return plan.panelsPerTask == 0; }
  bool packsOwnColumns(mlir::OpBuilder &b) const;
  /// Returns how many panels of `width` elements one thread packs at least.
  int64_t panelsPerLoop(int64_t width);
  void multiply(mlir::OpBuilder &b, const Task &part);
  /// Emits a copy of options.start, where there is one, to the sums of `part`.
  void startSums(mlir::OpBuilder &b, const Task &part);
  /// Returns the position of the first sum of `part` in `sums`.
  mlir::OpFoldResult offsetOf(mlir::OpBuilder &b, const Task &part);
  /// Views sums from `offset` on as a box of the output of size `shape`, or as the whole output.
  mlir::Value viewSums(mlir::OpBuilder &b, mlir::OpFoldResult offset,
                       mlir::ArrayRef<mlir::OpFoldResult> shape);
  mlir::Value viewSums(mlir::OpBuilder &b);
  /// Returns `count` panels of `panels` from `first` on, in slot `slot`, of `depth` elements along K.
  mlir::Value sliceOf(mlir::OpBuilder &b, mlir::Value panels, mlir::OpFoldResult slot,
                      mlir::OpFoldResult first, mlir::OpFoldResult count, mlir::OpFoldResult depth);
  /// Returns such panels of this segment, of an operand or of its scales.
  mlir::Value panelsOf(mlir::OpBuilder &b, const Side &side, mlir::OpFoldResult slot,
                       mlir::OpFoldResult first, mlir::OpFoldResult count) {
    return sliceOf(b, side.panels, slot, first, count, inPanel(b, segment.length));
  }
  mlir::Value scalePanelsOf(mlir::OpBuilder &b, const Side &side, mlir::OpFoldResult slot,
                            mlir::OpFoldResult first, mlir::OpFoldResult count) {
    return sliceOf(b, side.scalePanels, slot, first, count, inBlocks(b, segment.length));
  }
  /// Returns the number of elements of a panel along K for `length` indices of K.
  mlir::OpFoldResult inPanel(mlir::OpBuilder &b, mlir::OpFoldResult length) {
    int64_t step = options.traits().step;
    mlir::OpFoldResult steps = ceilDivSize(b, loc, length, step * options.traits().inElement);
    return multiplySizes(b, loc, {steps, number(b, step)});
  }
  /// Returns the number of scales for `length` indices of K.
  mlir::OpFoldResult inBlocks(mlir::OpBuilder &b, mlir::OpFoldResult length) {
    return ceilDivSize(b, loc, length, scales.length);
  }
  mlir::OpFoldResult countRowPanels(mlir::OpBuilder &b, const Task &task) {
    return ceilDivSize(b, loc, rowsOf(b, task), plan.tile.rows);
  }

  mlir::Value lhs, rhs;
  mlir::AffineMap lhsMap, rhsMap;
  PackedMatmulOptions options;
  PanelScales scales;
  Side left, right;  ///< of rows and of columns
  Segment segment;   ///< what is packed and multiplied at a time
  mlir::Value taken; ///< how many tasks were taken; null if one worker computes them all
  mlir::Value sums;  ///< [batch][M][N padded], or [worker][rows][columns of a part, padded]; or the result
  mlir::OpFoldResult firstSum; ///< the position of the first sum, where the sums are the result
  bool isPerTask = false;      ///< whether a task keeps the sums of one part at a time
};

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_PACKED_PACKEDGEMMBUILDER_H
