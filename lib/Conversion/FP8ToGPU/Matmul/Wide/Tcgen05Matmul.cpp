// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matmuls by tcgen05.mma (sm_100a), whose sums are in tensor memory. Of the eight warps of a block, warp 0
// loads the operands, warp 1 starts the multiplications, warp 2 allocates tensor memory, and warps 4 to 7
// write the results, 32 rows each. Tensor memory holds the sums of two tiles: one is written while the other
// is computed. Where sums of 128 elements along K are taken one by one, tensor memory holds those of two such
// parts instead, and warps 4 to 7 add them up in registers. F32 scales are loaded by warps 2 and 3. Packed
// scales go from shared to tensor memory before the products of their stage; those of rows of groups, which
// begin anywhere among the 128 that are packed together, are loaded row by row by warp 2.

#include "WideMatmul.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fp8;

static constexpr int64_t kLoadWarp = 0, kMultiplyWarp = 1, kAllocateWarp = 2, kFirstScaleWarp = 2;
static constexpr int64_t kFirstStoreWarp = 4;
static constexpr int64_t kStoreWarps = 4;
/// The tiles whose sums are in tensor memory.
static constexpr int64_t kBuffers = 2;
static constexpr unsigned kTensorMemorySpace = 6;

/// Returns the columns of sums that a thread holds at a time.
static int64_t getChunkColumns(const WideShape &shape) { return std::min<int64_t>(32, shape.rhs.rows); }

static NVVM::Tcgen05MMAKind getKind(const TiledOperand &operand) {
  return operand.elementBytes() == 1   ? NVVM::Tcgen05MMAKind::F8F6F4
         : operand.elementBytes() == 2 ? NVVM::Tcgen05MMAKind::F16
                                       : NVVM::Tcgen05MMAKind::TF32;
}

/// PTX ISA, "Instruction descriptor" of kinds f16, tf32 and f8f6f4: sums in f32, the types of A and B,
/// whether they are [K, rows], N / 8 and M / 16. Of kind mxf8f6f4: in place of the type of sums and of M /
/// 16, that scales are E8M0, M / 128, and which of the four scales of a stage the step has.
static int64_t getInstructionDescriptor(const WideShape &shape, int64_t step) {
  auto type = [](const TiledOperand &operand) -> int64_t {
    if (operand.element.isF32())
      return 2;
    return isa<Float8E5M2Type>(operand.element) || operand.element.isBF16();
  };
  int64_t common = type(shape.lhs) << 7 | type(shape.rhs) << 10 | int64_t(shape.lhs.isTransposed) << 15 |
                   int64_t(shape.rhs.isTransposed) << 16 | shape.rhs.rows / 8 << 17;
  if (shape.scales == ScalesAlongK::packed)
    return common | step << 4 | 1 << 23 | shape.lhs.rows / 128 << 27 | step << 29;
  return common | 1 << 4 | shape.lhs.rows / 16 << 24;
}

/// The columns of tensor memory that 128 rows of packed scales take, and those of both operands.
static constexpr int64_t kPackedColumns = 4;
static int64_t countPackedColumns(const WideShape &shape) {
  return shape.scales == ScalesAlongK::packed
             ? kPackedColumns * (1 + llvm::divideCeil(shape.rhs.rows, kPackedRows))
             : 0;
}

namespace {

/// Writes the code of the kernel.
class Tcgen05Kernel {
public:
  Tcgen05Kernel(KernelBuilder &b, const WideShape &shape, const WideOperands &operands)
      : b(b), shape(shape), operands(operands), tiles(operands.getTiles(shape)),
        stages(b, shape.lhs, shape.rhs, shape.stages, shape.scales, shape.loadsRowsOfScales) {}

