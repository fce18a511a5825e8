// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers fp8.quantize and fp8.amax to one kernel that reads the tensor once (TileKernel.h). A transposition
// that this kernel cannot write is a kernel of its own, which reads the FP8 data.

#include "ByteTranspose.h"
#include "CastLowering.h"
#include "RowCastKernel.h"
#include "fp8/Conversion/ExpandRows/RowVectors.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
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

bool fp8::isUnread(Value buffer) { return buffer.getDefiningOp<memref::AllocOp>() && buffer.hasOneUse(); }

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Replaces operands of known sizes and dynamic strides by contiguous copies.
static void copyDynamicStrides(OpBuilder &builder, Operation *op) {
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = cast<MemRefType>(operand.get().getType());
    SmallVector<int64_t> strides;
    int64_t offset;
    if (!type.hasStaticShape() || type.getNumElements() == 0 ||
        (succeeded(type.getStridesAndOffset(strides, offset)) && ShapedType::isStaticShape(strides)))
      continue;
    Location loc = op->getLoc();
    Value copy =
        memref::AllocOp::create(builder, loc, MemRefType::get(type.getShape(), type.getElementType()));
    if (cast<DestinationStyleOpInterface>(op).isDpsInit(&operand)) {
      OpBuilder after(op->getContext());
      after.setInsertionPointAfter(op);
      linalg::CopyOp::create(after, loc, copy, operand.get());
    } else {
      linalg::CopyOp::create(builder, loc, operand.get(), copy);
    }
    operand.set(copy);
  }
}

/// Lowers an operation whose region works on vectors.
static bool lowerOnRows(OpBuilder &builder, Operation *op, LoweringContext &context) {
  copyDynamicStrides(builder, op);
  ElementRegion region = *ElementRegion::of(op);
  auto quantize = dyn_cast<QuantizeOp>(op);
  ArrayRef<int64_t> transposition =
      quantize ? quantize.getTransposition().value_or(ArrayRef<int64_t>()) : ArrayRef<int64_t>();
  std::optional<TileWork> work = TileWork::create(op, /*batchDims=*/0);
  if (!work) {
    context.hasErrors = true;
    op->emitError("this operation on rows has no kernel");
    return false;
  }
  bool hasSums = llvm::any_of(work->extras, [](const TileExtra &extra) { return extra.isSum; });
  auto makePlan = [&](bool hasColumns) {
    return RowPlan(context.chip, work->space.columns, work->space.rows, countKeptValues(region), hasSums,
                   hasColumns);
  };
  RowPlan plan = makePlan(false);
  if (!quantize)
    return launchRows(builder, context, *work, plan, "amax"), true;
  Value data = quantize.getOuts()[0];
  Value dataT = transposition.empty() ? Value() : quantize.getOuts()[quantize.getDataTIndex()];
  std::optional<unsigned> batchDims = countBatchDims(transposition);
  if (dataT && batchDims && plan.canWriteColumns()) {
    TileWork batched = *TileWork::create(op, *batchDims);
    SmallVector<unsigned> permutation(transposition.begin(), transposition.end());
    AffineMap map = AffineMap::getPermutationMap(permutation, builder.getContext());
    batched.columns = TileOperand::create(dataT, map, batched.space);
    if (batched.columns && batched.columns->hasAdjacentRows(batched.space)) {
      work = batched;
      plan = makePlan(true);
    }
  }
  work->data =
      TileOperand::create(data, builder.getMultiDimIdentityMap(work->space.sizes.size()), work->space);
  if (work->columns && isUnread(data)) // all matmuls want the other layout
    work->data.reset();
  work->scale.memref = quantize.getScale();
  work->scaleInv.memref = quantize.getOuts()[quantize.getScaleInvIndex()];
  launchRows(builder, context, *work, plan, "quantize_rows");
  if (dataT && !work->columns)
    launchByteTranspose(builder, context, op->getLoc(), data, dataT, transposition);
  return true;
}

static bool hasRows(Operation *op) { return !ElementRegion::of(op)->rows.empty(); }

bool fp8::lowerQuantize(OpBuilder &builder, QuantizeOp op, LoweringContext &context) {
  if (hasRows(op))
    return lowerOnRows(builder, op, context);
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
    remarkGeneric(op, "the layout of its data has no strides");
    return false;
  }
  if (inTiles && isUnread(data)) // all matmuls want the other layout
    work->data.reset();
  work->scale.memref = op.getScale();
  work->scaleInv.memref = op.getOuts()[op.getScaleInvIndex()];
  launchTiles(builder, context, *work, "quantize");
  if (dataT && !inTiles)
    launchByteTranspose(builder, context, op.getLoc(), data, dataT, transposition);
  return true;
}

bool fp8::lowerAmax(OpBuilder &builder, AmaxOp op, LoweringContext &context) {
  if (hasRows(op))
    return lowerOnRows(builder, op, context);
  if (!canUseTiles(op))
    return false;
  std::optional<TileWork> work = TileWork::create(op, /*batchDims=*/0);
  if (!work)
    return false;
  launchTiles(builder, context, *work, "amax");
  return true;
}
