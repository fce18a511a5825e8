// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums of columns. The order of a sum depends on the shape of the tensor alone.

#include "ColumnSums.h"
#include "KernelArguments.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp8;

static Value toIndex(KernelBuilder &b, Expr value) {
  return arith::IndexCastUIOp::create(b, b.getIndexType(), value.getValue());
}

void fp8::storeColumnSums(KernelBuilder &b, ArrayRef<Value> sums, function_ref<void(Expr, Expr)> store) {
  // Lanes i and i + 16 have the same columns. The first one continues with columns 0 to 3 of the 8, the other
  // one with 4 to 7: unit 16 * half + chunk of 4 columns, so that the banks of a warp's stores are all
  // different.
  constexpr int64_t kUnits = 32, kWarps = 8;
  Expr thread = b.thread(), half = b.lane() / 16, chunk = thread % 16;
  SmallVector<Value> kept;
  for (unsigned j = 0; j < 4; ++j) {
    auto both = [&](Value sum) {
      Value other = NVVM::ShflOp::create(b, b.getF32Type(), b.number(-1).getValue(), sum,
                                         b.number(16).getValue(), b.number(31).getValue(),
                                         NVVM::ShflKind::bfly, /*return_value_and_is_valid=*/UnitAttr());
      return b.expr(sum) + b.expr(other);
    };
    kept.push_back(select(half == 0, both(sums[j]), both(sums[4 + j])).getValue());
  }
  auto type = VectorType::get(4, b.getF32Type());
  Value shared = b.staticShared(MemRefType::get({kWarps, kUnits * 4}, b.getF32Type()));
  b.barrier(); // another sum may still be read there
  vector::StoreOp::create(b, vector::FromElementsOp::create(b, type, kept), shared,
                          ValueRange{toIndex(b, b.warp()), toIndex(b, (half * 16 + chunk) * 4)},
                          /*nontemporal=*/false, llvm::MaybeAlign(16));
  b.barrier();
  b.when(thread < kUnits * 4, [&] {
    Expr sum = b.real(0.0f);
    for (int64_t warp = 0; warp < kWarps; ++warp)
      sum = sum + b.expr(memref::LoadOp::create(b, shared,
                                                ValueRange{toIndex(b, b.number(warp)), toIndex(b, thread)}));
    Expr unit = thread / 4;
    store(unit % 16 * 8 + unit / 16 * 4 + thread % 4, sum);
  });
}

void fp8::launchSumOfRows(OpBuilder &builder, LoweringContext &context, Location loc, Value rows,
                          Value sums) {
  constexpr int64_t kColumns = 32, kWarps = 8;
  auto type = cast<MemRefType>(rows.getType());
  int64_t count = type.getDimSize(0), columns = type.getDimSize(1);
  KernelArguments arguments(builder, loc);
  unsigned from = arguments.addPointer(rows), to = arguments.addPointer(sums), countArgument = 0;
  bool isDynamic = ShapedType::isDynamic(count);
  if (isDynamic)
    countArgument = arguments.addI32(cast<Value>(memref::getMixedSize(builder, loc, rows, 0)));
  KernelSpec spec;
  spec.name = "sum_of_rows";
  spec.kind = "reductions";
  spec.arguments = arguments.types;
  spec.threads = kColumns * kWarps;
  // Warp w adds rows w, w + 8, …; the first warp adds their sums.
  func::FuncOp kernel = context.kernels.build(loc, spec, [&](KernelBuilder &b) {
    Expr column = b.block(0) * kColumns + b.lane();
    Expr read = atMost(column, columns - 1);
    Value start = b.globalPointer(from), zero = b.real(0.0f).getValue();
    Expr end = isDynamic ? b.argument(countArgument) + (kWarps - 1) : b.number(count + kWarps - 1);
    Value sum = b.loop(
        b.number(0), (end - b.warp()) / kWarps, zero, [&](Expr i, ValueRange carried) -> SmallVector<Value> {
          Expr row = i * kWarps + b.warp();
          Expr position = widen(row) * columns + widen(read);
          return {(b.expr(carried[0]) + b.load(b.getF32Type(), b.at(start, position * 4))).getValue()};
        })[0];
    Value shared = b.staticShared(MemRefType::get({kWarps, kColumns}, b.getF32Type()));
    memref::StoreOp::create(b, sum, shared, ValueRange{toIndex(b, b.warp()), toIndex(b, b.lane())});
    b.barrier();
    b.when((b.warp() == 0) & (column < columns), [&] {
      Expr total = b.real(0.0f);
      for (int64_t warp = 0; warp < kWarps; ++warp)
        total = total + b.expr(memref::LoadOp::create(
                            b, shared, ValueRange{toIndex(b, b.number(warp)), toIndex(b, b.lane())}));
      b.store(total, b.at(b.globalPointer(to), widen(column) * 4));
    });
  });
  Value blocks =
      arith::ConstantIndexOp::create(builder, loc, std::max<int64_t>(llvm::divideCeil(columns, kColumns), 1));
  launchKernel(builder, loc, kernel, blocks, arguments.operands);
}
