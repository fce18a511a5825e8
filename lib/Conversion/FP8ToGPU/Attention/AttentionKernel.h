// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels of attention by mma.sync and wgmma. Private to the library.
//
// A block has a tile of own rows, 16 of them for each warp, and streams the other rows past it, a step of
// them at a time: for the output and the gradient of the query, own rows are queries and keys are streamed;
// for the gradients of key and value it is the other way round. A step multiplies the own rows with the
// streamed ones, which gives the scores of own row × streamed row (and their gradients), runs the program's
// code on each, and multiplies what it yields with the streamed rows. The layout in which mma.sync leaves its
// sums is that of its left operand, so scores stay in registers (T. Dao, "FlashAttention-2", 2023). In the
// kernels for key and value the scores are transposed, so that those for both gradients do, too. The gradient
// of the query has a kernel of its own: sums are in the same order in every run.
//
// On chips with wgmma the matmuls are by that instruction, which reads the streamed rows, and own rows of
// scores, from shared memory itself; what threads hold is the same.
//
// Shared memory: the tile of own rows, then two stages of streamed rows, which cp.async fills one step ahead,
// or one stage where a block has one step or no room for two. A row takes an odd number of chunks of 16
// bytes, so that the same chunk of 8 neighbouring rows is in different banks; for wgmma rows have 128 bytes,
// and chunk c of row r is at place c ^ r % 8.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_ATTENTION_ATTENTIONKERNEL_H
#define FP8_LIB_CONVERSION_FP8TOGPU_ATTENTION_ATTENTIONKERNEL_H

#include "ScoreCode.h"

namespace fp8 {

/// A matrix of sums over the streamed rows: of value `code` that the code yields, times a streamed operand.
struct AttentionResult {
  unsigned out;      ///< the number of the result
  unsigned code;     ///< 0: P, 1: D, from 2 on those of further results; of the output 0
  unsigned streamed; ///< the number of the streamed operand; not read where the plan is of scores
};

/// A number of each own row: the sum over the streamed rows of value `code` that the code yields.
struct AttentionRowSum {
  unsigned out; ///< the number of the result
  unsigned code;
};

/// The results of a kernel, and how it divides the work.
struct AttentionPlan {
  /// Own rows are keys.
  bool isTransposed = false;
  /// Numbers of the operands with own rows and of those that are streamed. The first of both are multiplied
  /// over the depth, which gives scores, the second, if there are two own ones, over the width, which gives
  /// gradients.
  llvm::SmallVector<unsigned> own, streamed;
  llvm::SmallVector<AttentionResult> results;
  llvm::SmallVector<AttentionRowSum> rowSums; ///< of no forward kernel
  /// Outer dimensions besides the queries: one block for each index, and those that a block sums over.
  llvm::SmallVector<unsigned> gridDims, loopDims;
  int64_t warps = 8;  ///< 16 own rows each
  int64_t step = 64;  ///< streamed rows at a time, a multiple of 16
  int64_t stages = 2; ///< steps of streamed rows that shared memory has at once; 1 where `isOfScores`
  /// The own rows stay in registers as the left operand of the scores.
  bool keepsOwn = false;
  bool isForward = false, isBaseTwo = false, zeroEmptyRows = false;
  /// The one result is not multiplied with streamed rows: a block has one step of them, and sums what the
  /// code yields over the indices of `loopDims`.
  bool isOfScores = false;
  bool usesWgmma = false;             ///< four warps multiply together; a multiple of four
  mlir::Region *statistics = nullptr; ///< of the forward operation, if it has some
  std::optional<unsigned> sink;       ///< the number of the input that is one

  int64_t countRows() const { return warps * 16; }
  int64_t countThreads() const { return warps * 32; }
};

/// Writes the kernel of a plan.
class AttentionKernel {
public:
  AttentionKernel(KernelBuilder &b, const AttentionView &view, const AttentionPlan &plan);

  /// Returns the bytes of shared memory of a block.
  static int64_t countShared(const AttentionView &view, const AttentionPlan &plan);
  void build();

private:
  using Values = llvm::SmallVector<mlir::Value>;
  static constexpr int64_t kChunk = 16;

  /// Rows of an operand in shared memory.
  struct Tile {
    unsigned operand; ///< number in `view.operands`
    unsigned rowDim, columnDim;
    int64_t rows, columns; ///< columns as in memory
    int64_t start;         ///< bytes in shared memory; of streamed rows those of the first stage
    bool isSwizzled;       ///< as wgmma reads it: blocks of 64 columns, of which a row is 128 bytes
    int64_t paddedColumns() const { return llvm::alignTo(columns, 16); }
    int64_t countChunks() const { return llvm::alignTo(columns, isSwizzled ? 64 : 16) / 8; }
    int64_t blockBytes() const { return rows * 128; } ///< of a block of 64 columns
    int64_t pitch() const { return isSwizzled ? 128 : (countChunks() | 1) * kChunk; }
    int64_t countBytes() const { return isSwizzled ? countChunks() / 8 * blockBytes() : rows * pitch(); }
    /// The place of a chunk.
    Expr place(Expr row, Expr chunk) const {
      if (!isSwizzled)
        return row * pitch() + chunk * kChunk;
      return chunk / 8 * blockBytes() + row * pitch() + (chunk % 8 ^ row % 8) * kChunk;
    }
  };
  struct Tiles {
    llvm::SmallVector<Tile> own, streamed;
    int64_t inputsStart = 0; ///< of the first stage: 4 bytes for each streamed row of each streamed input
    int64_t stageBytes = 0, totalBytes = 0;
  };
  static Tiles arrange(const AttentionView &view, const AttentionPlan &plan);

