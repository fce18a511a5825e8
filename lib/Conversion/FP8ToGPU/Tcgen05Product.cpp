// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products by tcgen05.mma (sm_100a), whose sums are in tensor memory. Of the eight warps of a block, warp 0
// loads the operands, warp 1 starts the multiplications, warp 2 allocates tensor memory, and warps 4 to 7
// write the results, 32 rows each. Tensor memory holds the sums of two tiles: one is written while the other
// is computed.

#include "WideProduct.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp8;

static constexpr int64_t kLoadWarp = 0, kMultiplyWarp = 1, kAllocateWarp = 2, kFirstStoreWarp = 4;
static constexpr int64_t kStoreWarps = 4;
/// The tiles whose sums are in tensor memory.
static constexpr int64_t kBuffers = 2;
static constexpr unsigned kTensorMemorySpace = 6;

/// Returns the columns of sums that a thread holds at a time.
static int64_t getChunkColumns(const WideShape &shape) { return std::min<int64_t>(32, shape.rhs.rows); }

static bool isFP8(const TiledOperand &operand) { return operand.elementBytes() == 1; }

/// PTX ISA, "Instruction descriptor" of kinds f16 and f8f6f4: sums in f32, the types of A and B, whether they
/// are [K, rows], N / 8 and M / 16.
static int64_t getInstructionDescriptor(const WideShape &shape) {
  auto type = [](const TiledOperand &operand) -> int64_t {
    return isa<Float8E5M2Type>(operand.element) || operand.element.isBF16();
  };
  return 1 << 4 | type(shape.lhs) << 7 | type(shape.rhs) << 10 | int64_t(shape.lhs.isTransposed) << 15 |
         int64_t(shape.rhs.isTransposed) << 16 | shape.rhs.rows / 8 << 17 | shape.lhs.rows / 16 << 24;
}

namespace {

/// Writes the code of the kernel.
class Tcgen05Kernel {
public:
  Tcgen05Kernel(KernelBuilder &b, const WideShape &shape, const WideOperands &operands)
      : b(b), shape(shape), operands(operands),
        tiles{operands.batches, operands.rows, operands.columns, shape.lhs.rows, shape.rhs.rows},
        stages(b, shape.lhs, shape.rhs, shape.stages),
        blocks((operands.depth + (shape.lhs.boxWidth() - 1)) / shape.lhs.boxWidth()) {}

  void build() {
    buildSetup();
    b.when(b.thread() == kLoadWarp * 32, [&] { stages.buildProducer(tiles, blocks, operands.maps); });
    b.when(b.thread() == kMultiplyWarp * 32, [&] { buildMultiply(); });
    b.when(b.warp() > kFirstStoreWarp - 1, [&] { buildStores(); });
    buildSync();
    b.when(b.warp() == kAllocateWarp,
           [&] { NVVM::Tcgen05DeallocOp::create(b, toPointer(tensorMemory()), numColumns()); });
  }

private:
  // Behind the stages lie two barriers per buffer, and the address of the tensor memory: `done` completes a
  // phase when the sums of a tile are there, `drained` when they have been read.
  Value shared(Expr position) { return b.at(b.dynamicShared(), position + shape.sharedBytes()); }
  Value done(Expr tile) { return shared(tile % kBuffers * TileStages::kBarrierBytes); }
  Value drained(Expr tile) { return shared((tile % kBuffers + kBuffers) * TileStages::kBarrierBytes); }
  Value addressSlot() { return shared(b.number(2 * kBuffers * TileStages::kBarrierBytes)); }
  Expr phase(Expr tile) { return tile / kBuffers & 1; }

  Value numColumns() { return b.number(kBuffers * shape.rhs.rows).getValue(); }
  Expr tensorMemory() { return b.load(b.getI32Type(), addressSlot()); }
  Value toPointer(Expr address) {
    auto type = LLVM::LLVMPointerType::get(b.getContext(), kTensorMemorySpace);
    return LLVM::IntToPtrOp::create(b, type, address.getValue());
  }
  void fence(NVVM::Tcgen05FenceKind kind) { NVVM::Tcgen05FenceOp::create(b, kind); }
  void fenceBefore() { fence(NVVM::Tcgen05FenceKind::BEFORE_THREAD_SYNC); }
  void fenceAfter() { fence(NVVM::Tcgen05FenceKind::AFTER_THREAD_SYNC); }
  void waitFor(Value barrier, Expr parity) {
    buildWait(b, barrier, parity);
    fenceAfter();
  }

