// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies to shared memory by cp.async, and loads from it by ldmatrix.

#include "MmaStages.h"
#include "../../TensorCores/MmaInstruction.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace fp8;

int64_t MmaStages::countBytes(const MatmulConfig &config, const MatmulView &matmul) {
  bool hasScales = matmul.scalesAlongK != ScalesAlongK::none;
  return config.stageBytes() + (hasScales ? (config.tileM + config.tileN) * 4 : 0);
}

/// Chunk `number` of a tile of rows.
MmaStages::Copy MmaStages::copyRow(const MmaSide &side, Expr step, Expr number) {
  int64_t chunks = config.tileKBytes / kChunk; // of a row
  Expr chunk = number % chunks, inTile = number / chunks, row = side.first + inTile;
  Expr begin = step * config.tileKBytes + chunk * kChunk;
  Expr left = atLeast(atMost(side.kBytes - begin, kChunk), 0);
  return {select(row < side.count, left, b.number(0)), widen(row) * side.pitch + widen(begin),
          inTile * config.tileKBytes + place(chunk, inTile)};
}

/// Chunk `number` of a tile of 32 lines along K: 8 rows of a line.
MmaStages::Copy MmaStages::copyLine(const MmaSide &side, Expr step, Expr number) {
  constexpr int64_t bytes = 2, perChunk = kChunk / bytes;
  int64_t lines = config.tileKBytes / bytes, chunks = side.operand.rows / perChunk;
  Expr chunk = number % chunks, inTile = number / chunks;
  Expr k = step * lines + inTile, row = side.first + chunk * perChunk;
  Expr left = atLeast(atMost(side.count - row, perChunk), 0) * bytes;
  return {select(k * bytes < side.kBytes, left, b.number(0)), widen(k) * side.pitch + widen(row) * bytes,
          inTile * (side.operand.rows * bytes) + placeInLine(chunk, inTile)};
}

void MmaStages::fill(ArrayRef<MmaSide> sides, Expr step) {
  Value base = stage(step);
  for (const MmaSide &side : sides)
    for (int64_t i = 0; i < side.operand.rows * config.tileKBytes / kChunk; i += threads) {
      Expr number = b.thread() + i;
      Copy copy = side.operand.isTransposed ? copyLine(side, step, number) : copyRow(side, step, number);
      // An address must be valid even where nothing is read.
      Expr offset = select(copy.size > 0, copy.offset, b.number(0, 64));
      NVVM::CpAsyncOp::create(b, b.at(base, copy.target + side.operand.start), b.at(side.pointer, offset),
                              kChunk, NVVM::LoadCacheModifierKind::CG, copy.size.getValue());
    }
  if (matmul.scalesAlongK != ScalesAlongK::none)
    for (const MmaSide &side : sides)
      copyScales(side, step);
  NVVM::CpAsyncCommitGroupOp::create(b);
}

/// Each thread copies the scale of one row; zero for rows that do not exist and beyond K.
void MmaStages::copyScales(const MmaSide &side, Expr step) {
  Expr row = b.thread(), part = step / (matmul.getPart() / config.tileKBytes);
  Expr exists = (side.first + row < side.count) & (part * matmul.getPart() < side.kBytes);
  Expr size = select(exists, b.number(4), b.number(0));
  Expr offset = widen(part) * side.scales->stride;
  b.when(row < side.operand.rows, [&] {
    NVVM::CpAsyncOp::create(b, b.at(stage(step), placeOfScale(side.operand, row)),
                            b.at(side.scales->first, select(exists, offset, b.number(0, 64))), /*size=*/4,
                            NVVM::LoadCacheModifierKind::CA, size.getValue());
  });
}

Value MmaStages::loadScale(const MmaOperand &operand, Expr step, Expr row, Type type) {
  return b.load(type, b.at(stage(step), placeOfScale(operand, row))).getValue();
}

/// Lane l gives the address of row or line l % 8 of matrix l / 8.
SmallVector<Value> MmaStages::loadMatrix(const MmaOperand &operand, Expr step, Expr row, int64_t chunk) {
  Expr lane = b.lane(), offset = b.number(operand.start);
  if (operand.isTransposed) {
    Expr line = lane % 8 + lane / 16 * 8 + chunk * 8; // a chunk along K is 8 elements
    offset = offset + line * (operand.rows * 2) + placeInLine(row / 8 + lane / 8 % 2, line);
  } else {
    Expr mine = row + lane % 16;
    offset = offset + mine * config.tileKBytes + place(lane / 16 + chunk, mine);
  }
  return loadMatrices(b, b.at(stage(step), offset), operand.isTransposed);
}

void MmaStages::waitFor(ArrayRef<MmaSide> sides, Expr step) {
  NVVM::CpAsyncWaitGroupOp::create(b, config.stages - 2);
  b.barrier();
  fill(sides, step + (config.stages - 1));
}
