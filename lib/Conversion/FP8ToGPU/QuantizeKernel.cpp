// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers fp8.quantize and fp8.amax to one kernel that reads the tensor once (TileKernel.h). A transposition
// that this kernel cannot write is a kernel of its own, which reads the FP8 data.

#include "ByteTranspose.h"
#include "TileKernel.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp8;

/// Returns the number of leading dimensions that `transposition` keeps in place, if it moves the last
/// dimension before all others; else nullopt.
static std::optional<unsigned> countBatchDims(ArrayRef<int64_t> transposition) {
  int64_t rank = transposition.size(), batch = 0;
  while (batch < rank && transposition[batch] == batch)
    ++batch;
  if (batch >= rank || transposition[batch] != rank - 1)
    return std::nullopt;
  for (int64_t i = batch + 1; i < rank; ++i)
    if (transposition[i] != i - 1)
      return std::nullopt;
  return batch;
}

static bool isOnDevice(Operation *op) {
  // Rows and other loops that run in parallel become kernels whole.
  return !op->getParentOfType<scf::ParallelOp>() && !op->getParentOfType<scf::ForallOp>();
}

bool fp8::canUseTiles(Operation *op) {
  ElementRegion region = *ElementRegion::of(op);
  Type element =
      region.isEmpty() ? getElementTypeOrSelf(region.inputs[0]) : region.yield().getValue().getType();
  return !element.isF64() && isOnDevice(op);
}

/// Returns whether nothing reads what the only user of the buffer writes.
static bool isUnread(Value buffer) { return buffer.getDefiningOp<memref::AllocOp>() && buffer.hasOneUse(); }

bool fp8::lowerQuantize(OpBuilder &builder, QuantizeOp op, LoweringContext &context) {
  if (!canUseTiles(op))
    return false;
  ArrayRef<int64_t> transposition = op.getTransposition().value_or(ArrayRef<int64_t>());
  std::optional<unsigned> batchDims = countBatchDims(transposition);
  std::optional<TileWork> work = TileWork::create(op, batchDims.value_or(0));
  if (!work)
    return false;
  unsigned rank = work->space.sizes.size();
  Value data = op.getOuts()[0], dataT = transposition.empty() ? Value() : op.getOuts()[op.getDataTIndex()];
  work->data = TileOperand::create(data, builder.getMultiDimIdentityMap(rank), work->space);
  if (dataT && batchDims) {
    SmallVector<unsigned> permutation(transposition.begin(), transposition.end());
    AffineMap map = AffineMap::getPermutationMap(permutation, builder.getContext());
    work->columns = TileOperand::create(dataT, map, work->space);
  }
  bool inTiles = work->columns && work->columns->hasAdjacentRows(work->space);
  if (!inTiles)
    work->columns.reset();
  if (!work->data || (dataT && !inTiles && !canTransposeBytes(data, dataT, transposition))) {
    remarkGeneric(op, "its data is of dynamic strides");
    return false;
  }
  if (inTiles && isUnread(data)) // all products want the other layout
    work->data.reset();
  work->scale.memref = op.getScale();
  work->scaleInv.memref = op.getOuts()[op.getScaleInvIndex()];
  launchTiles(builder, context, *work, "quantize");
  if (dataT && !inTiles)
    launchByteTranspose(builder, context, op.getLoc(), data, dataT, transposition);
  return true;
}

bool fp8::lowerAmax(OpBuilder &builder, AmaxOp op, LoweringContext &context) {
  if (!canUseTiles(op))
    return false;
  std::optional<TileWork> work = TileWork::create(op, /*batchDims=*/0);
  if (!work)
    return false;
  launchTiles(builder, context, *work, "amax");
  return true;
}