  void build() {
    buildSetup();
    auto findScales = [&](unsigned operand, Expr batch, Expr index) {
      return operands.findScales(b, shape, operand, batch, index);
    };
    b.when(b.thread() == kLoadWarp * 32, [&] { stages.buildProducer(tiles, operands.maps, findScales); });
    int64_t scaleWarps = shape.scales == ScalesAlongK::blocks ? 2 : shape.loadsRowsOfScales ? 1 : 0;
    for (int64_t operand = 0; operand < scaleWarps; ++operand)
      b.when(b.warp() == kFirstScaleWarp + operand,
             [&] { stages.buildScaleProducer(tiles, operand, findScales); });
    b.when(b.thread() == kMultiplyWarp * 32,
           [&] { shape.hasParts() ? buildMultiplyParts() : buildMultiply(); });
    b.when(b.warp() > kFirstStoreWarp - 1, [&] { shape.hasParts() ? buildStoresOfParts() : buildStores(); });
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

  Value numColumns() {
    return b.number(llvm::PowerOf2Ceil(kBuffers * shape.rhs.rows + countPackedColumns(shape))).getValue();
  }
  /// The column of the packed scales of operand 0 or 1.
  int64_t packedColumn(unsigned operand) {
    return kBuffers * shape.rhs.rows + (operand == 0 ? 0 : kPackedColumns);
  }
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
  void buildMultiplyParts();
  void buildStage(Expr number, Expr memory, Value sums, Expr addsToFirst, Expr column);
  void buildCopyScales(Expr number, Expr memory);
  void buildStores();
  void buildStoresOfParts();
  SmallVector<Value> buildAddPart(Expr number, Expr sums, Expr quarter, ValueRange totals);
  void buildStoreChunk(const TileOrigin &tile, ArrayRef<Value> sums, Expr quarter, Expr chunk);
  SmallVector<Value> buildLoadSums(Expr address, Expr numSteps);
  SmallVector<Value> buildLoadChunk(Expr address);
  void buildArrive(Value barrier) {
    b.when(b.lane() == 0,
           [&] { NVVM::MBarrierArriveOp::create(b, /*res=*/Type(), barrier, /*count=*/Value()); });
  }

  KernelBuilder &b;
  const WideShape &shape;
  const WideOperands &operands;
  ResultTiles tiles;
  TileStages stages;
};

} // namespace

void Tcgen05Kernel::buildSetup() {
  b.when(b.thread() == 0, [&] {
    // The warps that store read the scales of a stage themselves.
    stages.buildInit(/*consumers=*/shape.scales == ScalesAlongK::blocks ? 1 + kStoreWarps : 1);
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
  tiles.buildLoop(b, {zero, zero}, [&](const TileOrigin &origin, ValueRange carried) {
    Expr tile = b.expr(carried[1]);
    waitFor(drained(tile), phase(tile) ^ 1);
    Value sums = toPointer(memory + tile % kBuffers * shape.rhs.rows);
    SmallVector<Value> next =
        b.loop(b.number(0), origin.numSteps, carried[0], [&](Expr k, ValueRange carried) {
          buildStage(b.expr(carried[0]), memory, sums, k > 0, origin.column);
          return SmallVector<Value>{(b.expr(carried[0]) + 1).getValue()};
        });
    NVVM::Tcgen05CommitOp::create(b, done(tile), /*multicastMask=*/Value());
    return SmallVector<Value>{next[0], (tile + 1).getValue()};
  });
}

/// Parts are numbered as stages: each has the matmuls of one.
void Tcgen05Kernel::buildMultiplyParts() {
  Expr memory = tensorMemory();
  tiles.buildLoop(b, b.number(0).getValue(), [&](const TileOrigin &origin, ValueRange carried) {
    return b.loop(b.number(0), origin.numSteps, carried, [&](Expr, ValueRange carried) {
      Expr part = b.expr(carried[0]);
      waitFor(drained(part), phase(part) ^ 1);
      Value sums = toPointer(memory + part % kBuffers * shape.rhs.rows);
      buildStage(part, memory, sums, b.number(0, 1), origin.column);
      NVVM::Tcgen05CommitOp::create(b, done(part), /*multicastMask=*/Value());
      return SmallVector<Value>{(part + 1).getValue()};
    });
  });
}

/// Copies the packed scales of a stage to tensor memory: 128 rows take 4 columns, the same in each of the
/// four parts of 32 lanes.
void Tcgen05Kernel::buildCopyScales(Expr number, Expr memory) {
  Expr version = b.number(int64_t(1) << 46, 64);
  for (unsigned operand : {0, 1})
    for (int64_t tile = 0; tile * kPackedRows < (operand == 0 ? shape.lhs.rows : shape.rhs.rows); ++tile)
      NVVM::Tcgen05CpOp::create(b, NVVM::Tcgen05CpShape::SHAPE_32x128b, NVVM::CTAGroupKind::CTA_1,
                                NVVM::Tcgen05CpMulticast::WARPX4, /*srcFormat=*/nullptr,
                                toPointer(memory + (packedColumn(operand) + tile * kPackedColumns)),
                                (stages.packedDescriptor(number, operand, tile) | version).getValue());
}

/// Multiplies a stage, and releases it when the tensor core has read it. `column` is the tile's first: a tile
/// of less than 128 columns may begin within the scales of 128.
void Tcgen05Kernel::buildStage(Expr number, Expr memory, Value sums, Expr addsToFirst, Expr column) {
  bool isPacked = shape.scales == ScalesAlongK::packed;
  stages.buildWaitFull(number);
  fenceAfter();
  if (shape.loadsRowsOfScales) // by threads, not by TMA
    NVVM::FenceProxyOp::create(b, NVVM::ProxyKindAttr::get(b.getContext(), NVVM::ProxyKind::async_shared),
                               NVVM::SharedSpaceAttr::get(b.getContext(), NVVM::SharedSpace::shared_cta));
  if (isPacked)
    buildCopyScales(number, memory);
  // Bits 46 to 48 of a matrix descriptor are 1 for tcgen05. The distance of a step must be added first: LLVM
  // takes a sum at the end for an address, and writes "register + constant" where PTX has no address.
  Expr version = b.number(int64_t(1) << 46, 64);
  for (int64_t step = 0; step < kStepsPerStage; ++step) {
    Expr lhs = stages.descriptor(number, 0, b.number(step * shape.lhs.stepBytes())) | version;
    Expr rhs = stages.descriptor(number, 1, b.number(step * shape.rhs.stepBytes())) | version;
    Expr addsToSums = step == 0 ? addsToFirst : b.number(1, 1);
    Expr instruction = b.number(getInstructionDescriptor(shape, step));
    if (isPacked)
      NVVM::Tcgen05MMABlockScaleOp::create(
          b, NVVM::MMABlockScaleKind::MXF8F6F4, NVVM::CTAGroupKind::CTA_1,
          NVVM::Tcgen05MMABlockScale::DEFAULT, NVVM::Tcgen05MMACollectorOp::DISCARD, sums, lhs.getValue(),
          rhs.getValue(), instruction.getValue(), addsToSums.getValue(), toPointer(memory + packedColumn(0)),
          toPointer(memory + packedColumn(1) + column % kPackedRows / 32));
    else
      NVVM::Tcgen05MMAOp::create(
          b, getKind(shape.lhs), NVVM::CTAGroupKind::CTA_1, NVVM::Tcgen05MMACollectorOp::DISCARD,
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
    operands.epilogue.start(b, tile.batch); // loads, which are there when the sums are
    waitFor(done(number), phase(number));
    // An address in tensor memory is a row in its upper half and a column in its lower.
    Expr sums = memory + number % kBuffers * shape.rhs.rows + (quarter * 32 << 16);
    int64_t width = getChunkColumns(shape);
    Expr chunks = b.number(shape.rhs.rows / width);
    if (!operands.isSwapped) // else every chunk is a part of sums over rows
      chunks = atMost((operands.columns - tile.column + (width - 1)) / width, chunks);
    b.loop(b.number(0), chunks, {}, [&](Expr chunk, ValueRange) {
      buildStoreChunk(tile, buildLoadSums(sums + chunk * width, tile.numSteps), quarter, chunk);
      return SmallVector<Value>();
    });
    fenceBefore();
    buildArrive(drained(number));
    return SmallVector<Value>{(number + 1).getValue()};
  });
}

/// Adds the parts of a row of sums, in registers, and stores the results.
void Tcgen05Kernel::buildStoresOfParts() {
  Expr memory = tensorMemory(), quarter = b.warp() % kStoreWarps;
  int64_t width = getChunkColumns(shape);
  tiles.buildLoop(b, b.number(0).getValue(), [&](const TileOrigin &tile, ValueRange carried) {
    operands.epilogue.start(b, tile.batch);
    SmallVector<Value> inits(shape.rhs.rows, b.real(0).getValue());
    inits.push_back(carried[0]);
    SmallVector<Value> last = b.loop(b.number(0), tile.numSteps, inits, [&](Expr, ValueRange carried) {
      Expr number = b.expr(carried.back());
      waitFor(done(number), phase(number));
      Expr sums = memory + number % kBuffers * shape.rhs.rows + (quarter * 32 << 16);
      SmallVector<Value> totals = buildAddPart(number, sums, quarter, carried.drop_back());
      fenceBefore();
      buildArrive(drained(number));
      if (shape.scales == ScalesAlongK::blocks)
        buildArrive(stages.empty(number));
      totals.push_back((number + 1).getValue());
      return totals;
    });
    for (int64_t chunk = 0; chunk * width < shape.rhs.rows; ++chunk)
      buildStoreChunk(tile, ArrayRef(last).slice(chunk * width, width), quarter, b.number(chunk));
    return SmallVector<Value>{last.back()};
  });
}

/// Returns totals + sums · scales: the sums of a part are multiplied by one scale, and by the other and added
/// with one rounding.
SmallVector<Value> Tcgen05Kernel::buildAddPart(Expr number, Expr sums, Expr quarter, ValueRange totals) {
  bool isScaled = shape.scales == ScalesAlongK::blocks;
  std::optional<Expr> rowScale;
  if (isScaled) {
    stages.buildWaitFull(number); // completes with the scales, which other warps have copied
    rowScale = b.load(b.getF32Type(), stages.scaleOf(number, 0, quarter * 32 + b.lane()));
  }
  SmallVector<Value> result;
  int64_t width = getChunkColumns(shape);
  for (int64_t first = 0; first < shape.rhs.rows; first += width) {
    Value scales;
    if (isScaled)
      scales = b.load(VectorType::get(width, b.getF32Type()), stages.scaleOf(number, 1, b.number(first)), 16)
                   .getValue();
    for (auto [i, sum] : llvm::enumerate(buildLoadChunk(sums + first))) {
      Expr total = b.expr(totals[first + i]);
      if (!isScaled) {
        result.push_back((total + b.expr(sum)).getValue());
        continue;
      }
      Expr columnScale = b.expr(LLVM::ExtractElementOp::create(b, scales, b.number(i).getValue()));
      Expr one = shape.scalesRowsFirst ? *rowScale : columnScale,
           two = shape.scalesRowsFirst ? columnScale : *rowScale;
      result.push_back(fma(b.expr(sum) * one, two, total).getValue());
    }
  }
  return result;
}

/// Returns a chunk of sums of a row.
SmallVector<Value> Tcgen05Kernel::buildLoadChunk(Expr address) {
  auto type = VectorType::get(getChunkColumns(shape), b.getI32Type());
  Value bits = NVVM::Tcgen05LdOp::create(b, type, /*pack=*/false, NVVM::Tcgen05LdStShape::SHAPE_32X32B,
                                         toPointer(address), /*offset=*/Value());
  NVVM::Tcgen05WaitOp::create(b, NVVM::Tcgen05WaitKind::LOAD);
  return llvm::map_to_vector(llvm::seq<int64_t>(getChunkColumns(shape)), [&](int64_t i) {
    return fromBits(b.expr(LLVM::ExtractElementOp::create(b, bits, b.number(i).getValue()))).getValue();
  });
}

/// Returns a chunk of sums of a row; zeros if K is 0, where nothing has been multiplied.
SmallVector<Value> Tcgen05Kernel::buildLoadSums(Expr address, Expr numSteps) {
  SmallVector<Value> zeros(getChunkColumns(shape), b.real(0).getValue());
  return b.whenElse(numSteps > 0, [&] { return buildLoadChunk(address); }, zeros);
}

/// Computes the results of a chunk of sums of a row.
void Tcgen05Kernel::buildStoreChunk(const TileOrigin &tile, ArrayRef<Value> sums, Expr quarter, Expr chunk) {
  int64_t width = getChunkColumns(shape);
  Epilogue::Position row = operands.atRow(b, tile.row + quarter * 32 + b.lane(), tile.endRow);
  Expr firstColumn = tile.column + chunk * width;
  SmallVector<Epilogue::Position> columns;
  // Positions of one run of columns at a time: the scales of all columns would take many registers.
  int64_t run = std::min(operands.isSwapped ? 1 : operands.epilogue.getRun(), width);
  for (int64_t first = 0; first < width; first += run) {
    for (int64_t i = 0; i < run; ++i)
      columns.push_back(operands.atColumn(b, firstColumn + (first + i)));
    operands.compute(b, row, MutableArrayRef(columns).take_back(run), sums.slice(first, run));
  }
  if (operands.isSwapped)
    operands.epilogue.finishTile(b, row, tile.columnBlock * countTcgen05Parts(shape, true) + chunk,
                                 /*lanes=*/{});
  else
    operands.epilogue.finishTile(b, columns, tile.rowBlock * kStoreWarps + quarter,
                                 /*lanes=*/{1, 2, 4, 8, 16});
}

void fp8::buildTcgen05Matmul(KernelBuilder &b, const WideShape &shape, WideOperands operands) {
  Tcgen05Kernel(b, shape, operands).build();
}
