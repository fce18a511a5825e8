// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matmuls by mma.sync: warps multiply tiles of 16 x 8 in registers, on operands that cp.async copies to
// shared memory some steps ahead (MmaStages). A step is 64 bytes along K, or 32 where parts end in the middle
// of 64; an instruction takes 32 bytes of it, 32 FP8, 16 bf16 or f16, or 8 TF32 elements, so all types share
// one kernel but for the instruction. The elements of TF32 are f32, of which it ignores the lower 13 bits. M,
// N and K need not be multiples of anything: copies beyond the operand are zeros, stores are guarded.

#include "../../TensorCores/MmaInstruction.h"
#include "../Epilogue.h"
#include "../GroupedMatmul.h"
#include "../MatmulLowering.h"
#include "MmaStages.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace fp8;

/// The bytes along K of an instruction.
static constexpr int64_t kStepBytes = 32;
/// Warps of a block along M, and columns of a warp.
static constexpr int64_t kWarpsM = 2, kWarpN = 32;
/// Blocks that share a multiprocessor: one multiplies while the other waits for its operands.
static constexpr int64_t kBlocks = 2;

namespace {
/// The numbers of the arguments of a kernel.
struct MmaArguments {
  unsigned lhs, rhs, m, n, kBytes, lhsPitch, rhsPitch;
  BatchArguments lhsBatch, rhsBatch;
  std::optional<GroupArguments> groups;
};

/// The packed scales of an instruction: a word of each operand, and the byte of both.
struct StepScales {
  Value lhs, rhs; ///< null for scales of 1
  int64_t byte = 0;
};

/// Writes the kernel of one configuration.
class MmaKernel {
public:
  MmaKernel(KernelBuilder &b, const MatmulConfig &config, const Chip &chip, const MmaOperand &lhs,
            const MmaOperand &rhs, const MatmulView &matmul, const MmaArguments &arguments)
      : b(b), config(config), chip(chip), lhs(lhs), rhs(rhs), matmul(matmul), numbers(arguments),
        warpM(config.tileM / kWarpsM), stages(b, config, matmul, countThreads(config)) {}

  static int64_t countThreads(const MatmulConfig &config) { return kWarpsM * (config.tileN / kWarpN) * 32; }
  void build(Epilogue &epilogue);

private:
  using Values = SmallVector<Value>;

  /// Where a block works: its tile, the first row of it and the row after the last that exist, and the bytes
  /// along K; of a sum over the rows of a group, the group's first row in memory, and in a copy by groups.
  struct Place {
    Tile tile;
    Expr firstRow, endRow, kBytes;
    std::optional<RowsOfGroup> summed;
  };
  Place findPlace();
  MmaSide makeSide(const MmaOperand &operand, const Place &place, bool isLhs);
  SmallVector<Value> multiply(ArrayRef<Value> a, ArrayRef<Value> b, ArrayRef<Value> c,
                              const StepScales &scales);
  void multiplyStep(Expr step, int64_t inPart, MutableArrayRef<Value> sums);
  Values addScaled(Expr step, ValueRange totals, ArrayRef<Value> sums);
  Values sumFast(ArrayRef<MmaSide> sides);
  Values sumPart(ArrayRef<MmaSide> sides, Expr first, ArrayRef<Value> inits);
  /// The last step that sumPart() waits for.
  Expr findLastStep(ArrayRef<MmaSide> sides, Expr first) {
    Expr end = first + stepsOfPart();
    return (isLoop() ? atMost(end, countSteps(sides)) : end) - 1;
  }
  bool isLoop() const { return stepsOfPart() > 2; }
  Values sumParts(ArrayRef<MmaSide> sides);
  Expr countSteps(ArrayRef<MmaSide> sides) {
    return (sides[0].kBytes + (config.tileKBytes - 1)) / config.tileKBytes;
  }
  void storeTile(Epilogue &epilogue, const Place &place, ArrayRef<Value> sums);

  Expr countTiles(unsigned size, int64_t tile) { return (b.argument(size) + (tile - 1)) / tile; }
  /// Parts are of FP8 elements, a byte each.
  int64_t stepsOfPart() const { return matmul.getPart() / config.tileKBytes; }
  int64_t numTiles() const { return warpM / 16 * (kWarpN / 8); }
  Values zeros() { return Values(numTiles() * 4, b.real(0).getValue()); }
  Expr warpRow() { return b.warp() % kWarpsM * warpM; }
  Expr warpColumn() { return b.warp() / kWarpsM * kWarpN; }
  Type i32() { return b.getI32Type(); }