  void buildSetup();
  void buildSync() {
    fenceBefore();
    b.barrier();
    fenceAfter();
  }
  void buildMultiply();
  void buildStage(Expr number, Expr k, Value sums);
  void buildStores();
  void buildStoreChunk(const TileOrigin &tile, Expr sums, Expr quarter, Expr chunk);
  Value buildLoadSums(Expr address);

  KernelBuilder &b;
  const WideShape &shape;
  const WideOperands &operands;
  TileSpace tiles;
  TileStages stages;
  Expr blocks;
};

} // namespace

void Tcgen05Kernel::buildSetup() {
  b.when(b.thread() == 0, [&] {
    stages.buildInit(/*consumers=*/1);
    for (int64_t buffer = 0; buffer < kBuffers; ++buffer) {
      buildInitBarrier(b, done(b.number(buffer)), 1);
      buildInitBarrier(b, drained(b.number(buffer)), kStoreWarps);
    }
    NVVM::FenceMbarrierInitOp::create(b);
  });
  b.when(b.warp() == kAllocateWarp, [&] {
    NVVM::Tcgen05AllocOp::create(b, addressSlot(), numColumns());
    NVVM::Tcgen05RelinquishAllocPermitOp::create(b);
  });
  buildSync();
}

void Tcgen05Kernel::buildMultiply() {
  Expr memory = tensorMemory();
  Value zero = b.number(0).getValue();
  tiles.buildLoop(b, {zero, zero}, [&](const TileOrigin &, ValueRange carried) {
    Expr tile = b.expr(carried[1]);
    waitFor(drained(tile), phase(tile) ^ 1);
    Value sums = toPointer(memory + tile % kBuffers * shape.rhs.rows);
    SmallVector<Value> next = b.loop(b.number(0), blocks, carried[0], [&](Expr k, ValueRange carried) {
      buildStage(b.expr(carried[0]), k, sums);
      return SmallVector<Value>{(b.expr(carried[0]) + 1).getValue()};
    });
    NVVM::Tcgen05CommitOp::create(b, done(tile), /*multicastMask=*/Value());
    return SmallVector<Value>{next[0], (tile + 1).getValue()};
  });
}

/// Multiplies a stage, and releases it when the tensor core has read it.
void Tcgen05Kernel::buildStage(Expr number, Expr k, Value sums) {
  stages.buildWaitFull(number);
  fenceAfter();
  // Bits 46 to 48 of a matrix descriptor are 1 for tcgen05. The distance of a step must be added first: LLVM
  // takes a sum at the end for an address, and writes "register + constant" where PTX has no address.
  Expr version = b.number(int64_t(1) << 46, 64);
  Expr instruction = b.number(getInstructionDescriptor(shape));
  for (int64_t step = 0; step < kStepsPerStage; ++step) {
    Expr lhs = stages.descriptor(number, 0, b.number(step * shape.lhs.stepBytes())) | version;
    Expr rhs = stages.descriptor(number, 1, b.number(step * shape.rhs.stepBytes())) | version;
    Expr addsToSums = step == 0 ? k > 0 : b.number(1, 1);
    NVVM::Tcgen05MMAOp::create(b, isFP8(shape.lhs) ? NVVM::Tcgen05MMAKind::F8F6F4 : NVVM::Tcgen05MMAKind::F16,
                               NVVM::CTAGroupKind::CTA_1, NVVM::Tcgen05MMACollectorOp::DISCARD,
                               /*aShift=*/false, sums, lhs.getValue(), rhs.getValue(), instruction.getValue(),
                               addsToSums.getValue(), /*scaleInputD=*/Value(), /*disableOutputLane=*/Value());
  }
  NVVM::Tcgen05CommitOp::create(b, stages.empty(number), /*multicastMask=*/Value());
}

