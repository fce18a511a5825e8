// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of operands in shared memory, and matmuls on them.

#include "AttentionKernel.h"

#include "../Kernel/ElementAccess.h"
#include "../Kernel/ElementPairs.h"
#include "../Kernel/MmaInstruction.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp8;

AttentionKernel::Tiles AttentionKernel::arrange(const AttentionView &view, const AttentionPlan &plan) {
  Tiles tiles;
  unsigned ownDim = plan.isTransposed ? view.keys : view.queries,
           streamedDim = plan.isTransposed ? view.queries : view.keys;
  auto add = [&](SmallVector<Tile> &list, unsigned operand, unsigned rowDim, int64_t rows) -> Tile & {
    unsigned columnDim = list.empty() ? view.depth : view.width;
    list.push_back({operand, rowDim, columnDim, rows, view.sizes[columnDim].known, tiles.totalBytes});
    return list.back();
  };
  for (unsigned operand : plan.own)
    tiles.totalBytes += add(tiles.own, operand, ownDim, plan.countRows()).countBytes();
  int64_t start = tiles.totalBytes;
  for (unsigned operand : plan.streamed)
    tiles.totalBytes += add(tiles.streamed, operand, streamedDim, plan.step).countBytes();
  tiles.inputsStart = tiles.totalBytes;
  tiles.totalBytes += llvm::alignTo(int64_t(view.inputs.size()) * plan.step * 4, 128);
  tiles.stageBytes = tiles.totalBytes - start;
  tiles.totalBytes = start + kStages * tiles.stageBytes;
  return tiles;
}

int64_t AttentionKernel::countShared(const AttentionView &view, const AttentionPlan &plan) {
  return arrange(view, plan).totalBytes;
}

/// Copies rows from `firstRow` on to the memory at `target`; zeros beyond the last row and column. Each
/// thread copies chunks of 8 elements, by cp.async where memory is aligned for that.
void AttentionKernel::copy(const Tile &tile, Value target, Expr firstRow) {
  const AttentionTensor &tensor = view.operands[tile.operand];
  Value base = getAddress(b, tensor, outer);
  Expr rowStride = tensor.getStride(tile.rowDim).get(b, 64),
       columnStride = tensor.getStride(tile.columnDim).get(b, 64), count = view.sizes[tile.rowDim].get(b, 32);
  bool isAligned = tensor.getAlignmentAlong(tile.columnDim) == kChunk;
  int64_t chunks = tile.paddedColumns() / 8, total = tile.rows * chunks;
  auto copyChunk = [&](Expr number) {
    Expr chunk = number % chunks, inTile = number / chunks, row = firstRow + inTile;
    Expr exists = row < count;
    if (tile.columns != tile.paddedColumns())
      exists = exists & (chunk * 8 < tile.columns);
    Value place = b.at(target, inTile * tile.pitch() + chunk * kChunk);
    // An address must be valid even where nothing is read.
    Expr offset = select(exists, widen(row) * rowStride + widen(chunk) * columnStride * 8, b.number(0, 64));
    if (isAligned) {
      Expr size = select(exists, b.number(kChunk), b.number(0));
      NVVM::CpAsyncOp::create(b, place, b.at(base, offset * 2), kChunk, NVVM::LoadCacheModifierKind::CG,
                              size.getValue());
      return;
    }
    Value zero = b.number(0, 16).getValue();
    auto loadElement = [&](int64_t i) {
      return b.load(b.getI16Type(), b.at(base, (offset + columnStride * double(i)) * 2)).getValue();
    };
    Values elements = b.whenElse(
        exists, [&] { return llvm::map_to_vector(llvm::seq<int64_t>(8), loadElement); }, Values(8, zero));
    b.store(b.expr(vector::FromElementsOp::create(b, VectorType::get(8, b.getI16Type()), elements)), place);
  };
  int64_t threads = plan.countThreads();
  for (int64_t i = 0; i < total; i += threads) {
    Expr number = b.thread() + i;
    if (i + threads <= total)
      copyChunk(number);
    else
      b.when(number < total, [&] { copyChunk(number); });
  }
}

/// Copies the elements that the streamed inputs have for the rows of a step, one row by each thread.
void AttentionKernel::copyInputs(Expr step, Value target) {
  Expr row = step * plan.step + b.thread();
  Indices indices = outer;
  indices[streamedDim] = atMost(row, streamedSize() - 1);
  Expr size = select(row < streamedSize(), b.number(4), b.number(0));
  for (auto [i, input] : llvm::enumerate(view.inputs))
    if (code.isStreamed(i))
      NVVM::CpAsyncOp::create(b, b.at(target, (b.thread() + int64_t(i) * plan.step) * 4),
                              getAddress(b, input, indices), 4, NVVM::LoadCacheModifierKind::CA,
                              size.getValue());
}

