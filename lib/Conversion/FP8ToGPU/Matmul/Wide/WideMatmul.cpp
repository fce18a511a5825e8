// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers matmuls to launches of kernels of wgmma or tcgen05: tensor maps of the operands, sizes, and the
// grid.

#include "WideMatmul.h"
#include "../MatmulConfig.h"
#include "../MatmulLowering.h"
#include "fp8/Conversion/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace fp8;

namespace {
/// The numbers of the arguments of a kernel.
struct WideArguments {
  unsigned lhsMap, rhsMap, batches, rows, columns, depth;
  std::optional<unsigned> lhsInnerBatches, rhsInnerBatches;
  std::optional<GroupArguments> groups;
};
} // namespace

/// Returns `operand` as a memref of [batch, rows, columns], the form whose tensor map kernels read; with
/// inner batches, of [outer batch, inner batch, rows, columns].
static Value viewAsMatrices(OpBuilder &builder, Location loc, const MatmulOperand &operand,
                            ArrayRef<Value> sizes) {
  auto type = cast<MemRefType>(operand.memref.getType());
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  auto toElements = [&](Value stride) -> OpFoldResult {
    Value perElement = arith::ConstantIndexOp::create(builder, loc, bytes);
    OpFoldResult elements = getAsOpFoldResult(builder.createOrFold<arith::DivUIOp>(loc, stride, perElement));
    // The stride of a dimension of size 1 is never used, but tensor maps need one.
    return isZeroInteger(elements) ? builder.getIndexAttr(kOperandAlignment / bytes) : elements;
  };
  OpFoldResult offset = builder.getIndexAttr(type.getStridesAndOffset().second);
  if (ShapedType::isDynamic(type.getStridesAndOffset().second))
    offset = memref::ExtractStridedMetadataOp::create(builder, loc, operand.memref).getOffset();
  SmallVector<Value> shape(sizes);
  SmallVector<OpFoldResult> strides = {toElements(operand.batchStride), toElements(operand.pitch),
                                       builder.getIndexAttr(1)};
  if (operand.innerBatches) {
    shape[0] = builder.createOrFold<arith::DivUIOp>(loc, shape[0], operand.innerBatches);
    shape.insert(shape.begin() + 1, operand.innerBatches);
    strides.insert(strides.begin() + 1, toElements(operand.innerStride));
  }
  return memref::ReinterpretCastOp::create(builder, loc, operand.memref, offset, getAsOpFoldResult(shape),
                                           strides);
}

/// Marks an argument as a tensor map of an operand.
static void setTensorMap(KernelBuilder &b, unsigned argument, const TiledOperand &operand) {
  auto fields = b.getDictionaryAttr({b.getNamedAttr("box", b.getDenseI64ArrayAttr(operand.getBox())),
                                     b.getNamedAttr("swizzle", b.getI32IntegerAttr(kStageDepthBytes))});
  b.getKernel().setArgAttr(argument, kTensorMapAttrName, fields);
}

/// Returns the number of blocks: one per tile, but no more than run at the same time. More tiles than a
/// kernel can number are so many blocks that the launch is an error.
static Value buildGrid(OpBuilder &builder, Location loc, Value tiles, const Chip &chip) {
  Value most = arith::ConstantIndexOp::create(builder, loc, chip.multiprocessors);
  Value blocks = builder.createOrFold<arith::MinUIOp>(loc, tiles, most);
  Value counted = arith::ConstantIndexOp::create(builder, loc, kMostOfDimension);
  Value canNumber = builder.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::ule, tiles, counted);
  return builder.createOrFold<arith::SelectOp>(loc, canNumber, blocks, tiles);
}

