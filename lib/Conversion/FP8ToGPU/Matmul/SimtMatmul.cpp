// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matmuls without tensor cores: f32 operands, and mixes of f32, bf16 and f16. A block computes 64 x 64 sums,
// a thread 4 x 4 of them; 16 steps along K of both operands are in shared memory, as f32. A sum is a chain of
// fused multiply-adds in the order of K, as on the CPU: the same bits. Operands may have any strides.

#include "Epilogue.h"
#include "MatmulConfig.h"
#include "MatmulLowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fp8;

/// Sizes of a tile, elements of a thread in each direction, and threads.
static constexpr int64_t kTile = 64, kSteps = 16, kOwn = 4, kThreads = 256;
/// Bytes of a step's row in shared memory: four more elements keep writes along K free of bank conflicts.
static constexpr int64_t kRowBytes = (kTile + 4) * 4, kOperandBytes = kSteps * kRowBytes;
/// Lanes of a warp that have different rows, and the parts of a column's sum in a tile: one per warp.
static constexpr int64_t kRowLane = 16, kParts = kThreads / 32;

namespace {
/// An operand, by the numbers of its arguments.
struct Side {
  Type type;
  unsigned pointer, rows, rowStride, kStride;
  BatchArguments batches;
  bool isAlongK; ///< whether neighbours along K are neighbours in memory
};

class SimtKernel {
public:
  SimtKernel(KernelBuilder &b, const Side (&sides)[2], unsigned k) : b(b), sides(sides), k(k) {}
  void build(Epilogue &epilogue);

private:
  void fill(const Side &side, Value batch, Expr firstRow, Expr firstStep, Value target, float padding);
  SmallVector<Value> multiply(Value lhs, Value rhs, ValueRange sums);
  Expr countTiles(const Side &side) { return (b.argument(side.rows) + (kTile - 1)) / kTile; }
  Expr ownRow() { return b.thread() / (kTile / kOwn) * kOwn; }
  Expr ownColumn() { return b.thread() % (kTile / kOwn) * kOwn; }

  KernelBuilder &b;
  const Side (&sides)[2];
  unsigned k;
};
} // namespace

/// Copies 16 steps of 64 rows to shared memory, `padding` where there are none. Threads go along what is
/// contiguous in memory.
void SimtKernel::fill(const Side &side, Value batch, Expr firstRow, Expr firstStep, Value target,
                      float padding) {
  for (int64_t i = 0; i < kTile * kSteps; i += kThreads) {
    Expr number = b.thread() + i;
    Expr row = side.isAlongK ? number / kSteps : number % kTile;
    Expr step = side.isAlongK ? number % kSteps : number / kTile;
    Expr inOperand = firstRow + row, along = firstStep + step;
    Expr exists = (inOperand < b.argument(side.rows)) & (along < b.argument(k));
    SmallVector<Value> loaded = b.whenElse(
        exists,
        [&]() -> SmallVector<Value> {
          Expr offset =
              widen(inOperand) * b.argument(side.rowStride) + widen(along) * b.argument(side.kStride);
          Value element = b.load(side.type, b.at(batch, offset)).getValue();
          if (!side.type.isF32())
            element = arith::ExtFOp::create(b, b.getF32Type(), element);
          return {element};
        },
        b.real(padding).getValue());
    b.store(b.expr(loaded[0]), b.at(target, step * kRowBytes + row * 4));
  }
}

/// Adds the matmuls of 16 steps to the thread's sums, row by row.
SmallVector<Value> SimtKernel::multiply(Value lhs, Value rhs, ValueRange carried) {
  SmallVector<Value> sums(carried);
  auto loadOwn = [&](Value operand, Expr first, int64_t step) {
    return llvm::map_to_vector(llvm::seq<int64_t>(kOwn), [&](int64_t i) {
      return b.load(b.getF32Type(), b.at(operand, first * 4 + (step * kRowBytes + i * 4)));
    });
  };
  for (int64_t step = 0; step < kSteps; ++step) {
    SmallVector<Expr> rows = loadOwn(lhs, ownRow(), step), columns = loadOwn(rhs, ownColumn(), step);
    for (int64_t i = 0; i < kOwn * kOwn; ++i)
      sums[i] = fma(rows[i / kOwn], columns[i % kOwn], b.expr(sums[i])).getValue();
  }
  return sums;
}

