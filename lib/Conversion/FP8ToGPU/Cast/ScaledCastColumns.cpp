// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The columns of a tile: words of four rows go through shared memory, where no two lanes of a warp meet in a
// bank, and leave as 16 bytes of a column.

#include "../Kernel/ElementAccess.h"
#include "ScaledCastKernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp8;

/// Writes 4 rows of 8 bytes to shared memory as 8 words, one per column.
void TileKernel::storeWords(Expr group, ArrayRef<Words> rows) {
  Expr place = group ^ chunk * 2;
  for (unsigned half = 0; half < 2; ++half) {
    SmallVector<Expr, kGroup> words;
    for (const Words &row : rows)
      words.push_back(b.expr(row[half]));
    words = b.transposeBytes(words);
    for (auto [j, word] : llvm::enumerate(words))
      memref::StoreOp::create(b, word.getValue(), tile,
                              ValueRange{toIndex(chunk * kChunk + (4 * half + j)), toIndex(place)});
  }
}

/// Writes the tile's columns in parts of 16 rows.
void TileKernel::storeColumns(const TileOperand &columns) {
  b.barrier();
  constexpr int64_t kUnits = kTile / 16; // parts of a column
  b.loop(b.number(0), b.number(kTile * kUnits / kTileThreads), {},
         [&](Expr i, ValueRange) -> SmallVector<Value> {
           Expr part = thread + i * kTileThreads, column = part / kUnits, unit = part % kUnits;
           std::optional<Expr> live = isBatch();
           if (space.rows == 0 || !space.hasMultipleOfRows(kTile))
             live = both(live, tileRow + unit * 16 < rows);
           if (space.columns == 0 || space.columns % kTile != 0)
             live = both(live, tileColumn + column < space.columns);
           when(live, [&] { storeColumnPart(columns, column, unit); });
           return {};
         });
}

void TileKernel::storeColumnPart(const TileOperand &columns, Expr column, Expr unit) {
  // Dynamic strides may be multiples of 16, and often are.
  int64_t alignment = columns.getColumnAlignment(kUnit);
  auto whole = [&]() -> SmallVector<Value> {
    Value part = loadColumnPart(column, unit);
    if (alignment % 4 != 0)
      part = vector::BitCastOp::create(b, VectorType::get(16, b.getI8Type()), part);
    LLVM::StoreOp::create(b, part, getAddress(columns, tileRow + unit * 16, tileColumn + column), alignment);
    return {};
  };
  auto some = [&]() -> SmallVector<Value> {
    return storeColumnBytes(columns, column, unit), SmallVector<Value>();
  };
  std::optional<Expr> isWhole = areMultiplesOf16(b, columns);
  if (!space.hasMultipleOfRows(16))
    isWhole = both(isWhole, tileRow + unit * 16 < rowsLess(15));
  if (isWhole)
    ifElse(*isWhole, whole, some);
  else
    whole();
}

/// Reads 16 rows of a column from shared memory. Its four words are adjacent, the two halves exchanged where
/// the column's chunk is odd.
Value TileKernel::loadColumnPart(Expr column, Expr unit) {
  Expr chunkOfColumn = column / kChunk;
  Expr place = (unit ^ chunkOfColumn / 2) * 4;
  auto type = VectorType::get(4, b.getI32Type());
  Value words = vector::LoadOp::create(b, type, tile, ValueRange{toIndex(column), toIndex(place)},
                                       /*nontemporal=*/false, llvm::MaybeAlign(16));
  Value exchanged = vector::ShuffleOp::create(b, words, words, ArrayRef<int64_t>{2, 3, 0, 1});
  Expr even = chunkOfColumn % 2 == 0;
  return arith::SelectOp::create(b, even.getValue(), words, exchanged);
}

/// Writes those of 16 rows of a column that are in the tensor.
void TileKernel::storeColumnBytes(const TileOperand &columns, Expr column, Expr unit) {
  for (int64_t w = 0; w < 4; ++w) {
    Expr group = unit * 4 + w, firstRow = tileRow + group * kGroup;
    b.when(firstRow < rows, [&] {
      Expr place = group ^ column / kChunk * 2;
      Expr word = b.expr(memref::LoadOp::create(b, tile, ValueRange{toIndex(column), toIndex(place)}));
      for (int64_t r = 0; r < kGroup; ++r)
        when(isRow(firstRow + r), [&] {
          Value byte = arith::TruncIOp::create(b, b.getI8Type(), (word >> 8 * r).getValue());
          b.store(b.expr(byte), getAddress(columns, firstRow + r, tileColumn + column));
        });
    });
  }
}
