// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From amaxes to scales: current scaling at once, delayed scaling through the history.

#include "Lowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"
#include <cfloat>
#include <cmath>

using namespace mlir;
using namespace fp8;

namespace {

/// Shorthand for scalar f32 arithmetic.
class ScalarBuilder {
public:
  ScalarBuilder(OpBuilder &builder, Location loc) : b(builder), loc(loc) {}

  Value real(float value) { return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value)); }
  Value index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value compare(arith::CmpFPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpFOp::create(b, loc, predicate, lhs, rhs);
  }
  Value select(Value condition, Value yes, Value no) {
    return arith::SelectOp::create(b, loc, condition, yes, no);
  }
  Value load(Value memref, ValueRange indices) { return memref::LoadOp::create(b, loc, memref, indices); }
  void store(Value value, Value memref, ValueRange indices) {
    memref::StoreOp::create(b, loc, value, memref, indices);
  }
  void loop(Value from, Value to, function_ref<void(ScalarBuilder &, Value)> body) {
    scf::ForOp::create(b, loc, from, to, index(1), ValueRange(),
                       [&](OpBuilder &inner, Location, Value i, ValueRange) {
                         ScalarBuilder nested(inner, loc);
                         body(nested, i);
                         scf::YieldOp::create(inner, loc);
                       });
  }

  /// 0 < amax < Inf: neither 0, Inf nor NaN.
  Value isUsable(Value amax) {
    Value positive = compare(arith::CmpFPredicate::OGT, amax, real(0.0f));
    Value finite = compare(arith::CmpFPredicate::OLT, amax, real(INFINITY));
    return arith::AndIOp::create(b, loc, positive, finite);
  }
  /// numerator / amax; the largest f32 where that overflows.
  Value saturatingQuotient(Value numerator, Value amax) {
    Value quotient = arith::DivFOp::create(b, loc, numerator, amax);
    Value overflows = compare(arith::CmpFPredicate::OEQ, quotient, real(INFINITY));
    return select(overflows, real(FLT_MAX), quotient);
  }
  /// A normal value floored to a power of two: its mantissa cleared.
  Value floorToPowerOf2(Value value) {
    Value bits = arith::BitcastOp::create(b, loc, b.getI32Type(), value);
    Value mask = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0x7F800000));
    return arith::BitcastOp::create(b, loc, b.getF32Type(),
                                    arith::AndIOp::create(b, loc, bits, mask).getResult());
  }

  OpBuilder &b;
  Location loc;
};

} // namespace

LogicalResult fp8::lowerComputeScale(OpBuilder &builder, ComputeScaleOp op) {
  auto recipe = dyn_cast<CurrentScalingAttr>(op.getRecipe());
  if (!recipe || cast<MemRefType>(op.getOuts().getType()).getRank() != 0)
    return op.emitOpError() << "of recipe " << op.getRecipe()
                            << " has no lowering for the CPU yet; use --recipe=delayed or --recipe=current";
  ScalarBuilder s(builder, op.getLoc());
  Value amax = s.load(op.getAmax(), {});
  // maximumf keeps NaN, which then asks for scale 1.
  amax = arith::MaximumFOp::create(builder, op.getLoc(), amax, s.real(recipe.getEps().convertToFloat()));
  Value scale = s.saturatingQuotient(s.real(getFP8Max(cast<FloatType>(op.getFormat()))), amax);
  if (recipe.getPower_2Scale())
    scale = s.floorToPowerOf2(scale);
  s.store(s.select(s.isUsable(amax), scale, s.real(1.0f)), op.getOuts(), {});
  return success();
}

//===----------------------------------------------------------------------===//
// update_amax_history: loops over all columns, contiguous in each row
//===----------------------------------------------------------------------===//

/// A private constant of the module that holds `values`.
template <typename T>
static Value buildTable(OpBuilder &builder, Location loc, Operation *op, ArrayRef<T> values,
                        Type elementType) {
  auto module = op->getParentOfType<ModuleOp>();
  auto count = static_cast<int64_t>(values.size());
  auto data = DenseElementsAttr::get(RankedTensorType::get({count}, elementType), values);
  auto type = MemRefType::get({count}, elementType);
  std::string name;
  for (int i = 0; name.empty() || module.lookupSymbol(name); ++i)
    name = "fp8_table_" + llvm::utostr(i);
  OpBuilder::InsertionGuard guard(builder);
  Location moduleLoc = module.getLoc();
  OpBuilder moduleBuilder = OpBuilder::atBlockBegin(module.getBody());
  memref::GlobalOp::create(moduleBuilder, moduleLoc, name, moduleBuilder.getStringAttr("private"), type, data,
                           /*constant=*/true, /*alignment=*/IntegerAttr());
  return memref::GetGlobalOp::create(builder, loc, type, name);
}