bool fp8::lowerWideMatmul(OpBuilder &builder, const MatmulView &matmul, const MatmulConfig &config,
                          LoweringContext &context) {
  Location loc = matmul.op->getLoc();
  bool isWgmma = config.family == MatmulFamily::wgmma, isSwapped = config.isSwapped;
  Value m = matmul.buildSize(builder, matmul.dims.m), n = matmul.buildSize(builder, matmul.dims.n);
  Value k = matmul.buildSize(builder, matmul.dims.k), batches = matmul.buildSize(builder, matmul.dims.batch);

  WideShape shape{{}, {}, config.stages};
  shape.scales = matmul.scalesAlongK;
  shape.scalesRowsFirst = matmul.scalesRhsFirst() == isSwapped;
  shape.loadsRowsOfScales = matmul.groups && shape.scales == ScalesAlongK::packed;
  // The sums of tcgen05 are as exact without parts.
  shape.split = matmul.split && (isWgmma || hasModuleAttr(matmul.op, kStrictAccumulationAttrName));
  Value rows = isSwapped ? n : m, columns = isSwapped ? m : n;
  std::optional<std::array<MatmulOperand, 2>> grouped;
  if (matmul.groups)
    grouped = prepareGroupedOperands(builder, context, matmul, kStageDepthBytes);
  // Rows that are divided among groups are in one matrix; summed ones lie behind each other, with padding.
  bool areRowsDivided = matmul.groups && matmul.groups->ofResult;
  auto hasBatches = [&](bool isLhs) { return !matmul.groups || (areRowsDivided && !isLhs); };
  auto index = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(builder, loc, value); };
  auto sizeOf = [&](Value memref, int64_t dim) {
    return getValueOrCreateConstantIndexOp(builder, loc, memref::getMixedSize(builder, loc, memref, dim));
  };
  Value matrices = matmul.groups ? sizeOf(matmul.groups->ends, 0) : batches;
  auto prepare = [&](TiledOperand &tile, bool isLhs, Value size, int64_t tileSize) {
    tile = {getElementTypeOrSelf(isLhs ? matmul.lhs : matmul.rhs), tileSize};
    // Elements of 32 bits would need another order of TMA's bytes.
    bool mayTranspose =
        tile.elementBytes() == 2 || (tile.elementBytes() == 1 && context.chip.readsTransposedFP8);
    MatmulOperand operand =
        grouped ? (*grouped)[isLhs ? 0 : 1] : prepareOperand(builder, context, matmul, isLhs, mayTranspose);
    tile.isTransposed = operand.isTransposed;
    tile.hasInnerBatches = bool(operand.innerBatches);
    if (tile.isTransposed)
      tile.rows = std::max(tile.rows, tile.boxWidth());
    Value count = hasBatches(isLhs) ? matrices : index(1), length = k;
    if (matmul.groups && !areRowsDivided)
      length = sizeOf(operand.memref, 1);
    Value view =
        viewAsMatrices(builder, loc, operand,
                       tile.isTransposed ? ArrayRef{count, length, size} : ArrayRef{count, size, length});
    return std::pair(view, operand.innerBatches);
  };
  auto [lhs, lhsInner] = prepare(shape.lhs, !isSwapped, rows, config.tileM);
  auto [rhs, rhsInner] = prepare(shape.rhs, isSwapped, columns, config.tileN);
  shape.stages =
      std::min(config.stages, (context.chip.sharedBytes - kTcgen05SharedBytes) / shape.sharedBytes(1));

  KernelArguments arguments(builder, loc);
  WideArguments numbers;
  numbers.lhsMap = arguments.addPointer(lhs);
  numbers.rhsMap = arguments.addPointer(rhs);
  numbers.batches = arguments.addI32(batches);
  numbers.rows = arguments.addI32(rows);
  numbers.columns = arguments.addI32(columns);
  numbers.depth = arguments.addI32(k);
  if (matmul.groups)
    numbers.groups.emplace(arguments, builder, loc, *matmul.groups);
  if (lhsInner)
    numbers.lhsInnerBatches = arguments.addI32(lhsInner);
  if (rhsInner)
    numbers.rhsInnerBatches = arguments.addI32(rhsInner);
  auto multiply = [&](Value lhs, Value rhs) { return builder.createOrFold<arith::MulIOp>(loc, lhs, rhs); };
  Value blocksDown = builder.createOrFold<arith::CeilDivUIOp>(loc, rows, index(shape.lhs.rows));
  if (areRowsDivided) // as ResultTiles::buildLoop() counts them
    blocksDown = builder.createOrFold<arith::AddIOp>(
        loc, builder.createOrFold<arith::AddIOp>(loc, blocksDown, matrices), index(1));
  Value blocksAcross = builder.createOrFold<arith::CeilDivUIOp>(loc, columns, index(shape.rhs.rows));
  int64_t parts = isWgmma ? countWgmmaParts(isSwapped) : countTcgen05Parts(shape, isSwapped);
  Epilogue epilogue(builder, matmul, arguments,
                    multiply(multiply(batches, isSwapped ? blocksAcross : blocksDown), index(parts)));

  KernelSpec spec = describeKernel(matmul, arguments);
  spec.threads = isWgmma ? kWgmmaThreads : kTcgen05Threads;
  spec.sharedBytes = shape.sharedBytes() + (isWgmma ? 0 : kTcgen05SharedBytes);
  spec.blocks = 1; // for which shared memory has room: ptxas would spill to save registers for more
  spec.instruction =
      nameInstruction(context.chip, *config.family, shape.lhs.element, shape.rhs.element,
                      Twine(shape.lhs.rows), Twine(shape.rhs.rows), shape.scales == ScalesAlongK::packed);
  func::FuncOp kernel = context.kernels.build(loc, spec, [&](KernelBuilder &b) {
    setTensorMap(b, numbers.lhsMap, shape.lhs);
    setTensorMap(b, numbers.rhsMap, shape.rhs);
    auto toMap = [&](unsigned map, std::optional<unsigned> innerBatches) {
      TensorMap result{b.getKernel().getArgument(map), std::nullopt,
                       hasBatches((map == numbers.lhsMap) != isSwapped)};
      if (innerBatches)
        result.innerBatches = b.argument(*innerBatches);
      return result;
    };
    WideOperands operands{
        {toMap(numbers.lhsMap, numbers.lhsInnerBatches), toMap(numbers.rhsMap, numbers.rhsInnerBatches)},
        b.argument(numbers.batches),
        b.argument(numbers.rows),
        b.argument(numbers.columns),
        b.argument(numbers.depth),
        epilogue,
        isSwapped,
        numbers.groups};
    isWgmma ? buildWgmmaMatmul(b, shape, operands) : buildTcgen05Matmul(b, shape, operands);
  });
  Value tiles = multiply(batches, multiply(blocksDown, blocksAcross));
  auto launch = launchMatmul(builder, matmul, kernel, buildGrid(builder, loc, tiles, context.chip), arguments,
                             shape.split);
  addMatmulClocks(launch, context.chip, matmul, config, shape.split);
  epilogue.finish(builder, launch, context);
  return true;
}
