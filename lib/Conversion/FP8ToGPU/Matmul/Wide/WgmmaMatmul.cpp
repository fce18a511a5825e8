// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matmuls by wgmma.mma_async (sm_90a). A block has three groups of four warps: two multiply 64 rows of a
// tile each, and a thread of the third one loads the operands.

#include "../../TensorCores/WgmmaInstruction.h"
#include "WideMatmul.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp8;

static constexpr int64_t kConsumerWarps = 8, kGroupRows = 64;
/// The registers of a thread that loads, and of one that multiplies: 128 · 40 + 256 · 232 are at most those
/// of a multiprocessor.
static constexpr uint32_t kProducerRegisters = 40, kConsumerRegisters = 232;

namespace {

/// Writes the code of the warps that multiply.
class WgmmaConsumer {
public:
  WgmmaConsumer(KernelBuilder &b, const WideShape &shape, const WideOperands &operands, TileStages &stages)
      : b(b), shape(shape), operands(operands), stages(stages), group(b.warp() / 4) {
    SmallVector<Type> sums(shape.rhs.rows / 2, b.getF32Type());
    sumsType = LLVM::LLVMStructType::getLiteral(b.getContext(), sums);
  }

  void build(const ResultTiles &tiles) {
    Value zero = buildZero();
    tiles.buildLoop(b, b.number(0).getValue(), [&](const TileOrigin &tile, ValueRange carried) {
      operands.epilogue.start(b, tile.batch); // loads, which are there when the sums are
      SmallVector<Value> last =
          b.loop(b.number(0), tile.numSteps, {zero, carried[0]}, [&](Expr k, ValueRange carried) {
            Expr number = b.expr(carried[1]);
            stages.buildWaitFull(number);
            Value sums = shape.hasParts() ? buildPart(number, carried[0]) : buildStage(number, carried[0], k);
            return SmallVector<Value>{sums, (number + 1).getValue()};
          });
      Value sums = shape.hasParts() ? last[0] : buildLastWait(last[0], b.expr(last[1]), tile.numSteps);
      buildStores(tile, sums);
      return SmallVector<Value>{last[1]};
    });
  }

private:
  Value buildZero() {
    Value zero = b.real(0).getValue();
    return pack(SmallVector<Value>(getNumSums(), zero));
  }
  int64_t getNumSums() const { return shape.rhs.rows / 2; }

  Value pack(ValueRange values) {
    Value sums = LLVM::UndefOp::create(b, sumsType);
    for (auto [i, value] : llvm::enumerate(values))
      sums = LLVM::InsertValueOp::create(b, sums, value, i);
    return sums;
  }
  /// Adds the matmuls of a stage to `sums`, or to zero; the result is there after a wait.
  Value buildMatmuls(Expr number, Value sums, bool fromZero);
  /// Waits until at most `pending` stages are being multiplied.
  void buildWaitMatmuls(int64_t pending) { NVVM::WgmmaWaitGroupSyncOp::create(b, pending); }
  /// Releases a stage: one arrival of each warp.
  void buildRelease(Expr number) {
    b.when(b.lane() == 0, [&] {
      NVVM::MBarrierArriveOp::create(b, /*res=*/Type(), stages.empty(number), /*count=*/Value());
    });
  }

  Value buildStage(Expr number, Value sums, Expr k);
  Value buildPart(Expr number, Value total);
  SmallVector<Value> loadScales(Expr number);
  Value buildLastWait(Value sums, Expr number, Expr numSteps);
  void buildStores(const TileOrigin &tile, Value sums);

  KernelBuilder &b;
  const WideShape &shape;
  const WideOperands &operands;
  TileStages &stages;
  Expr group; ///< 0 or 1
  Type sumsType;
};

} // namespace