LogicalResult fp8::lowerUpdateAmaxHistory(OpBuilder &builder, UpdateAmaxHistoryOp op) {
  auto recipe = dyn_cast<DelayedScalingAttr>(op.getRecipe());
  auto historyType = cast<MemRefType>(op.getHistory().getType());
  if (!recipe || !historyType.hasStaticShape())
    return op.emitOpError() << "of recipe " << op.getRecipe()
                            << " or of dynamic shape has no lowering for the CPU yet";
  int64_t rows = historyType.getDimSize(0), columnCount = historyType.getDimSize(1);
  Location loc = op.getLoc();
  ScalarBuilder s(builder, loc);
  Value zero = s.index(0), one = s.index(1), columns = s.index(columnCount), last = s.index(rows - 1);
  Value scale = op.getScale(), history = op.getHistory(), amaxes = op.getAmaxes();

  SmallVector<float> numerators(columnCount, 0.0f);
  for (auto [column, format] : llvm::zip(op.getColumns(), op.getFormats()))
    numerators[column] = std::ldexp(getFP8Max(cast<FloatType>(cast<TypeAttr>(format).getValue())),
                                    -static_cast<int>(recipe.getMargin()));
  Value numeratorTable = buildTable<float>(builder, loc, op, numerators, builder.getF32Type());
  Value columnTable = buildTable<int64_t>(builder, loc, op, op.getColumns(), builder.getI64Type());
  auto scratch = MemRefType::get({columnCount}, builder.getF32Type());
  Value current = memref::AllocOp::create(builder, loc, scratch);
  Value amax = memref::AllocOp::create(builder, loc, scratch);

  // The current amax of each column: 0 where this step recorded none, which leaves a
  // column as it is; otherwise at least what an earlier cast staged in row 0.
  s.loop(zero, columns, [&](ScalarBuilder &s, Value c) { s.store(s.real(0.0f), current, c); });
  s.loop(zero, s.index(op.getColumns().size()), [&](ScalarBuilder &s, Value i) {
    Value c = arith::IndexCastOp::create(s.b, loc, s.b.getIndexType(), s.load(columnTable, i));
    Value staged = arith::MaximumFOp::create(s.b, loc, s.load(history, {zero, c}), s.load(amaxes, i));
    s.store(arith::MaximumFOp::create(s.b, loc, staged, s.load(current, c)), current, c);
  });

  // The amax that the next scale follows from; a NaN counts only where nothing else does.
  s.loop(zero, columns, [&](ScalarBuilder &s, Value c) { s.store(s.load(current, c), amax, c); });
  if (recipe.getAmaxComputeAlgo() == AmaxComputeAlgo::max)
    s.loop(one, s.index(rows), [&](ScalarBuilder &s, Value row) {
      s.loop(zero, columns, [&](ScalarBuilder &s, Value c) {
        Value larger = arith::MaxNumFOp::create(s.b, loc, s.load(amax, c), s.load(history, {row, c}));
        s.store(larger, amax, c);
      });
    });

  auto hasRun = [&](ScalarBuilder &s, Value c) {
    return s.compare(arith::CmpFPredicate::UNE, s.load(current, c), s.real(0.0f));
  };
  s.loop(zero, columns, [&](ScalarBuilder &s, Value c) {
    Value next = s.saturatingQuotient(s.load(numeratorTable, c), s.load(amax, c));
    Value changes = arith::AndIOp::create(s.b, loc, hasRun(s, c), s.isUsable(s.load(amax, c)));
    s.store(s.select(changes, next, s.load(scale, c)), scale, c);
  });

  // Rotate: row i takes row i+1, the last row the current amax, row 0 is staged anew.
  auto moveRow = [&](ScalarBuilder &s, Value row, function_ref<Value(ScalarBuilder &, Value)> from) {
    s.loop(zero, columns, [&](ScalarBuilder &s, Value c) {
      Value kept = s.load(history, {row, c});
      s.store(s.select(hasRun(s, c), from(s, c), kept), history, {row, c});
    });
  };
  if (rows > 1) {
    s.loop(one, last, [&](ScalarBuilder &s, Value row) {
      moveRow(s, row, [&](ScalarBuilder &s, Value c) {
        return s.load(history, {arith::AddIOp::create(s.b, loc, row, one), c});
      });
    });
    moveRow(s, last, [&](ScalarBuilder &s, Value c) { return s.load(current, c); });
  }
  moveRow(s, zero, [&](ScalarBuilder &s, Value) { return s.real(0.0f); });
  return success();
}
