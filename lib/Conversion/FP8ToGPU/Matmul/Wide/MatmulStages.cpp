// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A ring of stages in shared memory, filled by TMA.

#include "MatmulStages.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace fp8;

/// How long a thread may sleep in a wait before it looks again, in nanoseconds.
static constexpr int64_t kWaitHint = 10000000;
/// The address space of shared memory as other blocks of the cluster see it.
static constexpr unsigned kClusterSharedSpace = 7;

void fp8::buildWait(KernelBuilder &b, Value barrier, Expr parity) {
  NVVM::MBarrierTryWaitParityOp::create(b, barrier, parity.getValue(), b.number(kWaitHint).getValue());
}

void fp8::buildInitBarrier(KernelBuilder &b, Value barrier, int64_t arrivals) {
  NVVM::MBarrierInitOp::create(b, barrier, b.number(arrivals).getValue(), /*predicate=*/Value());
}

/// PTX ISA, "Matrix Descriptor", of wgmma and of tcgen05 alike, distances in units of 16 bytes: bits 16 to 29
/// between boxes of a transposed tile (without meaning otherwise), bits 32 to 45 between groups of 8 rows;
/// bit 62 the 128-byte swizzle.
uint64_t TiledOperand::descriptorBits() const {
  uint64_t leading = isTransposed ? boxBytes() / 16 : 1;
  return uint64_t(1) << 62 | uint64_t(8 * kStageDepthBytes / 16) << 32 | leading << 16;
}

Value TileStages::barrier(Expr number, int64_t first) {
  int64_t tiles = count * (stageBytes(operands[0], operands[1]) + scales.bytes());
  return b.at(shared, number % count * kBarrierBytes + (tiles + first * kBarrierBytes));
}

Value TileStages::tile(Expr number, unsigned operand) {
  Expr stage = number % count * stageBytes(operands[0], operands[1]);
  return b.at(shared, operand == 0 ? stage : stage + operands[0].tileBytes());
}

Value TileStages::scaleOf(Expr number, unsigned operand, Expr row) {
  int64_t tiles = count * stageBytes(operands[0], operands[1]);
  return b.at(shared, number % count * scales.bytes() + row * 4 + (tiles + (operand ? scales.lhsBytes : 0)));
}

/// Rows of 16 bytes, of which 8 are 128 bytes, without swizzle.
Expr TileStages::packedDescriptor(Expr number, unsigned operand, int64_t tile) {
  Value start = b.at(scaleOf(number, operand, b.number(0)), b.number(tile * kPackedBytes));
  Expr address = b.expr(LLVM::PtrToIntOp::create(b, b.getI64Type(), start));
  return address / 16 | b.number(uint64_t(8) << 32 | uint64_t(8) << 16, 64);
}

Expr TileStages::descriptor(Expr number, unsigned operand, Expr skippedBytes) {
  Value start = b.at(tile(number, operand), skippedBytes);
  Expr address = b.expr(LLVM::PtrToIntOp::create(b, b.getI64Type(), start));
  return address / 16 | b.number(operands[operand].descriptorBits(), 64);
}

void TileStages::buildInit(int64_t consumers) {
  for (int64_t place = 0; place < count; ++place) {
    // The thread that loads tiles, and every lane of the warps that load scales.
    int64_t warps = scales.kind == ScalesAlongK::blocks ? 2 : loadsRowsOfScales ? 1 : 0;
    buildInitBarrier(b, full(b.number(place)), 1 + warps * 32);
    buildInitBarrier(b, empty(b.number(place)), consumers);
  }
}

void TileStages::buildWaitFull(Expr number) { buildWait(b, full(number), phase(number)); }

/// Loads the box of `map` at `corner` (innermost first) to `target`; its bytes arrive at `barrier`.
static void buildLoadBox(KernelBuilder &b, Value target, Value map, ValueRange corner, Value barrier) {
  auto type = LLVM::LLVMPointerType::get(b.getContext(), kClusterSharedSpace);
  Value inCluster = LLVM::AddrSpaceCastOp::create(b, type, target);
  NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
      b, inCluster, map, corner, barrier, /*im2colOffsets=*/ValueRange(), /*multicastMask=*/Value(),
      /*l2CacheHint=*/Value(), NVVM::TMALoadMode::TILE, /*isCTAOnly=*/false, /*group=*/nullptr,
      /*predicate=*/Value());
}

SmallVector<Value> TensorMap::findBatch(Expr batch) const {
  if (!hasBatches)
    return {(batch * 0).getValue()};
  if (!innerBatches)
    return {batch.getValue()};
  return {(batch % *innerBatches).getValue(), (batch / *innerBatches).getValue()};
}