Value WgmmaConsumer::buildMatmuls(Expr number, Value sums, bool fromZero) {
  Expr lhs = stages.descriptor(number, 0, group * (kGroupRows * kStageDepthBytes)),
       rhs = stages.descriptor(number, 1, b.number(0));
  NVVM::WgmmaFenceAlignedOp::create(b);
  auto mmaShape = NVVM::MMAShapeAttr::get(b.getContext(), kGroupRows, shape.rhs.rows,
                                          kStepDepthBytes / shape.lhs.elementBytes());
  auto layout = [](const TiledOperand &operand, bool isRhs) {
    return operand.isTransposed != isRhs ? NVVM::MMALayout::col : NVVM::MMALayout::row;
  };
  for (int64_t step = 0; step < kStepsPerStage; ++step) {
    bool zero = fromZero && step == 0;
    sums = NVVM::WgmmaMmaAsyncOp::create(
        b, sumsType, sums, (lhs + step * (shape.lhs.stepBytes() / 16)).getValue(),
        (rhs + step * (shape.rhs.stepBytes() / 16)).getValue(), mmaShape, toWgmmaType(shape.lhs.element),
        toWgmmaType(shape.rhs.element), NVVM::WGMMATypes::f32,
        zero ? NVVM::WGMMAScaleOut::zero : NVVM::WGMMAScaleOut::one, NVVM::WGMMAScaleIn::one,
        NVVM::WGMMAScaleIn::one, layout(shape.lhs, false), layout(shape.rhs, true), /*satfinite=*/nullptr);
  }
  NVVM::WgmmaGroupSyncAlignedOp::create(b);
  return sums;
}

/// The tensor cores multiply this stage while the one before is released.
Value WgmmaConsumer::buildStage(Expr number, Value sums, Expr k) {
  sums = buildMatmuls(number, sums, /*fromZero=*/false);
  buildWaitMatmuls(1);
  b.when(k > 0, [&] { buildRelease(number - 1); });
  return sums;
}

/// Returns the scales of this thread's two rows, then those of its columns, in the order of its sums.
SmallVector<Value> WgmmaConsumer::loadScales(Expr number) {
  SmallVector<Value> scales;
  for (int64_t half : {0, 1}) {
    Value address = stages.scaleOf(number, 0, b.warp() * 16 + b.lane() / 4 + 8 * half);
    scales.push_back(b.load(b.getF32Type(), address).getValue());
  }
  auto pair = VectorType::get(2, b.getF32Type());
  for (int64_t i = 0; i < getNumSums(); i += 4) {
    Value columns = b.load(pair, stages.scaleOf(number, 1, b.lane() % 4 * 2 + 2 * i)).getValue();
    for (int64_t odd : {0, 1})
      scales.push_back(LLVM::ExtractElementOp::create(b, columns, b.number(odd).getValue()));
  }
  return scales;
}

/// Adds the sums of a stage, multiplied by their scales if there are any, to `total`.
Value WgmmaConsumer::buildPart(Expr number, Value total) {
  bool isScaled = shape.scales == ScalesAlongK::blocks;
  Value part = buildMatmuls(number, LLVM::UndefOp::create(b, sumsType), /*fromZero=*/true);
  SmallVector<Value> scales;
  if (isScaled)
    scales = loadScales(number);
  buildWaitMatmuls(0);
  SmallVector<Value> parts = tieToWait(b, unpackSums(b, part));
  buildRelease(number);
  SmallVector<Value> totals = unpackSums(b, total);
  for (auto [i, sum, addend] : llvm::enumerate(totals, parts)) {
    if (!isScaled) {
      sum = (b.expr(sum) + b.expr(addend)).getValue();
      continue;
    }
    Value first = scales[i / 2 % 2], second = scales[2 + i / 4 * 2 + i % 2];
    if (!shape.scalesRowsFirst)
      std::swap(first, second);
    sum = fma(b.expr(addend) * b.expr(first), b.expr(second), b.expr(sum)).getValue();
  }
  return pack(totals);
}

