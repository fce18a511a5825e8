// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel that reads a tensor once, tile by tile: runs the fused code of a quantize or an amax, and writes
// FP8 rows and columns, scale_inv, amax and extra results. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_TILEKERNEL_H
#define FP8_LIB_CONVERSION_FP8TOGPU_TILEKERNEL_H

#include "Lowering.h"
#include "TileOperands.h"
#include "fp8/Dialect/FP8/IR/ElementRegion.h"

namespace fp8 {

/// An extra result of the region: stored per element, or summed over all rows and batches; `operand` of a sum
/// is at the columns.
struct TileExtra {
  TileOperand operand;
  bool isSum;
};

/// A memref of one element; null if the kernel has none.
struct TileScalar {
  explicit operator bool() const { return static_cast<bool>(memref); }
  mlir::Value memref;
  unsigned argument = 0;
};

/// The parts of one kernel of tiles. Operands that are null or nullopt are left out of the kernel.
struct TileWork {
  /// Describes `op`, a quantize or an amax: region, inputs, extra results and amax. `batchDims` as in
  /// TileSpace. Returns nullopt, after a remark at `op`, if the kernel cannot compute it.
  static std::optional<TileWork> create(mlir::Operation *op, unsigned batchDims);

  TileWork(mlir::Location loc, const TileSpace &space) : loc(loc), space(space) {}

  mlir::Location loc;
  TileSpace space;
  std::optional<ElementRegion> region; ///< without one, the tensor is the only input
  llvm::SmallVector<TileOperand> inputs;
  llvm::SmallVector<TileExtra> extras;
  // Values that the region uses from outside: constants, which the kernel copies, and indices with the
  // numbers of their arguments.
  llvm::SmallVector<mlir::Value> constants;
  llvm::SmallVector<std::pair<mlir::Value, unsigned>> indices;
  /// FP8 results: one whose rows, and one whose columns have adjacent elements.
  std::optional<TileOperand> data, columns;
  /// Without a scale, elements are bytes already.
  TileScalar scale, scaleInv;
  TileScalar amax;
};

/// Says at `op` why it has no kernel of its own and is left for convert-fp8-to-linalg.
void remarkGeneric(mlir::Operation *op, const llvm::Twine &reason);

/// Writes the code of the kernel.
void buildTileKernel(KernelBuilder &b, const TileWork &work);

/// Launches the kernel of `work` before the insertion point; `name` is its name without the site. The kernel
/// takes the maximum of its amax and the memory at `work.amax`, which is cleared before (AmaxBuffers). Sums
/// of several rows of tiles are added by another launch.
void launchTiles(mlir::OpBuilder &builder, LoweringContext &context, TileWork &work, llvm::StringRef name);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_TILEKERNEL_H