  KernelBuilder &b;
  const MatmulConfig &config;
  const Chip &chip;
  MmaOperand lhs, rhs;
  const MatmulView &matmul;
  MmaArguments numbers;
  int64_t warpM;
  MmaStages stages;
};
} // namespace

static bool isFP8(Type type) { return type.getIntOrFloatBitWidth() == 8; }

/// Returns a · b + c for a of 16 rows, b of 8 columns, and 32 bytes of K.
SmallVector<Value> MmaKernel::multiply(ArrayRef<Value> left, ArrayRef<Value> right, ArrayRef<Value> c,
                                       const StepScales &scales) {
  if (!isFP8(lhs.type))
    return multiplyMatrices(b, lhs.type, left, right, c);
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(4, b.getF32Type()));
  Value sums;
  if (chip.hasBlockScaledMma) {
    auto typeOf = [](Type type) { return *NVVM::symbolizeMMATypes(getNameInPTX(type)); };
    std::array<NVVM::MMATypes, 2> types = {typeOf(lhs.type), typeOf(rhs.type)};
    Value ones = b.number(0x7F7F7F7F).getValue(), zero = b.number(0, 16).getValue(); // 127 stands for 2^0
    Value byte = b.number(scales.byte, 16).getValue();
    sums = NVVM::MmaBlockScaleOp::create(b, type, left, right, c, scales.lhs ? scales.lhs : ones, byte, zero,
                                         scales.rhs ? scales.rhs : ones, byte, zero, {16, 8, 32}, types,
                                         NVVM::ScaleVecSize::X1, NVVM::BlockScaleFormat::UE8M0,
                                         NVVM::MMABlockScaleKind::MXF8F6F4);
  } else {
    std::string name = ("llvm.nvvm.mma.m16n8k32.row.col.f32." + getNameInPTX(lhs.type) + "." +
                        getNameInPTX(rhs.type) + ".f32")
                           .str();
    Values operands(left);
    operands.append(right.begin(), right.end());
    operands.append(c.begin(), c.end());
    sums = LLVM::CallIntrinsicOp::create(b, type, b.getStringAttr(name), operands).getResult(0);
  }
  return llvm::map_to_vector(llvm::seq<int64_t>(4),
                             [&](int64_t i) -> Value { return LLVM::ExtractValueOp::create(b, sums, i); });
}

/// Adds the matmuls of one step, number `inPart` of a part, to the warp's sums: 4 per tile of 16 x 8, tiles
/// row by row. Packed scales (PTX ISA, "Block scaling for mma.sync"): of the lanes 4 i to 4 i + 3, the first
/// has the word of row i and of column i, the second that of row i + 8.
void MmaKernel::multiplyStep(Expr step, int64_t inPart, MutableArrayRef<Value> sums) {
  Values lhsScales(warpM / 16), rhsScales(kWarpN / 8);
  if (matmul.scalesAlongK == ScalesAlongK::packed) {
    Expr row = warpRow() + b.lane() / 4 + b.lane() % 2 * 8, column = warpColumn() + b.lane() / 4;
    for (auto [i, word] : llvm::enumerate(lhsScales))
      word = stages.loadScale(lhs, step, row + int64_t(i) * 16, i32());
    for (auto [j, word] : llvm::enumerate(rhsScales))
      word = stages.loadScale(rhs, step, column + int64_t(j) * 8, i32());
  }
  for (int64_t chunk = 0; chunk < config.tileKBytes / MmaStages::kChunk;
       chunk += kStepBytes / MmaStages::kChunk) {
    int64_t byte = (inPart * config.tileKBytes + chunk * MmaStages::kChunk) / kStepBytes;
    SmallVector<Values> columns;
    for (int64_t j = 0; j < kWarpN; j += 16) {
      Values q = stages.loadMatrix(rhs, step, warpColumn() + j, chunk);
      columns.push_back({q[0], q[2]});
      columns.push_back({q[1], q[3]});
    }
    Value *tile = sums.begin();
    for (int64_t i = 0; i < warpM; i += 16) {
      Values rows = stages.loadMatrix(lhs, step, warpRow() + i, chunk);
      for (auto [column, scale] : llvm::zip_equal(columns, rhsScales)) {
        StepScales scales{lhsScales[i / 16], scale, lhsScales[i / 16] ? byte : 0};
        llvm::copy(multiply(rows, column, {tile[0], tile[1], tile[2], tile[3]}, scales), tile);
        tile += 4;
      }
    }
  }
}

