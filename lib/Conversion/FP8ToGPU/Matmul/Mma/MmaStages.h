// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The operands of a matmul by mma.sync on their way through shared memory: a ring of stages that cp.async
// fills and ldmatrix empties. Private to the library.
//
// A stage: the rows of the left operand, then those of the right one, 64 bytes each, in chunks of 16 bytes.
// Chunk c of row r is at place c ^ (r / 2) % 4, of two chunks at c ^ (r / 4) % 2: neither cp.async nor
// ldmatrix has bank conflicts. A 16-bit operand may be [K, rows] in memory, and is in shared memory too:
// lines of all rows for each of 32 elements along K, chunk c of line k at place c ^ k % 8; ldmatrix
// transposes it. Scales along K follow the operands, a word for each row.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_MMA_MMASTAGES_H
#define FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_MMA_MMASTAGES_H

#include "../Epilogue.h"
#include "../MatmulConfig.h"

namespace fp8 {

/// The properties of an operand that decide the code of a kernel.
struct MmaOperand {
  mlir::Type type;
  bool isTransposed; ///< [K, rows] in memory
  int64_t rows;      ///< of the tile
  int64_t start;     ///< bytes in a stage
};

/// An operand as the loads see it.
struct MmaSide {
  const MmaOperand &operand;
  mlir::Value pointer; ///< of the batch, in global memory
  Expr first, count;   ///< the first row of the tile; all rows
  Expr pitch;          ///< bytes, i64
  Expr kBytes;         ///< bytes along K
  /// The scales along K that this thread copies, if there are any: of the row with its number.
  std::optional<Epilogue::LineOfScales> scales;
};

/// The stages of one kernel.
class MmaStages {
public:
  /// The bytes of a chunk.
  static constexpr int64_t kChunk = 16;

  MmaStages(KernelBuilder &b, const MatmulConfig &config, const MatmulView &matmul, int64_t threads)
      : b(b), config(config), matmul(matmul), threads(threads), shared(b.dynamicShared()) {}

  /// Returns the bytes of a stage.
  static int64_t countBytes(const MatmulConfig &config, const MatmulView &matmul);

  /// The threads copy a step of both operands, one chunk each at a time; zeros beyond the last row and the
  /// last byte of K. One group of copies, an empty one too.
  void fill(llvm::ArrayRef<MmaSide> sides, Expr step);

  /// Waits until `step` is in shared memory and the stage before it is free; starts the copies of a later
  /// one.
  void waitFor(llvm::ArrayRef<MmaSide> sides, Expr step);

  /// Loads the scale of a row of the tile.
  mlir::Value loadScale(const MmaOperand &operand, Expr step, Expr row, mlir::Type type);

  /// Loads 16 rows of 32 bytes from `row` on, as four matrices: the upper and the lower rows of the first
  /// chunk along K, then of the second.
  llvm::SmallVector<mlir::Value> loadMatrix(const MmaOperand &operand, Expr step, Expr row, int64_t chunk);

private:
  /// A copy of up to 16 bytes to shared memory.
  struct Copy {
    Expr size, offset; ///< bytes, the offset from the operand's pointer as i64
    Expr target;       ///< bytes from the operand's start in the stage
  };
  Copy copyRow(const MmaSide &side, Expr step, Expr number);
  Copy copyLine(const MmaSide &side, Expr step, Expr number);
  void copyScales(const MmaSide &side, Expr step);

  mlir::Value stage(Expr step) { return b.at(shared, step % config.stages * countBytes(config, matmul)); }
  /// The distance of a chunk's place from the row's or line's start.
  Expr place(Expr chunk, Expr row) {
    int64_t chunks = config.tileKBytes / kChunk;
    return (chunk ^ row / (8 / chunks) % chunks) * kChunk;
  }
  Expr placeInLine(Expr chunk, Expr line) { return (chunk ^ line % 8) * kChunk; }
  /// The place in the stage of the scale of a row.
  Expr placeOfScale(const MmaOperand &operand, Expr row) {
    return row * 4 + (config.stageBytes() + (operand.start ? config.tileM * 4 : 0));
  }

  KernelBuilder &b;
  const MatmulConfig &config;
  const MatmulView &matmul;
  int64_t threads;
  mlir::Value shared;
};

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_MMA_MMASTAGES_H
