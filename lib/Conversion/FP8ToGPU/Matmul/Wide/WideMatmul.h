// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels of matmuls by instructions that read both operands from shared memory: wgmma and tcgen05. Both are
// persistent kernels: one thread loads tiles by TMA, others multiply them, or start the multiplication, and
// write the results. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_WIDE_WIDEMATMUL_H
#define FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_WIDE_WIDEMATMUL_H

#include "../Epilogue.h"
#include "MatmulStages.h"

namespace fp8 {

/// The tile that a kernel computes at a time, and how.
struct WideShape {
  TiledOperand lhs, rhs;
  int64_t stages;
  /// Whether every 128 elements along K are summed from zero and added in f32.
  bool split = false;
  ScalesAlongK scales = ScalesAlongK::none;
  /// Whether sums of 128 elements are multiplied by the scale of the kernel's lhs first.
  bool scalesRowsFirst = true;
  /// Whether packed scales of lhs are loaded row by row: tiles begin where groups do.
  bool loadsRowsOfScales = false;

  /// Whether sums of 128 elements are taken one by one.
  bool hasParts() const { return split || scales == ScalesAlongK::blocks; }
  /// The shared memory of `count` stages, and of all.
  int64_t sharedBytes(int64_t count) const { return TileStages::sharedBytes(lhs, rhs, count, scales); }
  int64_t sharedBytes() const { return sharedBytes(stages); }
};

/// The operands and results of the kernel. Sizes are known at run time: one kernel serves all of them.
struct WideOperands {
  std::array<TensorMap, 2> maps;      ///< of lhs and rhs, with the boxes of the shape
  Expr batches, rows, columns, depth; ///< i32, the last in elements
  Epilogue &epilogue;
  /// Whether the rows of the kernel are the columns of the matmul, and its lhs the matmul's rhs.
  bool isSwapped = false;
  std::optional<GroupArguments> groups = {}; ///< of a grouped matmul

  ResultTiles getTiles(const WideShape &shape) const {
    return {batches,
            rows,
            columns,
            depth,
            shape.lhs.rows,
            shape.rhs.rows,
            shape.lhs.boxWidth(),
            groups ? &*groups : nullptr};
  }
  /// The rows and columns of the kernel as positions of the epilogue, and the sum at one of each. Rows from
  /// `end` on do not exist, even if the matmul has them.
  Epilogue::Position atRow(KernelBuilder &b, Expr row, Expr end) const {
    return isSwapped ? epilogue.atColumn(b, row, end) : epilogue.atRow(b, row, end);
  }
  Epilogue::Position atColumn(KernelBuilder &b, Expr column) const {
    return isSwapped ? epilogue.atRow(b, column, columns) : epilogue.atColumn(b, column, columns);
  }
  /// The scales along K of a row of the kernel's lhs (0) or rhs (1), or of the 128 rows whose packed scales
  /// are loaded together; a row that does not exist stands for the last.
  std::pair<mlir::Value, Expr> findScales(KernelBuilder &b, const WideShape &shape, unsigned operand,
                                          Expr batch, Expr index) const {
    Expr row = atMost(index, (operand == 0 ? rows : columns) - 1);
    if (shape.scales == ScalesAlongK::packed && !(shape.loadsRowsOfScales && operand == 0))
      row = row / kPackedRows * kPackedRows;
    auto [first, stride] = epilogue.findScales(b, (operand == 0) != isSwapped, batch, row);
    return {first, stride};
  }
  /// Computes the results of neighbouring columns of the kernel, as Epilogue::compute().
  void compute(KernelBuilder &b, Epilogue::Position &row, llvm::MutableArrayRef<Epilogue::Position> columns,
               llvm::ArrayRef<mlir::Value> sums) const {
    if (!isSwapped)
      return epilogue.compute(b, row, columns, sums);
    for (auto [column, sum] : llvm::zip_equal(columns, sums))
      epilogue.compute(b, column, row, sum);
  }
};

// A kernel that computes 128 rows at a time by wgmma: its threads and its code.
inline constexpr int64_t kWgmmaThreads = 384;
/// The parts in which such a kernel adds up a column of the matmul, per row of tiles, or per column of tiles
/// if it is swapped.
int64_t countWgmmaParts(bool isSwapped);
void buildWgmmaMatmul(KernelBuilder &b, const WideShape &shape, WideOperands operands);

// The same by tcgen05, and the shared memory that it needs beside that of the shape.
inline constexpr int64_t kTcgen05Threads = 256, kTcgen05SharedBytes = 5 * TileStages::kBarrierBytes;
int64_t countTcgen05Parts(const WideShape &shape, bool isSwapped);
void buildTcgen05Matmul(KernelBuilder &b, const WideShape &shape, WideOperands operands);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_WIDE_WIDEMATMUL_H