/// Sums over the whole of K.
SmallVector<Value> MmaKernel::sumFast(ArrayRef<MmaSide> sides) {
  return b.loop(b.number(0), countSteps(sides), zeros(), [&](Expr step, ValueRange carried) {
    Values sums(carried);
    stages.waitFor(sides, step);
    multiplyStep(step, /*inPart=*/0, sums);
    return sums;
  });
}

/// Returns totals + sums · scales: sums of a part, whose last step is `step`, are multiplied by one scale,
/// and by the other and added with one rounding.
SmallVector<Value> MmaKernel::addScaled(Expr step, ValueRange totals, ArrayRef<Value> sums) {
  Values rows, columns;
  for (int64_t i = 0; i < warpM; i += 8)
    rows.push_back(stages.loadScale(lhs, step, warpRow() + b.lane() / 4 + i, b.getF32Type()));
  for (int64_t j = 0; j < kWarpN; j += 8)
    for (int64_t q = 0; q < 2; ++q)
      columns.push_back(
          stages.loadScale(rhs, step, warpColumn() + b.lane() % 4 * 2 + (j + q), b.getF32Type()));
  Values result;
  for (auto [i, total, sum] : llvm::enumerate(totals, sums)) {
    int64_t tile = i / 4, q = i % 4, tilesN = kWarpN / 8;
    Value first = rows[tile / tilesN * 2 + q / 2], second = columns[tile % tilesN * 2 + q % 2];
    if (matmul.scalesRhsFirst())
      std::swap(first, second);
    result.push_back(fma(b.expr(sum) * b.expr(first), b.expr(second), b.expr(total)).getValue());
  }
  return result;
}

/// Sums the steps of a part from `first` on, one or two, or in a loop up to the last of K.
SmallVector<Value> MmaKernel::sumPart(ArrayRef<MmaSide> sides, Expr first, ArrayRef<Value> inits) {
  Values sums(inits);
  if (isLoop()) {
    Expr left = countSteps(sides) - first;
    return b.loop(b.number(0), atMost(left, stepsOfPart()), sums, [&](Expr i, ValueRange carried) {
      Values sums(carried);
      stages.waitFor(sides, first + i);
      multiplyStep(first + i, /*inPart=*/0, sums);
      return sums;
    });
  }
  for (int64_t i = 0; i < stepsOfPart(); ++i) {
    stages.waitFor(sides, first + i);
    multiplyStep(first + i, i, sums);
  }
  return sums;
}

/// Sums parts of FP8 elements: from zero, added in order, with scales along K; or all of K as one sum, of
/// which parts have packed scales.
SmallVector<Value> MmaKernel::sumParts(ArrayRef<MmaSide> sides) {
  Expr parts = (sides[0].kBytes + (matmul.getPart() - 1)) / matmul.getPart();
  bool isBlocks = matmul.scalesAlongK == ScalesAlongK::blocks;
  return b.loop(b.number(0), parts, zeros(), [&](Expr part, ValueRange carried) {
    Expr first = part * stepsOfPart();
    Values sums = sumPart(sides, first, matmul.split || isBlocks ? zeros() : Values(carried));
    if (isBlocks)
      return addScaled(findLastStep(sides, first), carried, sums);
    if (!matmul.split)
      return sums;
    return llvm::map_to_vector(llvm::zip_equal(carried, sums), [&](auto pair) {
      return (b.expr(std::get<0>(pair)) + b.expr(std::get<1>(pair))).getValue();
    });
  });
}

