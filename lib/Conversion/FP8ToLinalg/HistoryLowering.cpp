// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// update_amax_history: loops over all columns, contiguous in each row.

#include "Lowering.h"
#include "ScalarBuilder.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace fp8;

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
  RecipeAttrInterface recipe = op.getRecipe();
  auto delayed = dyn_cast<DelayedScalingAttr>(getBaseRecipe(recipe));
  auto historyType = cast<MemRefType>(op.getHistory().getType());
  if (!delayed || !historyType.hasStaticShape())
    return op.emitOpError() << "of recipe " << recipe
                            << " or of dynamic shape has no lowering for the CPU yet";
  int64_t rows = historyType.getDimSize(0), columnCount = historyType.getDimSize(1);
  Location loc = op.getLoc();
  ScalarBuilder s(builder, loc);
  Value zero = s.index(0), one = s.index(1), columns = s.index(columnCount), last = s.index(rows - 1);
  Value scale = op.getScale(), history = op.getHistory(), amaxes = op.getAmaxes();

  SmallVector<float> numerators(columnCount, 0.0f);
  for (auto [column, format] : llvm::zip(op.getColumns(), op.getFormats()))
    numerators[column] = getScaleNumerator(recipe, cast<FloatType>(cast<TypeAttr>(format).getValue()));
  Value numeratorTable = buildTable<float>(builder, loc, op, numerators, builder.getF32Type());
  Value columnTable = buildTable<int64_t>(builder, loc, op, op.getColumns(), builder.getI64Type());
  auto count = [&](ScalarBuilder &s, Value amax) {
    return delayed.getIgnoreNonFinite() ? s.finiteOrZero(amax) : amax;
  };
  auto scratch = MemRefType::get({columnCount}, builder.getF32Type());
  Value current = memref::AllocOp::create(builder, loc, scratch);
  Value amax = memref::AllocOp::create(builder, loc, scratch);

  // The current amax of each column: 0 where this step recorded none, which leaves a
  // column as it is; otherwise at least what an earlier cast staged in row 0.
  s.loop(zero, columns, [&](ScalarBuilder &s, Value c) { s.store(s.real(0.0f), current, c); });
  s.loop(zero, s.index(op.getColumns().size()), [&](ScalarBuilder &s, Value i) {
    Value c = arith::IndexCastOp::create(s.b, loc, s.b.getIndexType(), s.load(columnTable, i));
    Value staged = arith::MaximumFOp::create(s.b, loc, count(s, s.load(history, {zero, c})),
                                             count(s, s.load(amaxes, i)));
    s.store(arith::MaximumFOp::create(s.b, loc, staged, s.load(current, c)), current, c);
  });

  auto hasRun = [&](ScalarBuilder &s, Value c) {
    return s.compare(arith::CmpFPredicate::UNE, s.load(current, c), s.real(0.0f));
  };
  // The amax that the next scale follows from; a NaN counts only where nothing else does.
  if (FlatSymbolRefAttr function = recipe.getAmaxFunction()) {
    Value column = memref::AllocOp::create(builder, loc, MemRefType::get({rows}, builder.getF32Type()));
    s.loop(zero, columns, [&](ScalarBuilder &s, Value c) {
      s.ifThen(hasRun(s, c), [&](ScalarBuilder &s) {
        s.store(s.load(current, c), column, zero);
        s.loop(one, s.index(rows), [&](ScalarBuilder &s, Value row) {
          s.store(count(s, s.load(history, {row, c})), column, row);
        });
        s.store(inlineFunction(s, op, function, column), amax, c);
      });
    });
  } else {
    s.loop(zero, columns, [&](ScalarBuilder &s, Value c) { s.store(s.load(current, c), amax, c); });
    if (delayed.getAmaxComputeAlgo() == AmaxComputeAlgo::max)
      s.loop(one, s.index(rows), [&](ScalarBuilder &s, Value row) {
        s.loop(zero, columns, [&](ScalarBuilder &s, Value c) {
          Value past = count(s, s.load(history, {row, c}));
          s.store(arith::MaxNumFOp::create(s.b, loc, s.load(amax, c), past), amax, c);
        });
      });
  }

  auto nextScale = [&](ScalarBuilder &s, Value c) {
    return computeScale(s, op, recipe, s.load(numeratorTable, c), s.load(amax, c), s.load(scale, c));
  };
  s.loop(zero, columns, [&](ScalarBuilder &s, Value c) {
    if (recipe.getScaleFunction()) // not asked about columns that did not run
      s.ifThen(hasRun(s, c), [&](ScalarBuilder &s) { s.store(nextScale(s, c), scale, c); });
    else
      s.store(s.select(hasRun(s, c), nextScale(s, c), s.load(scale, c)), scale, c);
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