void TileStages::buildLoads(Expr number, Expr block, const TileOrigin &where,
                            const std::array<TensorMap, 2> &maps,
                            const std::array<SmallVector<Value>, 2> &batches) {
  Value arrived = full(number);
  int64_t bytes = stageBytes(operands[0], operands[1]);
  if (scales.kind == ScalesAlongK::packed)
    bytes += loadsRowsOfScales ? scales.rhsBytes : scales.bytes();
  NVVM::MBarrierArriveExpectTxOp::create(b, /*res=*/Type(), arrived, b.number(bytes).getValue(),
                                         NVVM::MemScopeKind::CTA, /*relaxed=*/false, /*predicate=*/Value());
  Expr firstRows[] = {where.row, where.column};
  for (unsigned i : {0, 1}) {
    const TiledOperand &operand = operands[i];
    for (int64_t box = 0; box < operand.countBoxes(); ++box) {
      Expr k = where.depth + block * operand.boxWidth(), row = firstRows[i] + box * operand.boxWidth();
      if (operand.isTransposed)
        std::swap(k, row);
      SmallVector<Value> corner = {k.getValue(), row.getValue()};
      llvm::append_range(corner, batches[i]);
      buildLoadBox(b, b.at(tile(number, i), b.number(box * operand.boxBytes())), maps[i].map, corner,
                   arrived);
    }
  }
}

/// Returns where the packed scales begin that a tile of the matmul loads together: 512 bytes for each 128
/// rows.
SmallVector<TileStages::Line> TileStages::findPackedTiles(const TileOrigin &tile, FindScales findScales) {
  SmallVector<Line> lines;
  Expr firstRows[] = {tile.row, tile.column};
  for (unsigned operand = loadsRowsOfScales ? 1 : 0; operand < 2; ++operand)
    for (int64_t row = 0; row < operands[operand].rows; row += kPackedRows)
      lines.push_back(findScales(operand, tile.batch, firstRows[operand] + row));
  return lines;
}

void TileStages::buildPackedLoads(Expr number, Expr block, ArrayRef<Line> tiles) {
  for (auto [i, line] : llvm::enumerate(tiles)) {
    auto type = LLVM::LLVMPointerType::get(b.getContext(), kClusterSharedSpace);
    Value first = scaleOf(number, loadsRowsOfScales ? 1 : 0, b.number(0));
    Value target = b.at(first, b.number(i * kPackedBytes));
    NVVM::CpAsyncBulkGlobalToSharedClusterOp::create(
        b, LLVM::AddrSpaceCastOp::create(b, type, target), b.at(line.first, widen(block) * line.second),
        full(number), b.number(kPackedBytes).getValue(), /*multicastMask=*/Value(), /*l2CacheHint=*/Value());
  }
}

void TileStages::buildProducer(const ResultTiles &tiles, const std::array<TensorMap, 2> &maps,
                               FindScales findScales) {
  tiles.buildLoop(b, b.number(0).getValue(), [&](const TileOrigin &tile, ValueRange carried) {
    std::array batches = {maps[0].findBatch(tile.batch), maps[1].findBatch(tile.batch)};
    SmallVector<Line> packed;
    if (scales.kind == ScalesAlongK::packed)
      packed = findPackedTiles(tile, findScales);
    return b.loop(b.number(0), tile.numSteps, carried, [&](Expr block, ValueRange carried) {
      Expr number = b.expr(carried[0]);
      // The phase before the first counts as complete: the first round finds all stages empty.
      buildWait(b, empty(number), phase(number) ^ 1);
      buildLoads(number, block, tile, maps, batches);
      buildPackedLoads(number, block, packed);
      return SmallVector<Value>{(number + 1).getValue()};
    });
  });
}

void TileStages::buildScaleProducer(const ResultTiles &tiles, unsigned operand, FindScales findScales) {
  int64_t rows = operands[operand].rows;
  // Of packed scales, 16 bytes have the words of 4 rows, 32 apart.
  Expr place = b.lane() * (scales.kind == ScalesAlongK::packed ? 4 : 1);
  int64_t distance = scales.kind == ScalesAlongK::packed ? 1 : 32;
  tiles.buildLoop(b, b.number(0).getValue(), [&](const TileOrigin &tile, ValueRange carried) {
    SmallVector<Line> lines;
    Expr first = (operand == 0 ? tile.row : tile.column) + b.lane();
    for (int64_t row = 0; row < rows; row += 32)
      lines.push_back(findScales(operand, tile.batch, first + row));
    return b.loop(b.number(0), tile.numSteps, carried, [&](Expr block, ValueRange carried) {
      Expr number = b.expr(carried[0]);
      buildWait(b, empty(number), phase(number) ^ 1);
      for (auto [i, line] : llvm::enumerate(lines)) {
        auto copy = [&, i = i, line = line] {
          NVVM::CpAsyncOp::create(b, scaleOf(number, operand, place + int64_t(i) * distance),
                                  b.at(line.first, widen(block) * line.second), /*size=*/4,
                                  NVVM::LoadCacheModifierKind::CA, /*cpSize=*/Value());
        };
        rows < 32 ? b.when(b.lane() < rows, copy) : copy();
      }
      NVVM::CpAsyncMBarrierArriveOp::create(b, full(number), /*noinc=*/true);
      return SmallVector<Value>{(number + 1).getValue()};
    });
  });
}