/// Lane l holds columns 2 (l % 4) and the next of row l / 4, and of row l / 4 + 8, of each 16 x 8 tile.
void MmaKernel::storeTile(Epilogue &epilogue, const Place &place, ArrayRef<Value> sums) {
  const Tile &tile = place.tile;
  Expr firstRow = place.firstRow + warpRow() + b.lane() / 4;
  static_assert(kWarpN == 4 * 8);
  int64_t width = epilogue.gainsByExchange() ? 8 : 2; // neighbours that a lane has
  Expr firstColumn = tile.n * config.tileN + warpColumn() + b.lane() % 4 * width;
  SmallVector<Epilogue::Position> columns;
  for (int64_t j = 0; j < kWarpN; j += 4 * width)
    for (int64_t q = 0; q < width; ++q)
      columns.push_back(epilogue.atColumn(b, firstColumn + (j + q), b.argument(numbers.n)));
  for (int64_t i = 0; i < warpM; i += 8) {
    Epilogue::Position row = epilogue.atRow(b, firstRow + i, place.endRow);
    Values own;
    for (int64_t j = 0; j < kWarpN / 8; ++j)
      llvm::append_range(own, sums.slice((i / 16 * (kWarpN / 8) + j) * 4 + i / 8 % 2 * 2, 2));
    if (width == 8)
      exchangeColumns(b, own);
    for (size_t c = 0; c < columns.size(); c += width)
      epilogue.compute(b, row, MutableArrayRef(columns).slice(c, width), ArrayRef(own).slice(c, width));
  }
  Expr part = (tile.batch * countTiles(numbers.m, config.tileM) + tile.m) * kWarpsM + b.warp() % kWarpsM;
  epilogue.finishTile(b, columns, part, /*lanes=*/{4, 8, 16});
}

MmaKernel::Place MmaKernel::findPlace() {
  Expr tilesM = countTiles(numbers.m, config.tileM), tilesN = countTiles(numbers.n, config.tileN);
  Expr m = b.argument(numbers.m), kBytes = b.argument(numbers.kBytes);
  if (numbers.groups && numbers.groups->ofResult) {
    Expr tileRow = b.block(0) / tilesN;
    GroupOfTile group = findGroupOfTile(b, *numbers.groups, m, tileRow, config.tileM);
    Expr firstRow = group.begin + (tileRow - group.firstTile) * config.tileM;
    return {{group.group, tileRow, b.block(0) % tilesN},
            firstRow,
            group.end,
            select(group.isGroup, kBytes, b.number(0)),
            std::nullopt};
  }
  Tile tile = findTile(b, b.block(0), tilesM, tilesN);
  Place place{tile, tile.m * config.tileM, m, kBytes, std::nullopt};
  if (numbers.groups) {
    int64_t bytes = lhs.type.getIntOrFloatBitWidth() / 8;
    place.summed = findRowsOfGroup(b, *numbers.groups, kBytes / bytes, tile.batch, kOperandAlignment / bytes);
    place.kBytes = (place.summed->end - place.summed->begin) * bytes;
  }
  return place;
}

MmaSide MmaKernel::makeSide(const MmaOperand &operand, const Place &place, bool isLhs) {
  const BatchArguments &batches = isLhs ? numbers.lhsBatch : numbers.rhsBatch;
  Value start = batches.findStart(b, b.globalPointer(isLhs ? numbers.lhs : numbers.rhs), place.tile.batch);
  Expr pitch = b.argument(isLhs ? numbers.lhsPitch : numbers.rhsPitch);
  if (place.summed) // in place, or copied by groups
    start = b.at(start, operand.isTransposed
                            ? widen(place.summed->begin) * pitch
                            : widen(place.summed->start) * (operand.type.getIntOrFloatBitWidth() / 8));
  if (isLhs)
    return {operand, start, place.firstRow, place.endRow, pitch, place.kBytes, std::nullopt};
  return {operand,      start,       place.tile.n * operand.rows, b.argument(numbers.n), pitch,
          place.kBytes, std::nullopt};
}

void MmaKernel::build(Epilogue &epilogue) {
  Place place = findPlace();
  MmaSide sides[] = {makeSide(lhs, place, /*isLhs=*/true), makeSide(rhs, place, /*isLhs=*/false)};
  if (matmul.scalesAlongK != ScalesAlongK::none)
    for (MmaSide &side : sides)
      side.scales = epilogue.findScales(b, side.operand.start == 0, place.tile.batch,
                                        atMost(side.first + b.thread(), side.count - 1));
  for (int64_t step = 0; step < config.stages - 1; ++step)
    stages.fill(sides, b.number(step));
  bool inParts = matmul.split || matmul.scalesAlongK != ScalesAlongK::none;
  Values sums = inParts ? sumParts(sides) : sumFast(sides);
  NVVM::CpAsyncWaitGroupOp::create(b, 0);
  epilogue.start(b, place.tile.batch);
  storeTile(epilogue, place, sums);
}

