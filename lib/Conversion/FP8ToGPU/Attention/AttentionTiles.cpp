// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of operands in shared memory, and matmuls on them.

#include "AttentionKernel.h"

#include "../Kernel/ElementAccess.h"
#include "../Kernel/ElementPairs.h"
#include "../TensorCores/MmaInstruction.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp8;

/// The bytes after which the 128-byte swizzle is the same.
static constexpr int64_t kSwizzleBytes = 1024;

AttentionKernel::Tiles AttentionKernel::arrange(const AttentionView &view, const AttentionPlan &plan) {
  Tiles tiles;
  unsigned ownDim = plan.isTransposed ? view.keys : view.queries,
           streamedDim = plan.isTransposed ? view.queries : view.keys;
  auto add = [&](SmallVector<Tile> &list, unsigned operand, unsigned rowDim, int64_t rows) -> Tile & {
    unsigned columnDim = list.empty() ? view.depth : view.width;
    list.push_back(
        {operand, rowDim, columnDim, rows, view.sizes[columnDim].known, tiles.totalBytes, plan.usesWgmma});
    return list.back();
  };
  for (unsigned operand : plan.own)
    tiles.totalBytes += add(tiles.own, operand, ownDim, plan.countRows()).countBytes();
  int64_t start = tiles.totalBytes;
  for (unsigned operand : plan.streamed)
    tiles.totalBytes += add(tiles.streamed, operand, streamedDim, plan.step).countBytes();
  tiles.inputsStart = tiles.totalBytes;
  tiles.totalBytes +=
      llvm::alignTo(int64_t(view.inputs.size()) * plan.step * 4, plan.usesWgmma ? kSwizzleBytes : 128);
  tiles.stageBytes = tiles.totalBytes - start;
  tiles.totalBytes = start + plan.stages * tiles.stageBytes;
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
  const KernelNumber &size = view.sizes[tile.rowDim];
  bool hasAllRows = size.isKnown() && size.known % tile.rows == 0,
       hasAllColumns = tile.columns == tile.countChunks() * 8;
  int64_t threads = plan.countThreads(), chunks = tile.countChunks(), total = tile.rows * chunks;
  // Chunk `chunk` of row `inTile` + `further`: the latter, a multiple of 8 where rows are swizzled, is an
  // immediate part of both addresses.
  auto copyChunk = [&](Expr chunk, Expr inTile, int64_t further) {
    std::optional<Expr> exists;
    if (!hasAllRows)
      exists = firstRow + inTile + further < count;
    if (!hasAllColumns)
      exists = exists ? *exists & (chunk * 8 < tile.columns) : chunk * 8 < tile.columns;
    Value place = b.at(b.at(target, tile.place(inTile, chunk)), b.number(further * tile.pitch()));
    Expr offset = widen(firstRow + inTile) * rowStride + widen(chunk) * columnStride * 8,
         rest = rowStride * double(further);
    if (exists) { // an address must be valid even where nothing is read
      offset = select(*exists, offset, b.number(0, 64));
      rest = select(*exists, rest, b.number(0, 64));
    }
    Value source = b.at(b.at(base, offset * 2), rest * 2);
    if (isAligned) {
      Value bytes = exists ? select(*exists, b.number(kChunk), b.number(0)).getValue() : Value();
      NVVM::CpAsyncOp::create(b, place, source, kChunk, NVVM::LoadCacheModifierKind::CG, bytes);
      return;
    }
    auto load = [&] {
      return llvm::map_to_vector(llvm::seq<int64_t>(8), [&](int64_t i) {
        return b.load(b.getI16Type(), b.at(source, columnStride * double(2 * i))).getValue();
      });
    };
    Values elements =
        exists ? b.whenElse(*exists, load, Values(8, b.number(0, 16).getValue())) : Values(load());
    b.store(b.expr(vector::FromElementsOp::create(b, VectorType::get(8, b.getI16Type()), elements)), place);
  };
  for (int64_t i = 0; i < total; i += threads) {
    Expr number = b.thread() + i;
    if (threads % (8 * chunks) == 0 && i + threads <= total)
      copyChunk(b.thread() % chunks, b.thread() / chunks, i / chunks);
    else if (i + threads <= total)
      copyChunk(number % chunks, number / chunks, 0);
    else
      b.when(number < total, [&] { copyChunk(number % chunks, number / chunks, 0); });
  }
}

/// Copies the elements that the streamed inputs have for the rows of a step, one row by each thread at a
/// time.
void AttentionKernel::copyInputs(Expr step, Value target) {
  auto copyRow = [&](Expr inStep) {
    Expr row = step * plan.step + inStep;
    Indices indices = outer;
    indices[streamedDim] = atMost(row, streamedSize() - 1);
    Expr size = select(row < streamedSize(), b.number(4), b.number(0));
    for (auto [i, input] : llvm::enumerate(view.inputs))
      if (code.isStreamed(i))
        NVVM::CpAsyncOp::create(b, b.at(target, (inStep + int64_t(i) * plan.step) * 4),
                                getAddress(b, input, indices), 4, NVVM::LoadCacheModifierKind::CA,
                                size.getValue());
  };
  auto isStreamed = [&](unsigned i) { return code.isStreamed(i); };
  if (llvm::none_of(llvm::seq<unsigned>(view.inputs.size()), isStreamed))
    return;
  for (int64_t i = 0; i < plan.step; i += plan.countThreads()) {
    if (plan.step - i >= plan.countThreads())
      copyRow(b.thread() + i);
    else
      b.when(b.thread() < plan.step - i, [&] { copyRow(b.thread() + i); });
  }
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
      copy(tile, b.at(shared, step % plan.stages * tiles.stageBytes + tile.start), step * plan.step);
    copyInputs(step, b.at(shared, step % plan.stages * tiles.stageBytes + tiles.inputsStart));
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

/// Returns the values of two neighbouring columns from `cell` on, rounded to the type of the operands, as a
/// word.
Value AttentionKernel::pack(ArrayRef<Value> values, int64_t cell) {
  Value pair = joinPair(b, values[cell], values[cell + 1]);
  Value rounded = arith::TruncFOp::create(b, VectorType::get(2, type), pair);
  return LLVM::BitcastOp::create(b, b.getI32Type(), rounded);
}

/// Adds the products of `values`, one for each cell, and the rows of a stage.
void AttentionKernel::accumulate(const AttentionResult &result, ArrayRef<Value> values, Expr stage,
                                 MutableArrayRef<Value> sums) {
  const Tile &streamed = tiles.streamed[result.streamed];
  for (int64_t row = 0; row < plan.step; row += 16) {
    int64_t cell = row / 8 * 4;
    Values lhs = {pack(values, cell), pack(values, cell + 2), pack(values, cell + 4), pack(values, cell + 6)};
    for (int64_t column = 0; column < streamed.paddedColumns(); column += 16) {
      Values q = loadMatrices(b, address(streamed, stage, row, column / 8), /*transposes=*/true);
      for (int64_t half = 0; half < 2; ++half) {
        Value *tile = &sums[(column / 8 + half) * 4];
        llvm::copy(multiplyMatrices(b, type, lhs, {q[2 * half], q[2 * half + 1]}, ArrayRef(tile, 4)), tile);
      }
    }
  }
}
