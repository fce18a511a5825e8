// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles of the operands of a matmul on their way through shared memory: a ring of stages that one thread
// fills by TMA and others empty. Private to the library.
//
// A stage holds 128 bytes along K of both operands, with the 128-byte swizzle of TMA, in which wgmma and
// tcgen05 read operands. Two memory barriers per stage tell that its tiles have arrived (full) and that
// nobody reads them any more (empty).

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_WIDE_MATMULSTAGES_H
#define FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_WIDE_MATMULSTAGES_H

#include "MatmulLoop.h"

namespace fp8 {

/// The bytes along K of a stage, and of one instruction.
inline constexpr int64_t kStageDepthBytes = 128, kStepDepthBytes = 32;
inline constexpr int64_t kStepsPerStage = kStageDepthBytes / kStepDepthBytes;

/// The tiles of one operand: `rows` of M or N. The operand is [batch, rows, K] in memory, or with
/// `isTransposed` [batch, K, rows].
struct TiledOperand {
  mlir::Type element;
  int64_t rows;
  bool isTransposed = false;
  bool hasInnerBatches = false; ///< see MatmulOperand

  int64_t elementBytes() const { return element.getIntOrFloatBitWidth() / 8; }
  /// The elements in 128 bytes, a row of a box.
  int64_t boxWidth() const { return kStageDepthBytes / elementBytes(); }
  /// The boxes that fill a tile; those of a transposed tile are 128 bytes along M or N.
  int64_t countBoxes() const { return isTransposed ? rows / boxWidth() : 1; }
  int64_t tileBytes() const { return rows * kStageDepthBytes; }
  int64_t boxBytes() const { return tileBytes() / countBoxes(); }
  /// The box of the tensor map, innermost dimension first.
  llvm::SmallVector<int64_t> getBox() const {
    llvm::SmallVector<int64_t> box = {boxWidth(), isTransposed ? boxWidth() : rows};
    box.append(hasInnerBatches ? 2 : 1, 1);
    return box;
  }
  /// The distance in shared memory between two steps along K.
  int64_t stepBytes() const {
    return isTransposed ? kStepDepthBytes / elementBytes() * kStageDepthBytes : kStepDepthBytes;
  }
  /// The matrix descriptor of a tile, without its address and the bits that only tcgen05 has.
  uint64_t descriptorBits() const;
};

/// The tensor map of an operand (!llvm.ptr), of three dimensions; of four where inner batches, whose number
/// is an i32, have a distance of their own.
struct TensorMap {
  mlir::Value map;
  std::optional<Expr> innerBatches;
  bool hasBatches = true; ///< else it is one matrix, that of all groups

  /// Returns the coordinates of a batch, innermost first.
  llvm::SmallVector<mlir::Value> findBatch(Expr batch) const;
};

/// The scales of a stage, behind the tiles of all stages: f32, one for each row of both tiles, or packed, the
/// 512 bytes of each 128 rows.
struct StageScales {
  ScalesAlongK kind = ScalesAlongK::none;
  int64_t lhsBytes = 0, rhsBytes = 0;

  StageScales() = default;
  StageScales(ScalesAlongK kind, const TiledOperand &lhs, const TiledOperand &rhs)
      : kind(kind), lhsBytes(countBytes(kind, lhs.rows)), rhsBytes(countBytes(kind, rhs.rows)) {}
  int64_t bytes() const { return lhsBytes + rhsBytes; }

private:
  static int64_t countBytes(ScalesAlongK kind, int64_t rows) {
    return kind == ScalesAlongK::blocks   ? rows * 4
           : kind == ScalesAlongK::packed ? llvm::divideCeil(rows, kPackedRows) * kPackedBytes
                                          : 0;
  }
};

/// Finds the scales of row `index` of operand 0 or 1, as Epilogue::findScales: the address of the first, and
/// the distance along K. A row that does not exist stands for the last one.
using FindScales = llvm::function_ref<std::pair<mlir::Value, Expr>(unsigned operand, Expr batch, Expr index)>;

/// The ring of stages. Stages are numbered on and on, by an i32: the number modulo `count` is the place.
class TileStages {
public:
  /// With `loadsRowsOfScales`, packed scales of lhs are loaded row by row.
  TileStages(KernelBuilder &b, TiledOperand lhs, TiledOperand rhs, int64_t count, ScalesAlongK scales,
             bool loadsRowsOfScales = false)
      : b(b), operands{lhs, rhs}, count(count), scales(scales, lhs, rhs),
        loadsRowsOfScales(loadsRowsOfScales), shared(b.dynamicShared()) {}