  // AttentionKernel.cpp: the walk over tiles.
  void findTile();
  Values sumOver(const Indices &outer, mlir::ValueRange carried);
  void waitForCopies();
  Values runStep(Expr step, mlir::ValueRange carried);
  Values computeStep(Expr step, mlir::ValueRange carried);
  std::pair<Expr, Expr> findSteps();
  Expr isLimited();
  void store(llvm::ArrayRef<mlir::Value> sums);
  void storeRow(const AttentionResult &result, unsigned row, llvm::ArrayRef<mlir::Value> sums);
  void storeScores(const AttentionResult &result, unsigned row, llvm::ArrayRef<mlir::Value> sums);
  void storeRowSum(const AttentionRowSum &rowSum, unsigned row, Expr sum);
  Values begin();

  // AttentionTiles.cpp: shared memory and matmuls.
  void copy(const Tile &tile, mlir::Value shared, Expr firstRow);
  void copyInputs(Expr step, mlir::Value target);
  mlir::Value loadInput(unsigned input, unsigned row, Expr stage);
  void fill(Expr step);
  mlir::Value address(const Tile &tile, Expr start, int64_t row, int64_t chunk);
  Values multiplyScores(unsigned product, Expr stage);
  void accumulate(const AttentionResult &result, llvm::ArrayRef<mlir::Value> values, Expr stage,
                  llvm::MutableArrayRef<mlir::Value> sums);
  void loadOwn();
  // AttentionGroups.cpp: the same by wgmma.
  llvm::SmallVector<Values> multiplyGroupScores(Expr stage);
  void accumulateByGroup(llvm::ArrayRef<Values> values, Expr stage, llvm::MutableArrayRef<mlir::Value> sums);
  mlir::Value pack(llvm::ArrayRef<mlir::Value> values, int64_t cell);

  // AttentionScores.cpp: the code of scores, and the running softmax.
  llvm::SmallVector<Values> runCode(Expr step, llvm::ArrayRef<Values> products);
  llvm::SmallVector<Values> runCells(Expr firstStreamed, llvm::ArrayRef<Values> products, bool inside);
  Values normalize(llvm::ArrayRef<mlir::Value> scores, llvm::MutableArrayRef<mlir::Value> carried);
  void addToRowSums(llvm::ArrayRef<Values> values, llvm::MutableArrayRef<mlir::Value> sums);
  void scale(llvm::MutableArrayRef<mlir::Value> sums, llvm::ArrayRef<Expr> factors);
  void finish(llvm::MutableArrayRef<mlir::Value> carried);
  void storeStatistics(unsigned row, Expr largest, Expr sum);

  /// Returns the numbers of the code's values that are needed: a factor that is always 1 is not.
  llvm::SmallVector<unsigned> findNeededValues() const;
  /// Returns the number of sums of a result in a thread: 4 for 8 columns.
  int64_t countSums(const AttentionResult &result) const {
    return plan.isOfScores ? plan.step / 2 : tiles.streamed[result.streamed].paddedColumns() / 8 * 4;
  }
  Expr ownSize() { return view.sizes[ownDim].get(b, 32); }
  Expr streamedSize() { return view.sizes[streamedDim].get(b, 32); }
  /// The index of the thread's own row `row`, 0 or 1: of the layout of mma.sync's sums.
  Expr ownRow(unsigned row) { return firstOwn + b.warp() * 16 + b.lane() / 4 + int64_t(row) * 8; }
  bool hasTail() const {
    const KernelNumber &size = view.sizes[streamedDim];
    return !size.isKnown() || size.known % plan.step != 0;
  }

  KernelBuilder &b;
  const AttentionView &view;
  const AttentionPlan &plan;
  unsigned ownDim, streamedDim;
  mlir::Type type; ///< of the operands
  Tiles tiles;
  mlir::Value shared;
  ScoreCode code;
  // Where the block is.
  Expr firstOwn = 0;
  Expr onlyStep = 0; ///< of results of scores
  Indices outer;
  Expr stepsEnd = 0;
  llvm::SmallVector<Values> ownWords; ///< the left operands of the scores, for each 16 of the depth; if kept
};

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_ATTENTION_ATTENTIONKERNEL_H