Value WgmmaConsumer::buildLastWait(Value sums, Expr number, Expr numSteps) {
  buildWaitMatmuls(0);
  sums = pack(tieToWait(b, unpackSums(b, sums)));
  b.when(numSteps > 0, [&] { buildRelease(number - 1); });
  return sums;
}

int64_t fp8::countWgmmaParts(bool isSwapped) { return isSwapped ? 1 : kConsumerWarps; }

/// PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk…": sum i of a thread is in row
/// lane / 4 + 8 (i / 2 % 2) of the warp's 16, and in column 2 (lane % 4) + 8 (i / 4) + i % 2. Of elements up
/// to 16 bits, two columns are less than a sector of memory for the lanes of a row, and all lanes more
/// accesses than data: they exchange columns first.
void WgmmaConsumer::buildStores(const TileOrigin &tile, Value sums) {
  SmallVector<Value> values = unpackSums(b, sums);
  bool exchanges = !operands.isSwapped && operands.epilogue.gainsByExchange() && getNumSums() % 16 == 0;
  int64_t groups = exchanges ? 4 : 1, width = 2 * groups;
  Expr firstRow = tile.row + b.warp() * 16 + b.lane() / 4, firstColumn = tile.column + b.lane() % 4 * width;
  SmallVector<Epilogue::Position> rows, columns;
  for (int64_t half : {0, 1})
    rows.push_back(operands.atRow(b, firstRow + 8 * half, tile.endRow));
  columns.reserve(getNumSums() / 2);
  for (int64_t i = 0; i < getNumSums(); i += 4 * groups) {
    for (int64_t column = 0; column < width; ++column)
      columns.push_back(operands.atColumn(b, firstColumn + (2 * i + column)));
    for (int64_t half : {0, 1}) {
      SmallVector<Value> own;
      for (int64_t group = 0; group < groups; ++group)
        llvm::append_range(own, ArrayRef(values).slice(i + 4 * group + 2 * half, 2));
      if (exchanges)
        exchangeColumns(b, own);
      operands.compute(b, rows[half], MutableArrayRef(columns).take_back(width), own);
    }
  }
  if (operands.isSwapped)
    operands.epilogue.finishTile(b, rows, tile.columnBlock, /*lanes=*/{1, 2});
  else
    operands.epilogue.finishTile(b, columns, tile.rowBlock * kConsumerWarps + b.warp(), /*lanes=*/{4, 8, 16});
}

void fp8::buildWgmmaMatmul(KernelBuilder &b, const WideShape &shape, WideOperands operands) {
  ResultTiles tiles = operands.getTiles(shape);
  TileStages stages(b, shape.lhs, shape.rhs, shape.stages, shape.scales);
  auto findScales = [&](unsigned operand, Expr batch, Expr index) {
    return operands.findScales(b, shape, operand, batch, index);
  };
  b.when(b.thread() == 0, [&] {
    stages.buildInit(kConsumerWarps);
    NVVM::FenceMbarrierInitOp::create(b);
  });
  b.barrier();

  auto setRegisters = [&](uint32_t count, NVVM::SetMaxRegisterAction action) {
    NVVM::SetMaxRegisterOp::create(b, count, action);
  };
  auto branch = scf::IfOp::create(b, (b.warp() < kConsumerWarps).getValue(), /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.elseYield());
  setRegisters(kProducerRegisters, NVVM::SetMaxRegisterAction::decrease);
  b.when(b.thread() == kConsumerWarps * 32, [&] { stages.buildProducer(tiles, operands.maps, findScales); });
  if (shape.scales == ScalesAlongK::blocks)
    for (unsigned operand : {0, 1})
      b.when(b.warp() == kConsumerWarps + 1 + operand,
             [&] { stages.buildScaleProducer(tiles, operand, findScales); });
  b.setInsertionPoint(branch.thenYield());
  setRegisters(kConsumerRegisters, NVVM::SetMaxRegisterAction::increase);
  WgmmaConsumer(b, shape, operands, stages).build(tiles);
}
