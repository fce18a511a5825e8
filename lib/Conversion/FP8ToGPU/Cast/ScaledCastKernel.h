// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel that reads a tensor once, tile by tile: runs the fused code of a quantize or an amax, and writes
// FP8 rows and columns, scale_inv, amax and extra results. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_CAST_SCALEDCASTKERNEL_H
#define FP8_LIB_CONVERSION_FP8TOGPU_CAST_SCALEDCASTKERNEL_H

#include "../Kernel/LoweringContext.h"
#include "../Kernel/TileOperands.h"
#include "fp8/Conversion/FP8ToLinalg/StochasticRounding.h"
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

/// The blocks of a cast that share a scale each, and what is written with these scales.
struct TileScaling {
  TileScaling(int64_t rows, int64_t columns, const TileSpace &counts)
      : rows(rows), columns(columns), counts(counts) {}

  bool isSpanning() const { return spansRows || spansColumns; }

  int64_t rows, columns; ///< of a block within a tile, powers of two
  /// Whether a block has all rows, or all columns, of its batch, and is in several tiles.
  bool spansRows = false, spansColumns = false;
  TileSpace counts;                            ///< the numbers of blocks
  llvm::SmallVector<TileOperand, 0> scaleInv;  ///< at the blocks
  std::optional<TileOperand> data, transposed; ///< as `data` and `columns` of TileWork
  /// The amaxes of spanning blocks, one f32 per block; null for other blocks.
  TileScalar amaxes;
};

/// The parts of one kernel of tiles. Operands that are null or nullopt are left out of the kernel.
struct TileWork {
  /// Describes `op`, a cast or an amax: region, inputs, extra results and amax. `batchDims` and `columnDims`
  /// as in TileSpace. Returns nullopt, after a remark at `op`, if the kernel cannot compute it.
  static std::optional<TileWork> create(mlir::Operation *op, unsigned batchDims, unsigned columnDims = 1);

  TileWork(mlir::Location loc, const TileSpace &space) : loc(loc), space(space) {}

  /// Build the product of the sizes of the batch, or of the rows, at the insertion point: a constant where
  /// they are known.
  mlir::Value buildBatches(mlir::OpBuilder &builder) const;
  mlir::Value buildRows(mlir::OpBuilder &builder) const;

  /// Copies `constants` into the kernel that `b` builds; returns what stands there for them and for
  /// `indices`.
  mlir::IRMapping capture(KernelBuilder &b) const;

  mlir::Location loc;
  TileSpace space;
  /// Memrefs and their dimensions that have the sizes of the tensor, of those that are dynamic.
  llvm::SmallVector<std::pair<mlir::Value, unsigned>, 0> sizes;
  std::optional<ElementRegion> region; ///< without one, the tensor is the only input
  llvm::SmallVector<TileOperand, 0> inputs;
  llvm::SmallVector<TileExtra, 0> extras;
  // Values that the region uses from outside: constants, which the kernel copies, and indices with the
  // numbers of their arguments.
  llvm::SmallVector<mlir::Value> constants;
  llvm::SmallVector<std::pair<mlir::Value, unsigned>> indices;
  /// FP8 results: one whose rows, and one whose columns have adjacent elements.
  std::optional<TileOperand> data, columns;
  /// Without a scale, elements are bytes already.
  TileScalar scale, scaleInv;
  TileScalar amax;
  /// Seed and step, and the stream, of a cast that rounds stochastically.
  TileScalar random;
  int64_t stream = 0;
  /// Casts with scales per block, which the recipe of `blocks` computes, in place of the five above.
  llvm::SmallVector<TileScaling, 0> scalings;
  QuantizeBlocksOp blocks;
  /// Whether the kernel computes the amaxes of spanning blocks and the extra results, or all the rest.
  bool onlyMeasures = false;
};

/// Returns whether kernels of tiles can compute `op`, a cast or an amax: elements of up to 32 bits, not in a
/// loop that becomes a kernel whole.
bool canUseTiles(mlir::Operation *op);

/// Tells at `op` why it has no kernel of its own and is left for convert-fp8-to-linalg (GenericCode.h).
void remarkGeneric(mlir::Operation *op, const llvm::Twine &reason);

/// The random bits of the elements of a cast that rounds stochastically.
class ElementRandom {
public:
  /// `pointer` is the address of seed and step, in the kernel that `b` writes.
  ElementRandom(KernelBuilder &b, const TileWork &work, mlir::Value pointer);

  /// Returns the FP8 byte, an i8, of `scaled`, an f32, at a place of the tensor.
  Expr encode(Expr scaled, mlir::FloatType format, Expr batch, Expr row, Expr column) const;

private:
  KernelBuilder &b;
  TileSpace space;
  RandomSource source;
};

/// Writes the code of the kernel.
void buildTileKernel(KernelBuilder &b, const TileWork &work);
/// Writes the code of a kernel with scales per block (TileBlocks.cpp).
void buildBlockTiles(KernelBuilder &b, const TileWork &work);

/// How the kernel of a TileWork is launched: its name without the site, blocks, threads of a block, and the
/// number of parts in which it computes sums.
struct WorkLaunch {
  llvm::StringRef name;
  mlir::Value blocks;
  int64_t threads;
  mlir::Value partsOfSums;
};

/// Launches the kernel that `build` writes before the insertion point. The kernel takes the maximum of its
/// amax and the memory at `work.amax`, which is cleared before (AmaxBuffers). The parts of sums are added by
/// another launch.
void launchWork(mlir::OpBuilder &builder, LoweringContext &context, TileWork &work, const WorkLaunch &shape,
                llvm::function_ref<void(KernelBuilder &)> build);

/// Returns whether a kernel with warps for each row can compute `work`, which has one scale per row
/// (TileRows.cpp).
bool canCastRows(const TileWork &work);
/// Launches that kernel.
void launchBlockRows(mlir::OpBuilder &builder, LoweringContext &context, TileWork &work);

/// Builds the number of blocks of so many rows of one batch; at least one. Known sizes make a constant of it.
mlir::Value countRowBlocks(mlir::OpBuilder &builder, const TileWork &work, int64_t rowsOfBlock);

/// Launches the kernel of tiles of `work`.
void launchTiles(mlir::OpBuilder &builder, LoweringContext &context, TileWork &work, llvm::StringRef name);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_CAST_SCALEDCASTKERNEL_H
