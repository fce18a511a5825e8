// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the blocks of a tile are in shared memory: no two lanes of a warp meet in a bank.

#include "BlockCastTable.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp8;

/// Places of 4 columns: 16 of the first halves of chunks, and 4 so that the second halves are in other banks.
static constexpr int64_t kHalf = 20;

BlockTable::BlockTable(KernelBuilder &b, const TileScaling &scaling, unsigned number)
    : b(b), rows(scaling.rows), columns(scaling.columns) {
  int64_t size = kTile / getPartRows() * getPitch();
  memory = b.staticShared(MemRefType::get({size}, b.getF32Type()), number);
}

/// Rows of several parts begin in different banks. LLVM fills gaps of one element between loads, so that two
/// places side by side have none.
int64_t BlockTable::getPitch() const {
  if (columns == 1)
    return (kHalf + 16) * 4;
  return countColumns() + (rows >= kPartRows && countColumns() >= 4 ? 1 : 0);
}

/// With a block per column, columns 0 to 3 of each chunk come before columns 4 to 7, so that the 16 bytes of
/// 8 lanes are adjacent, and blocks above each other are in different banks.
Expr BlockTable::find(Expr part, Expr chunk, Expr j) const {
  if (columns == 1)
    return part * getPitch() + ((j / 4 * kHalf + chunk) ^ (part / 4 & 3)) * 4 + j % 4;
  Expr inRow = columns >= kChunk ? chunk / (columns / kChunk) : chunk * countOfThread() + j;
  return part * getPitch() + inRow;
}

Value BlockTable::toIndex(Expr value) const {
  return arith::IndexCastUIOp::create(b, b.getIndexType(), value.getValue());
}

Expr BlockTable::load(Expr place) const { return b.expr(memref::LoadOp::create(b, memory, toIndex(place))); }

void BlockTable::store(Expr value, Expr place) const {
  memref::StoreOp::create(b, value.getValue(), memory, toIndex(place));
}

SmallVector<Expr> BlockTable::loadFour(Expr place) const {
  Value vector =
      vector::LoadOp::create(b, VectorType::get(4, b.getF32Type()), memory, ValueRange{toIndex(place)},
                             /*nontemporal=*/false, llvm::MaybeAlign(16));
  SmallVector<Expr> values;
  for (int64_t i = 0; i < 4; ++i)
    values.push_back(b.expr(vector::ExtractOp::create(b, vector, i)));
  return values;
}

void BlockTable::storeFour(ArrayRef<Expr> values, Expr place) const {
  auto elements = llvm::map_to_vector(values, [](Expr value) { return value.getValue(); });
  Value vector = vector::FromElementsOp::create(b, VectorType::get(4, b.getF32Type()), elements);
  vector::StoreOp::create(b, vector, memory, ValueRange{toIndex(place)}, /*nontemporal=*/false,
                          llvm::MaybeAlign(16));
}