void SimtKernel::build(Epilogue &epilogue) {
  Value lhs = b.dynamicShared(), rhs = b.at(lhs, b.number(kOperandBytes));
  Expr tilesM = countTiles(sides[0]);
  Tile tile = findTile(b, b.block(0), tilesM, countTiles(sides[1]));
  Expr firsts[] = {tile.m * kTile, tile.n * kTile};
  Value batches[2];
  for (int i = 0; i < 2; ++i)
    batches[i] = sides[i].batches.findStart(b, b.globalPointer(sides[i].pointer), tile.batch);
  SmallVector<Value> zeros(kOwn * kOwn, b.real(0).getValue());
  SmallVector<Value> sums = b.loop(b.number(0), (b.argument(k) + (kSteps - 1)) / kSteps, zeros,
                                   [&](Expr block, ValueRange carried) {
                                     b.barrier();
                                     // Beyond K, 0 · -0 is added, which keeps a sum of -0.
                                     fill(sides[0], batches[0], firsts[0], block * kSteps, lhs, 0.0f);
                                     fill(sides[1], batches[1], firsts[1], block * kSteps, rhs, -0.0f);
                                     b.barrier();
                                     return multiply(lhs, rhs, carried);
                                   });
  epilogue.start(b, tile.batch);
  SmallVector<Epilogue::Position> columns;
  for (int64_t j = 0; j < kOwn; ++j)
    columns.push_back(epilogue.atColumn(b, firsts[1] + ownColumn() + j, b.argument(sides[1].rows)));
  for (int64_t i = 0; i < kOwn; ++i) {
    Epilogue::Position row = epilogue.atRow(b, firsts[0] + ownRow() + i, b.argument(sides[0].rows));
    epilogue.compute(b, row, columns, ArrayRef(sums).slice(i * kOwn, kOwn));
  }
  epilogue.finishTile(b, columns, (tile.batch * tilesM + tile.m) * kParts + b.warp(), kRowLane);
}

bool fp8::lowerSimtMatmul(OpBuilder &builder, const MatmulView &matmul, const MatmulConfig &config,
                          LoweringContext &context) {
  Location loc = matmul.op->getLoc();
  auto isWide = [](Type type) { return type.isF32() || type.isBF16() || type.isF16(); };
  if (!isWide(getElementTypeOrSelf(matmul.lhs)) || !isWide(getElementTypeOrSelf(matmul.rhs)) || matmul.split)
    return false;
  KernelArguments arguments(builder, loc);
  auto addSide = [&](bool isLhs, Value rows) {
    MatmulOperand operand = prepareStridedOperand(builder, context, matmul, isLhs);
    Type type = getElementTypeOrSelf(operand.memref);
    return Side{type,
                arguments.addPointer(operand.memref),
                arguments.addI32(rows),
                arguments.addI64(operand.pitch),
                arguments.addI64(operand.kStride),
                BatchArguments(arguments, operand),
                isConstantIntValue(operand.kStride, type.getIntOrFloatBitWidth() / 8)};
  };
  Value m = matmul.buildSize(builder, matmul.dims.m), n = matmul.buildSize(builder, matmul.dims.n);
  Side sides[] = {addSide(/*isLhs=*/true, m), addSide(/*isLhs=*/false, n)};
  unsigned k = arguments.addI32(matmul.buildSize(builder, matmul.dims.k));
  auto multiply = [&](Value lhs, Value rhs) { return builder.createOrFold<arith::MulIOp>(loc, lhs, rhs); };
  auto index = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(builder, loc, value); };
  auto countTiles = [&](Value size) {
    return builder.createOrFold<arith::CeilDivUIOp>(loc, size, index(kTile));
  };
  Value tilesM = multiply(matmul.buildSize(builder, matmul.dims.batch), countTiles(m));
  Epilogue epilogue(builder, matmul, arguments, multiply(tilesM, index(kParts)));

  KernelSpec spec = describeKernel(matmul, arguments);
  spec.threads = kThreads;
  spec.sharedBytes = 2 * kOperandBytes;
  llvm::raw_string_ostream(spec.instruction) << "fma.rn.f32 " << sides[0].type << "·" << sides[1].type;
  func::FuncOp kernel =
      context.kernels.build(loc, spec, [&](KernelBuilder &b) { SimtKernel(b, sides, k).build(epilogue); });
  auto launch = launchMatmul(builder, matmul, kernel, multiply(tilesM, countTiles(n)), arguments);
  addMatmulClocks(launch, context.chip, matmul, config, /*inParts=*/true);
  epilogue.finish(builder, launch, context);
  return true;
}
