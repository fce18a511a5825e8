// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The results of a block of rows: its amax, the sums over its rows, and their columns.

#include "RowCastKernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp8;

/// Takes the maximum of all threads, so that few blocks wait for each other at one address.
void RowKernel::raiseAmax(Expr amax) {
  int64_t warps = plan.countThreads() / RowPlan::kWarp;
  auto largestOfWarp = [&](Expr value) {
    return b.expr(NVVM::ReduxOp::create(b, b.getI32Type(), value.getValue(), NVVM::ReduxKind::UMAX,
                                        b.number(-1).getValue()));
  };
  Value parts = b.staticShared(MemRefType::get({RowPlan::kWarp}, b.getI32Type()), /*number=*/2);
  Expr largest = largestOfWarp(amax);
  b.when(b.lane() == 0, [&] { memref::StoreOp::create(b, largest.getValue(), parts, toIndex(b.warp())); });
  b.barrier();
  b.when(b.warp() == 0, [&] {
    Expr part = b.expr(memref::LoadOp::create(b, parts, toIndex(b.lane() % warps)));
    b.atomicMaxOfWarp(part, pointers[work.amax.argument]);
  });
}

/// Writes the sums of the block's rows to its row of each buffer.
void RowKernel::storeSums(ValueRange sums) {
  for (const TileExtra &extra : work.extras) {
    if (!extra.isSum)
      continue;
    storeSum(extra.operand, sums.take_front(plan.countElements()));
    sums = sums.drop_front(plan.countElements());
  }
}

void RowKernel::storeSum(const TileOperand &operand, ValueRange sums) {
  auto store = [&](Expr column, Expr sum) {
    Expr position = widen(b.block(0)) * space.columns + widen(column);
    b.store(sum, b.at(pointer(operand), position * 4));
  };
  auto forEach = [&](function_ref<void(Expr column, Expr sum)> body) {
    for (int64_t chunk = 0; chunk < plan.chunks; ++chunk)
      when(isInRow(chunk), [&] {
        for (int64_t j = 0; j < plan.width; ++j)
          body(columnOf(chunk) + j, b.expr(sums[chunk * plan.width + j]));
      });
  };
  if (plan.teams == 1) {
    for (int64_t chunk = 0; chunk < plan.chunks; ++chunk)
      when(isInRow(chunk), [&] {
        Expr position = widen(b.block(0)) * space.columns + widen(columnOf(chunk));
        Value vector = vector::FromElementsOp::create(b, VectorType::get(plan.width, b.getF32Type()),
                                                      sums.slice(chunk * plan.width, plan.width));
        LLVM::StoreOp::create(b, vector, b.at(pointer(operand), position * 4), 4 * plan.width);
      });
    return;
  }
  b.barrier(); // the columns, or another sum, may still be read there
  forEach([&](Expr column, Expr sum) {
    memref::StoreOp::create(b, toBits(sum).getValue(), shared, toIndex(b.warp() * space.columns + column));
  });
  b.barrier();
  int64_t threads = plan.countThreads();
  b.loop(b.number(0), b.number(llvm::divideCeil(space.columns, threads)), {},
         [&](Expr i, ValueRange) -> Values {
           Expr column = thread + i * threads;
           b.when(column < space.columns, [&] {
             Expr total = b.real(0.0f);
             for (int64_t warp = 0; warp < RowPlan::kWarps; ++warp) {
               Value part = memref::LoadOp::create(b, shared, toIndex(column + warp * space.columns));
               total = total + fromBits(b.expr(part));
             }
             store(column, total);
           });
           return {};
         });
}

/// Writes the columns of the block's rows in parts of 16 rows of 4 columns, two parts of a column side by
/// side.
void RowKernel::storeColumns() {
  b.barrier();
  int64_t words = space.columns / 4, threads = plan.countThreads();
  b.loop(b.number(0), b.number(llvm::divideCeil(2 * words, threads)), {}, [&](Expr i, ValueRange) -> Values {
    Expr part = thread + i * threads, half = part % 2, word = part / 2;
    Expr live = (word < words) & isRow(firstRow + half * kPartRows);
    b.when(live, [&] { storeColumnPart(word, half); });
    return {};
  });
}

void RowKernel::storeColumnPart(Expr word, Expr half) {
  Expr first = firstRow + half * kPartRows;
  auto load = [&](int64_t r) {
    Expr place = (half * kPartRows + r) * getSharedPitch() + (word ^ half * kPartRows);
    return b.expr(memref::LoadOp::create(b, shared, toIndex(place)));
  };
  auto address = [&](Expr row, int64_t j) {
    return getAddress(b, space, *work.columns, pointer(*work.columns), {batch, row, word * 4 + j});
  };
  auto storeWhole = [&] {
    SmallVector<Values> columns(4);
    for (int64_t r = 0; r < kPartRows; r += 4)
      for (auto [j, bytes] :
           llvm::enumerate(b.transposeBytes({load(r), load(r + 1), load(r + 2), load(r + 3)})))
        columns[j].push_back(bytes.getValue());
    int64_t alignment = work.columns->getColumnAlignment(kPartRows);
    for (auto [j, column] : llvm::enumerate(columns)) {
      Value vector = vector::FromElementsOp::create(b, VectorType::get(4, b.getI32Type()), column);
      if (alignment % 4 != 0)
        vector = vector::BitCastOp::create(b, VectorType::get(kPartRows, b.getI8Type()), vector);
      LLVM::StoreOp::create(b, vector, address(first, j), alignment);
    }
  };
  std::optional<Expr> areMultiples = areMultiplesOf16(b, *work.columns);
  if (space.hasMultipleOfRows(kPartRows) && !areMultiples)
    return storeWhole();
  Expr end = getRows(b, space);
  Expr isWhole = first < (end.isNumber() ? Expr(space.rows - (kPartRows - 1)) : end - (kPartRows - 1));
  if (areMultiples)
    isWhole = isWhole & *areMultiples;
  b.when(isWhole, storeWhole);
  Expr isPart = first > (end.isNumber() ? Expr(space.rows - kPartRows) : end - kPartRows);
  if (areMultiples)
    isPart = !isWhole;
  b.when(isPart, [&] {
    for (int64_t r = 0; r < kPartRows; ++r)
      b.when(first + r < end, [&] {
        for (int64_t j = 0; j < 4; ++j) {
          Value byte = arith::TruncIOp::create(b, b.getI8Type(), (load(r) >> 8 * j).getValue());
          b.store(b.expr(byte), address(first + r, j));
        }
      });
  });
}