int64_t fp8::countTcgen05Parts(const WideShape &shape, bool isSwapped) {
  return isSwapped ? shape.rhs.rows / getChunkColumns(shape) : kStoreWarps;
}

/// Lane l of warp w reads row 32 (w % 4) + l of the sums: a warp reaches no others.
void Tcgen05Kernel::buildStores() {
  Expr memory = tensorMemory(), quarter = b.warp() % kStoreWarps;
  tiles.buildLoop(b, b.number(0).getValue(), [&](const TileOrigin &tile, ValueRange carried) {
    Expr number = b.expr(carried[0]);
    waitFor(done(number), phase(number));
    // An address in tensor memory is a row in its upper half and a column in its lower.
    Expr sums = memory + number % kBuffers * shape.rhs.rows + (quarter * 32 << 16);
    int64_t width = getChunkColumns(shape);
    Expr chunks = b.number(shape.rhs.rows / width);
    if (!operands.isSwapped) // else every chunk is a part of sums over rows
      chunks = atMost((operands.columns - tile.column + (width - 1)) / width, chunks);
    b.loop(b.number(0), chunks, {}, [&](Expr chunk, ValueRange) {
      buildStoreChunk(tile, sums, quarter, chunk);
      return SmallVector<Value>();
    });
    fenceBefore();
    b.when(b.lane() == 0,
           [&] { NVVM::MBarrierArriveOp::create(b, /*res=*/Type(), drained(number), /*count=*/Value()); });
    return SmallVector<Value>{(number + 1).getValue()};
  });
}

/// Returns a chunk of sums of a row, as bits; zeros if K is 0, where nothing has been multiplied.
Value Tcgen05Kernel::buildLoadSums(Expr address) {
  auto type = VectorType::get(getChunkColumns(shape), b.getI32Type());
  Value zeros = arith::ConstantOp::create(b, b.getZeroAttr(type));
  auto branch = scf::IfOp::create(b, type, (blocks > 0).getValue(), /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(&branch.getElseRegion().front());
  scf::YieldOp::create(b, zeros);
  b.setInsertionPointToEnd(&branch.getThenRegion().front());
  Value sums = NVVM::Tcgen05LdOp::create(b, type, /*pack=*/false, NVVM::Tcgen05LdStShape::SHAPE_32X32B,
                                         toPointer(address), /*offset=*/Value());
  NVVM::Tcgen05WaitOp::create(b, NVVM::Tcgen05WaitKind::LOAD);
  scf::YieldOp::create(b, sums);
  return branch.getResult(0);
}

/// Computes the results of a chunk of sums of a row.
void Tcgen05Kernel::buildStoreChunk(const TileOrigin &tile, Expr sums, Expr quarter, Expr chunk) {
  int64_t width = getChunkColumns(shape);
  Value bits = buildLoadSums(sums + chunk * width);
  operands.epilogue.start(b, tile.batch);
  Epilogue::Position row = operands.atRow(b, tile.row + quarter * 32 + b.lane());
  Expr firstColumn = tile.column + chunk * width;
  SmallVector<Epilogue::Position> columns;
  for (int64_t i = 0; i < width; ++i) {
    columns.push_back(operands.atColumn(b, firstColumn + i));
    Value sum = LLVM::ExtractElementOp::create(b, bits, b.number(i).getValue());
    operands.compute(b, row, columns.back(), fromBits(b.expr(sum)));
  }
  if (operands.isSwapped)
    operands.epilogue.finishTile(b, row, tile.columnBlock * countTcgen05Parts(shape, true) + chunk,
                                 /*lanes=*/{});
  else
    operands.epilogue.finishTile(b, columns, tile.rowBlock * kStoreWarps + quarter,
                                 /*lanes=*/{1, 2, 4, 8, 16});
}

void fp8::buildTcgen05Product(KernelBuilder &b, const WideShape &shape, WideOperands operands) {
  Tcgen05Kernel(b, shape, operands).build();
}
