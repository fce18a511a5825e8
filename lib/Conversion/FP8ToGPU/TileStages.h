// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles of the operands of a product on their way through shared memory: a ring of stages that one thread
// fills by TMA and others empty. Private to the library.
//
// A stage holds 128 bytes along K of both operands, with the 128-byte swizzle of TMA, in which wgmma and
// tcgen05 read operands. Two memory barriers per stage tell that its tiles have arrived (full) and that
// nobody reads them any more (empty).

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_TILESTAGES_H
#define FP8_LIB_CONVERSION_FP8TOGPU_TILESTAGES_H

#include "TileLoop.h"

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
  bool hasInnerBatches = false; ///< see ProductOperand

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

  /// Returns the coordinates of a batch, innermost first.
  llvm::SmallVector<mlir::Value> findBatch(Expr batch) const;
};

/// The ring of stages. Stages are numbered on and on, by an i32: the number modulo `count` is the place.
class TileStages {
public:
  TileStages(KernelBuilder &b, TiledOperand lhs, TiledOperand rhs, int64_t count)
      : b(b), operands{lhs, rhs}, count(count), shared(b.dynamicShared()) {}

  /// The bytes of the tiles of one stage, and those of all tiles and barriers.
  static int64_t stageBytes(const TiledOperand &lhs, const TiledOperand &rhs) {
    return lhs.tileBytes() + rhs.tileBytes();
  }
  static int64_t sharedBytes(const TiledOperand &lhs, const TiledOperand &rhs, int64_t count) {
    return count * (stageBytes(lhs, rhs) + 2 * kBarrierBytes);
  }

  /// Initializes the barriers, by one thread: a stage is empty when it has been released `consumers` times.
  void buildInit(int64_t consumers);
  /// Fills stages for all tiles of `tiles`, by one thread: `blocks` stages for a tile.
  void buildProducer(const TileSpace &tiles, Expr blocks, const std::array<TensorMap, 2> &maps);
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

  KernelBuilder &b;
  TiledOperand operands[2];
  int64_t count;
  mlir::Value shared;
};

/// Waits until the phase of a memory barrier with this parity (i32) is complete.
void buildWait(KernelBuilder &b, mlir::Value barrier, Expr parity);
/// Initializes a memory barrier: a phase of it is complete after `arrivals`.
void buildInitBarrier(KernelBuilder &b, mlir::Value barrier, int64_t arrivals);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_TILESTAGES_H