/// Loads the element of a streamed input for the thread's streamed row number `row`.
Value AttentionKernel::loadInput(unsigned input, unsigned row, Expr stage) {
  int64_t inStep = row / 2 * 8 + row % 2;
  Value start = b.at(shared, stage + b.lane() % 4 * 8);
  Type type = view.inputs[input].getElementType();
  return b.load(type, b.at(start, b.number(tiles.inputsStart + (int64_t(input) * plan.step + inStep) * 4)))
      .getValue();
}

/// Starts the copies of a step's streamed rows, if there is such a step. One group of copies, an empty one
/// too.
void AttentionKernel::fill(Expr step) {
  b.when(step < stepsEnd, [&] {
    for (const Tile &tile : tiles.streamed)
      copy(tile, b.at(shared, step % kStages * tiles.stageBytes + tile.start), step * plan.step);
    auto isStreamed = [&](unsigned i) { return code.isStreamed(i); };
    if (llvm::any_of(llvm::seq<unsigned>(view.inputs.size()), isStreamed))
      b.when(b.thread() < plan.step,
             [&] { copyInputs(step, b.at(shared, step % kStages * tiles.stageBytes + tiles.inputsStart)); });
  });
  NVVM::CpAsyncCommitGroupOp::create(b);
}

/// Returns the address that a lane gives for four matrices: 16 rows from `row` on, 16 columns from `chunk`
/// on.
Value AttentionKernel::address(const Tile &tile, Expr start, int64_t row, int64_t chunk) {
  Expr ofLane = b.lane() % 16 * tile.pitch() + b.lane() / 16 * kChunk;
  return b.at(b.at(shared, start + ofLane), b.number(tile.start + row * tile.pitch() + chunk * kChunk));
}

/// Loads the own rows of the warp for the scores, to be kept in registers.
void AttentionKernel::loadOwn() {
  const Tile &tile = tiles.own[0];
  ownWords.clear();
  for (int64_t column = 0; column < tile.paddedColumns(); column += 16)
    ownWords.push_back(
        loadMatrices(b, address(tile, b.warp() * (16 * tile.pitch()), 0, column / 8), /*transposes=*/false));
}

/// Returns the products of the warp's own rows and the rows of a stage: 4 for each 8 streamed rows.
SmallVector<Value> AttentionKernel::multiplyScores(unsigned product, Expr stage) {
  const Tile &own = tiles.own[product], &streamed = tiles.streamed[product];
  Values sums(plan.step / 8 * 4, b.real(0).getValue());
  for (int64_t column = 0; column < own.paddedColumns(); column += 16) {
    Values lhs = product == 0 && !ownWords.empty()
                     ? ownWords[column / 16]
                     : loadMatrices(b, address(own, b.warp() * (16 * own.pitch()), 0, column / 8), false);
    for (int64_t row = 0; row < plan.step; row += 16) {
      Values q = loadMatrices(b, address(streamed, stage, row, column / 8), /*transposes=*/false);
      for (int64_t half = 0; half < 2; ++half) {
        Value *tile = &sums[(row / 8 + half) * 4];
        llvm::copy(multiplyMatrices(b, type, lhs, {q[half], q[half + 2]}, ArrayRef(tile, 4)), tile);
      }
    }
  }
  return sums;
}

/// Adds the products of `values`, one for each cell, and the rows of a stage.
void AttentionKernel::accumulate(const AttentionResult &result, ArrayRef<Value> values, Expr stage,
                                 MutableArrayRef<Value> sums) {
  const Tile &streamed = tiles.streamed[result.streamed];
  auto pack = [&](int64_t cell) -> Value { // the values of two neighbouring columns
    Value pair = joinPair(b, values[cell], values[cell + 1]);
    Value rounded = arith::TruncFOp::create(b, VectorType::get(2, type), pair);
    return LLVM::BitcastOp::create(b, b.getI32Type(), rounded);
  };
  for (int64_t row = 0; row < plan.step; row += 16) {
    int64_t cell = row / 8 * 4;
    Values lhs = {pack(cell), pack(cell + 2), pack(cell + 4), pack(cell + 6)};
    for (int64_t column = 0; column < streamed.paddedColumns(); column += 16) {
      Values q = loadMatrices(b, address(streamed, stage, row, column / 8), /*transposes=*/true);
      for (int64_t half = 0; half < 2; ++half) {
        Value *tile = &sums[(column / 8 + half) * 4];
        llvm::copy(multiplyMatrices(b, type, lhs, {q[2 * half], q[2 * half + 1]}, ArrayRef(tile, 4)), tile);
      }
    }
  }
}
