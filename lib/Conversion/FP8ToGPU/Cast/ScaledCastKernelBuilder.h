// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The builder of a kernel of tiles, whose parts lie in several files. Private to them.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_CAST_SCALEDCASTKERNELBUILDER_H
#define FP8_LIB_CONVERSION_FP8TOGPU_CAST_SCALEDCASTKERNELBUILDER_H

#include "ScaledCastKernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

namespace fp8 {

inline constexpr int64_t kChunk = 8; ///< columns of a thread
inline constexpr int64_t kGroup = 4; ///< rows of a group
inline constexpr int64_t kUnit = 16; ///< rows that one store writes to a column
inline constexpr int64_t kChunks = kTile / kChunk;
inline constexpr int64_t kGroups = kTile / kGroup;
inline constexpr int64_t kTileThreads = 256;
inline constexpr int64_t kGroupsAtOnce = kTileThreads / kChunks;

/// Writes the code of one kernel.
class TileKernel {
public:
  TileKernel(KernelBuilder &b, const TileWork &work);
  void build();

protected:
  /// 8 elements of a row, as the region reads or yields them.
  using Chunk = llvm::SmallVector<mlir::Value, 8>;
  /// One 32-bit word per 4 columns.
  using Words = std::array<mlir::Value, 2>;

  void writeScaleInv();
  void computeGroup(Expr group, llvm::SmallVector<mlir::Value> &carried);
  void computeRow(Expr row, llvm::ArrayRef<Chunk> loaded, llvm::MutableArrayRef<mlir::Value> carried,
                  Words &words);
  std::optional<Expr> isGroup(Expr firstRow) const;
  llvm::SmallVector<Chunk> loadRow(Expr row);
  void storeExtras(Expr row, llvm::ArrayRef<Chunk> yielded, llvm::MutableArrayRef<mlir::Value> sums);
  unsigned countSums() const;
  void addToSums(Expr row, llvm::ArrayRef<mlir::Value> values, llvm::MutableArrayRef<mlir::Value> sums);
  llvm::SmallVector<Chunk> runRegion(Expr row, llvm::ArrayRef<Chunk> loaded);
  Chunk widenChunk(const Chunk &chunk);
  Chunk toStorage(const Chunk &chunk);
  Words packBytes(const Chunk &bytes);
  void storeWordsOfRow(const TileOperand &data, Expr row, const Words &words);
  mlir::Value countMagnitude(mlir::Value amax, mlir::Value value, std::optional<Expr> live);
  Words encode(Expr row, llvm::ArrayRef<mlir::Value> wide, llvm::ArrayRef<Expr> scales,
               mlir::FloatType format);
  void storeWords(Expr group, llvm::ArrayRef<Words> rows);
  void reduceAmax(mlir::Value amax);
  void storeSums(llvm::ArrayRef<mlir::Value> sums);
  void storeColumns(const TileOperand &columns);
  void storeColumnPart(const TileOperand &columns, Expr tileColumn, Expr unit);
  mlir::Value loadColumnPart(Expr tileColumn, Expr unit);
  void storeColumnBytes(const TileOperand &columns, Expr tileColumn, Expr unit);

  // Elements of operands.
  mlir::Value getAddress(const TileOperand &operand, Expr row, Expr column);
  Chunk loadChunk(const TileOperand &operand, Expr row);
  Chunk loadVector(const TileOperand &operand, Expr row);
  Chunk loadScalars(const TileOperand &operand, Expr row);
  void storeChunk(const TileOperand &operand, Expr row, llvm::ArrayRef<mlir::Value> stored,
                  mlir::Value vector);
  llvm::SmallVector<mlir::Value> getDims(Expr row, Expr column);

  /// Runs `body` where `condition` is true; nullopt is true everywhere.
  void when(std::optional<Expr> condition, llvm::function_ref<void()> body);
  llvm::SmallVector<mlir::Value> ifElse(Expr condition,
                                        llvm::function_ref<llvm::SmallVector<mlir::Value>()> yes,
                                        llvm::function_ref<llvm::SmallVector<mlir::Value>()> no);
  /// Returns the number of rows less `count`.
  Expr rowsLess(int64_t count) const;
  /// Whether the batch is in the tensor; nullopt if all are.
  std::optional<Expr> isBatch() const;
  /// Whether a row of a group, or a column of a chunk, of which some are in the tensor, is in it.
  std::optional<Expr> isRow(Expr row) const;
  std::optional<Expr> isColumn(Expr column) const;

  mlir::Value toIndex(Expr value) {
    return mlir::arith::IndexCastUIOp::create(b, b.getIndexType(), value.getValue());
  }
  mlir::Value pointer(const TileOperand &operand) { return pointers[operand.argument]; }

  KernelBuilder &b;
  const TileWork &work;
  const TileSpace &space;
  llvm::SmallVector<mlir::Value> pointers; ///< per argument
  mlir::IRMapping captured;
  Expr rows = 0; ///< of a batch
  Expr thread = 0, chunk = 0, firstColumn = 0, tileRow = 0, tileColumn = 0, batch = 0;
  std::optional<Expr> scale;
  std::optional<ElementRandom> random; ///< of a cast that rounds stochastically
  mlir::Value tile;                    ///< shared memory for the columns
};

/// Returns the values of both conditions; nullopt is true everywhere.
inline std::optional<Expr> both(std::optional<Expr> a, std::optional<Expr> b) {
  return a && b ? std::optional<Expr>(*a & *b) : a ? a : b;
}

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_CAST_SCALEDCASTKERNELBUILDER_H
