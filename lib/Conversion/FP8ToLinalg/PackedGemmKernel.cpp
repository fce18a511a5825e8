// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The micro-kernel: a register tile of sums, one vector of B times one element of A per fused
// multiply-add, K in increasing order. One private function per module for `fast` and for `split`.

#include "fp8/Conversion/FP8ToLinalg/PackedGemm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp8;

/// The number of products in a partial sum of `split` accumulation.
static constexpr int64_t kSplitLength = 128;

namespace {
/// Emits the sums of one register tile: rows x columns elements of c.
class TileBuilder {
public:
  TileBuilder(OpBuilder &builder, Location loc, func::FuncOp gemm, PackedGemmTile tile, ValueRange position)
      : builder(builder), loc(loc), a(gemm.getArgument(0)), b(gemm.getArgument(1)), c(gemm.getArgument(2)),
        tile(tile), batch(position[0]), column(position[1]), row(position[2]) {}

  void build(bool split);

private:
  Value index(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  SmallVector<Value> zeros();
  /// Adds the products of k in [begin, end) to `sums`, in order.
  SmallVector<Value> accumulate(Value begin, Value end, ValueRange sums);
  /// Sums blocks of kSplitLength products, each from zero, and adds them in order.
  SmallVector<Value> accumulateBlocks(Value depth);
  void store(ValueRange sums);

  OpBuilder builder;
  Location loc;
  Value a, b, c;
  PackedGemmTile tile;
  Value batch, column, row;
};
} // namespace

SmallVector<Value> TileBuilder::zeros() {
  auto type = VectorType::get(tile.columns, builder.getF32Type());
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  return SmallVector<Value>(tile.rows, zero);
}

SmallVector<Value> TileBuilder::accumulate(Value begin, Value end, ValueRange sums) {
  auto loop = scf::ForOp::create(builder, loc, begin, end, index(1), sums);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value k = loop.getInductionVar(), zero = index(0);
  auto type = cast<VectorType>(sums.front().getType());
  Value right = vector::LoadOp::create(builder, loc, type, b, ValueRange{batch, column, k, zero});
  SmallVector<Value> next;
  for (auto [position, sum] : llvm::enumerate(loop.getRegionIterArgs())) {
    Value left = memref::LoadOp::create(builder, loc, a, ValueRange{batch, row, k, index(position)});
    Value spread = vector::BroadcastOp::create(builder, loc, type, left);
    next.push_back(vector::FMAOp::create(builder, loc, spread, right, sum));
  }
  scf::YieldOp::create(builder, loc, next);
  return loop.getResults();
}

SmallVector<Value> TileBuilder::accumulateBlocks(Value depth) {
  Value length = index(kSplitLength);
  auto loop = scf::ForOp::create(builder, loc, index(0), depth, length, zeros());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value begin = loop.getInductionVar();
  Value whole = arith::AddIOp::create(builder, loc, begin, length);
  Value end = arith::MinSIOp::create(builder, loc, whole, depth);
  SmallVector<Value> next;
  for (auto [sum, block] : llvm::zip_equal(loop.getRegionIterArgs(), accumulate(begin, end, zeros())))
    next.push_back(arith::AddFOp::create(builder, loc, sum, block));
  scf::YieldOp::create(builder, loc, next);
  return loop.getResults();
}

void TileBuilder::store(ValueRange sums) {
  Value firstRow = arith::MulIOp::create(builder, loc, row, index(tile.rows));
  Value firstColumn = arith::MulIOp::create(builder, loc, column, index(tile.columns));
  for (auto [position, sum] : llvm::enumerate(sums)) {
    Value target = arith::AddIOp::create(builder, loc, firstRow, index(position));
    vector::StoreOp::create(builder, loc, sum, c, ValueRange{batch, target, firstColumn});
  }
}

void TileBuilder::build(bool split) {
  Value depth = memref::DimOp::create(builder, loc, a, 2);
  store(split ? accumulateBlocks(depth) : accumulate(index(0), depth, zeros()));
}

/// The outer loop is over panels of B, the inner one over panels of A, so that a panel of B stays in
/// the L1 cache.
static void buildBody(OpBuilder &builder, func::FuncOp gemm, bool split, const PackedGemmTile &tile) {
  Location loc = gemm.getLoc();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(gemm.addEntryBlock());
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value batches = memref::DimOp::create(builder, loc, gemm.getArgument(0), zero);
  Value rows = memref::DimOp::create(builder, loc, gemm.getArgument(0), one);
  Value columns = memref::DimOp::create(builder, loc, gemm.getArgument(1), one);
  scf::ParallelOp::create(builder, loc, ValueRange{zero, zero, zero}, ValueRange{batches, columns, rows},
                          ValueRange{one, one, one},
                          [&](OpBuilder &body, Location bodyLoc, ValueRange position) {
                            TileBuilder(body, bodyLoc, gemm, tile, position).build(split);
                          });
  func::ReturnOp::create(builder, loc);
}

func::FuncOp fp8::getOrCreatePackedGemm(ModuleOp module, bool split, const PackedGemmTile &tile) {
  StringRef name = split ? "fp8_cpu_gemm_f32_split" : "fp8_cpu_gemm_f32";
  if (auto existing = module.lookupSymbol<func::FuncOp>(name))
    return existing;
  OpBuilder builder(module.getBodyRegion());
  constexpr int64_t any = ShapedType::kDynamic;
  Type f32 = builder.getF32Type();
  Type inputs[] = {MemRefType::get({any, any, any, tile.rows}, f32),
                   MemRefType::get({any, any, any, tile.columns}, f32),
                   MemRefType::get({any, any, any}, f32)};
  auto gemm =
      func::FuncOp::create(builder, builder.getUnknownLoc(), name, builder.getFunctionType(inputs, {}));
  gemm.setPrivate();
  buildBody(builder, gemm, split, tile);
  return gemm;
}