  /// The bytes of the tiles of one stage, and those of all tiles and barriers.
  static int64_t stageBytes(const TiledOperand &lhs, const TiledOperand &rhs) {
    return lhs.tileBytes() + rhs.tileBytes();
  }
  static int64_t sharedBytes(const TiledOperand &lhs, const TiledOperand &rhs, int64_t count,
                             ScalesAlongK scales) {
    return count * (stageBytes(lhs, rhs) + StageScales(scales, lhs, rhs).bytes() + 2 * kBarrierBytes);
  }

  /// Initializes the barriers, by one thread: a stage is empty when it has been released `consumers` times.
  void buildInit(int64_t consumers);
  /// Fills stages for all tiles of `tiles`, by one thread: one for each step of a tile. Packed scales are
  /// loaded too, those that are loaded row by row and f32 scales by other warps.
  void buildProducer(const ResultTiles &tiles, const std::array<TensorMap, 2> &maps, FindScales findScales);
  /// Loads the scales of rows of operand 0 or 1 into the same stages, by all lanes of one warp.
  void buildScaleProducer(const ResultTiles &tiles, unsigned operand, FindScales findScales);
  /// Returns the address of the scale of a row of operand 0 or 1, or of all its packed scales for row 0.
  mlir::Value scaleOf(Expr number, unsigned operand, Expr row);
  /// Returns the matrix descriptor (i64), without the bits that only tcgen05 has, of 128 rows of packed
  /// scales.
  Expr packedDescriptor(Expr number, unsigned operand, int64_t tile);
  void buildWaitFull(Expr number);
  mlir::Value empty(Expr number) { return barrier(number, count); }
  /// Returns the matrix descriptor (i64) of the tile of operand 0 or 1 in a stage, from `skippedBytes` on.
  Expr descriptor(Expr number, unsigned operand, Expr skippedBytes);

  static constexpr int64_t kBarrierBytes = 8;

private:
  mlir::Value full(Expr number) { return barrier(number, 0); }
  mlir::Value barrier(Expr number, int64_t first);
  Expr phase(Expr number) { return number / count & 1; }
  mlir::Value tile(Expr number, unsigned operand);
  void buildLoads(Expr number, Expr block, const TileOrigin &tile, const std::array<TensorMap, 2> &maps,
                  const std::array<llvm::SmallVector<mlir::Value>, 2> &batches);
  /// An address that moves along K, by bytes from stage to stage.
  using Line = std::pair<mlir::Value, Expr>;
  llvm::SmallVector<Line> findPackedTiles(const TileOrigin &tile, FindScales findScales);
  void buildPackedLoads(Expr number, Expr block, llvm::ArrayRef<Line> tiles);

  KernelBuilder &b;
  TiledOperand operands[2];
  int64_t count;
  StageScales scales;
  bool loadsRowsOfScales;
  mlir::Value shared;
};

/// Waits until the phase of a memory barrier with this parity (i32) is complete.
void buildWait(KernelBuilder &b, mlir::Value barrier, Expr parity);
/// Initializes a memory barrier: a phase of it is complete after `arrivals`.
void buildInitBarrier(KernelBuilder &b, mlir::Value barrier, int64_t arrivals);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_WIDE_MATMULSTAGES_H