bool fp8::lowerMmaMatmul(OpBuilder &builder, const MatmulView &matmul, const MatmulConfig &config,
                         LoweringContext &context) {
  Location loc = matmul.op->getLoc();
  Type lhsType = getElementTypeOrSelf(matmul.lhs), rhsType = getElementTypeOrSelf(matmul.rhs);
  bool mayTranspose = lhsType.getIntOrFloatBitWidth() == 16; // which ldmatrix transposes
  auto [lhs, rhs] = matmul.groups
                        ? prepareGroupedOperands(builder, context, matmul, kOperandAlignment)
                        : std::array{prepareOperand(builder, context, matmul, /*isLhs=*/true, mayTranspose),
                                     prepareOperand(builder, context, matmul, /*isLhs=*/false, mayTranspose)};
  auto index = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(builder, loc, value); };
  Value m = matmul.buildSize(builder, matmul.dims.m), n = matmul.buildSize(builder, matmul.dims.n);
  Value batch = matmul.buildSize(builder, matmul.dims.batch);
  Value kBytes = builder.createOrFold<arith::MulIOp>(loc, matmul.buildSize(builder, matmul.dims.k),
                                                     index(lhsType.getIntOrFloatBitWidth() / 8));
  KernelArguments arguments(builder, loc);
  MmaArguments numbers{arguments.addPointer(lhs.memref),
                       arguments.addPointer(rhs.memref),
                       arguments.addI32(m),
                       arguments.addI32(n),
                       arguments.addI32(kBytes),
                       arguments.addI64(lhs.pitch),
                       arguments.addI64(rhs.pitch),
                       BatchArguments(arguments, lhs),
                       BatchArguments(arguments, rhs),
                       std::nullopt};
  if (matmul.groups)
    numbers.groups.emplace(arguments, builder, loc, *matmul.groups);
  auto multiply = [&](Value lhs, Value rhs) { return builder.createOrFold<arith::MulIOp>(loc, lhs, rhs); };
  auto countTiles = [&](Value size, int64_t tile) {
    return builder.createOrFold<arith::CeilDivUIOp>(loc, size, index(tile));
  };
  Value tilesM = multiply(batch, countTiles(m, config.tileM));
  if (matmul.groups &&
      matmul.groups->ofResult) // each group, and the rows of none, may end in a part of a tile
    tilesM = builder.createOrFold<arith::AddIOp>(
        loc, builder.createOrFold<arith::AddIOp>(loc, countTiles(m, config.tileM), index(1)),
        memref::DimOp::create(builder, loc, matmul.groups->ends, 0));
  Epilogue epilogue(builder, matmul, arguments, multiply(tilesM, index(kWarpsM)));

  KernelSpec spec = describeKernel(matmul, arguments);
  spec.threads = MmaKernel::countThreads(config);
  spec.sharedBytes = config.stages * MmaStages::countBytes(config, matmul);
  spec.blocks = kBlocks;
  spec.instruction = nameInstruction(context.chip, MatmulFamily::mma, lhsType, rhsType, "16", "8");
  bool isLeftTransposed = lhs.isTransposed, isRightTransposed = rhs.isTransposed;
  func::FuncOp kernel = context.kernels.build(loc, spec, [&](KernelBuilder &b) {
    MmaOperand left{lhsType, isLeftTransposed, config.tileM, /*start=*/0};
    MmaOperand right{rhsType, isRightTransposed, config.tileN, config.tileM * config.tileKBytes};
    MmaKernel(b, config, context.chip, left, right, matmul, numbers).build(epilogue);
  });
  auto launch =
      launchMatmul(builder, matmul, kernel, multiply(tilesM, countTiles(n, config.tileN)), arguments);
  addMatmulClocks(launch, context.chip, matmul, config, /*inParts=*/true);
  epilogue.finish(builder, launch, context);
  return true;
}
