// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expands fp8.update_amax_history into loops over all columns, which are contiguous in each row,
// around the code of the recipe. A history of few columns is walked by groups of rows, as one array:
// loops over a dozen elements would be vectors under masks, ten times as slow.

#include "LoopBuilder.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"

#include <numeric>

using namespace mlir;
using namespace fp8;

/// Creates a private constant of the module that holds `values`.
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

namespace {

/// Builds one update in four steps, each over all columns. Columns whose site did not run stay
/// unchanged.
class HistoryUpdate {
public:
  HistoryUpdate(OpBuilder &builder, UpdateAmaxHistoryOp op);
  void run() {
    collectCurrent();
    chooseAmax();
    computeScales();
    rotate();
  }

private:
  using FromColumn = function_ref<Value(LoopBuilder &, Value)>;
  using FromGroup = function_ref<void(LoopBuilder &, Value)>;
  void collectCurrent();
  void combineIntoCurrent(function_ref<Value(LoopBuilder &, Value i, Value c, Value known)> combine);
  void chooseAmax();
  void foldGroups(int64_t steps);
  void chooseAmaxOfColumns();
  void computeScales();
  void rotate();
  void moveRow(LoopBuilder &outer, Value row, FromColumn from);
  void moveGroups(int64_t groups);

  Value allocate(int64_t elements) {
    return memref::AllocOp::create(builder, loc, MemRefType::get({elements}, builder.getF32Type()));
  }
  /// Builds a loop that stores what `build` computes as the amax of each column.
  void forColumns(LoopBuilder &outer, FromColumn build) {
    outer.loop(zero, columns, [&](LoopBuilder &s, Value c) { s.store(build(s, c), amax, c); });
  }
  /// Builds a loop of `steps` steps over the groups that begin at `firstRow`, `groups` of them in each:
  /// `body` gets the place in `flat` of the first element of a step.
  void forGroups(int64_t firstRow, int64_t steps, int64_t groups, FromGroup body) {
    Value start = s.index(firstRow * columnCount);
    s.loop(zero, s.index(steps), [&](LoopBuilder &inner, Value step) {
      Value length = inner.index(groups * groupRows * columnCount);
      Value offset = arith::MulIOp::create(inner.b, loc, step, length);
      body(inner, arith::AddIOp::create(inner.b, loc, start, offset));
    });
  }
  /// Builds a loop over the rows of one group, from row `first`: `body` gets the row's first element.
  void forGroupRows(Value first, FromGroup body) {
    s.loop(first, s.index(groupRows), [&](LoopBuilder &inner, Value row) {
      body(inner, arith::MulIOp::create(inner.b, loc, row, columns));
    });
  }

  /// The value to use for an amax that this step recorded, and for one that an earlier cast staged in
  /// row 0.
  Value countRecorded(LoopBuilder &s, Value amax) { return recipe.buildRecorded(s.b, loc, amax); }
  Value countStaged(LoopBuilder &s, Value amax) {
    Value isSome = s.compare(arith::CmpFPredicate::UNE, amax, s.real(0.0f));
    return countRecorded(s, s.select(isSome, amax, s.real(noAmax)));
  }
  Value hasRun(LoopBuilder &s, Value c) {
    return s.compare(arith::CmpFPredicate::UNE, s.load(current, c), s.real(noAmax));
  }

  OpBuilder &builder;
  UpdateAmaxHistoryOp op;
  RecipeAttrInterface recipe;
  Location loc;
  LoopBuilder s;
  int64_t rows, columnCount;
  /// The rows of a group, and the history as one array; 1 and null if a row is long enough by itself.
  int64_t groupRows = 1;
  Value flat, groupElements;
  /// The value that stands for an amax that was not recorded.
  float noAmax;
  Value zero, one, columns, last;
  Value scale, history, amaxes;
  Value formatTable, columnTable;
  /// The amax of this step for each column, repeated for each row of a group.
  Value current;
  /// Per column: the amax that the next scale is computed from.
  Value amax;
};

} // namespace

/// Loops over fewer elements are not worth their start, or LLVM makes vectors under masks of them. A group is
/// a multiple of the lanes of a vector.
static constexpr int64_t kGroupElements = 128, kLanes = 16;
/// Groups that are folded in one step, so that the results are loaded and stored that much less often.
static constexpr int64_t kFoldedGroups = 4;

HistoryUpdate::HistoryUpdate(OpBuilder &builder, UpdateAmaxHistoryOp op)
    : builder(builder), op(op), recipe(op.getRecipe()), loc(op.getLoc()), s(builder, loc),
      scale(op.getScale()), history(op.getHistory()), amaxes(op.getAmaxes()) {
  auto type = cast<MemRefType>(history.getType());
  rows = type.getDimSize(0);
  noAmax = recipe.getNoAmax();
  columnCount = type.getDimSize(1);
  zero = s.index(0);
  one = s.index(1);
  columns = s.index(columnCount);
  last = s.index(rows - 1);

  SmallVector<float> largest(columnCount, 0.0f);
  for (auto [column, format] : llvm::zip(op.getColumns(), op.getFormats()))
    largest[column] = getFP8Max(cast<FloatType>(cast<TypeAttr>(format).getValue()));
  formatTable = buildTable<float>(builder, loc, op, largest, builder.getF32Type());
  columnTable = buildTable<int64_t>(builder, loc, op, op.getColumns(), builder.getI64Type());
  if (columnCount < kGroupElements && memref::CollapseShapeOp::isGuaranteedCollapsible(type, {{0, 1}}))
    groupRows =
        llvm::alignTo(llvm::divideCeil(kGroupElements, columnCount), kLanes / std::gcd(columnCount, kLanes));
  if (groupRows > 1) {
    flat = memref::CollapseShapeOp::create(builder, loc, history, ArrayRef<ReassociationIndices>{{0, 1}});
    groupElements = s.index(groupRows * columnCount);
  }
  current = allocate(groupRows * columnCount);
  amax = allocate(columnCount);
}

/// Computes the current amax of each column: `noAmax` if this step recorded none, which leaves the
/// column unchanged; else the maximum of the recorded amaxes and row 0, where an earlier cast may
/// have staged one. The amaxes of a column are combined before the recipe may discard the result,
/// because those of loops and ranks are combined already and dividing a batch must change nothing.
void HistoryUpdate::collectCurrent() {
  s.loop(zero, columns, [&](LoopBuilder &s, Value c) { s.store(s.real(noAmax), current, c); });
  combineIntoCurrent([&](LoopBuilder &s, Value i, Value, Value known) {
    return arith::MaximumFOp::create(s.b, loc, known, s.load(amaxes, i));
  });
  combineIntoCurrent([&](LoopBuilder &s, Value, Value c, Value recorded) {
    return arith::MaximumFOp::create(s.b, loc, countStaged(s, s.load(history, {zero, c})),
                                     countRecorded(s, recorded));
  });
  forGroupRows(one, [&](LoopBuilder &outer, Value start) {
    outer.loop(zero, columns, [&](LoopBuilder &s, Value c) {
      s.store(s.load(current, c), current, arith::AddIOp::create(s.b, loc, start, c).getResult());
    });
  });
}

/// Updates `current` of column c for every recorded amax i.
void HistoryUpdate::combineIntoCurrent(
    function_ref<Value(LoopBuilder &, Value i, Value c, Value known)> combine) {
  s.loop(zero, s.index(op.getColumns().size()), [&](LoopBuilder &s, Value i) {
    Value c = arith::IndexCastOp::create(s.b, loc, s.b.getIndexType(), s.load(columnTable, i));
    s.store(combine(s, i, c, s.load(current, c)), current, c);
  });
}

/// Computes the amax for the next scale as a fold over the rows, row by row over all columns, in the
/// order of memory.
void HistoryUpdate::chooseAmax() {
  if (recipe.readsWholeColumn())
    return chooseAmaxOfColumns();
  forColumns(s, [&](LoopBuilder &s, Value c) { return recipe.buildAmaxStart(s.b, loc, s.load(current, c)); });
  if (!recipe.readsHistory())
    return;
  int64_t steps = groupRows > 1 ? (rows - 1) / (kFoldedGroups * groupRows) : 0;
  if (steps > 0)
    foldGroups(steps);
  s.loop(s.index(1 + steps * kFoldedGroups * groupRows), s.index(rows), [&](LoopBuilder &outer, Value row) {
    forColumns(outer, [&](LoopBuilder &s, Value c) {
      Value past = recipe.buildPast(s.b, loc, s.load(history, {row, c}));
      return recipe.buildAmaxStep(s.b, loc, s.load(amax, c), past);
    });
  });
  forColumns(s, [&](LoopBuilder &s, Value c) {
    return recipe.buildAmaxEnd(s.b, loc, s.load(amax, c), s.load(current, c));
  });
}

/// Folds the rows of the same place in each group, then these places.
void HistoryUpdate::foldGroups(int64_t steps) {
  Value places = allocate(groupRows * columnCount);
  auto past = [&](LoopBuilder &s, Value start, Value i, int64_t group) {
    Value first = arith::AddIOp::create(s.b, loc, start, s.index(group * groupRows * columnCount));
    return recipe.buildPast(s.b, loc, s.load(flat, arith::AddIOp::create(s.b, loc, first, i).getResult()));
  };
  auto foldStep = [&](LoopBuilder &s, Value start, Value i, Value soFar, int64_t from) {
    for (int64_t group = from; group < kFoldedGroups; ++group)
      soFar = recipe.buildAmaxStep(s.b, loc, soFar, past(s, start, i, group));
    return soFar;
  };
  s.loop(zero, groupElements, [&](LoopBuilder &s, Value i) {
    s.store(foldStep(s, columns, i, past(s, columns, i, 0), 1), places, i);
  });
  forGroups(1 + kFoldedGroups * groupRows, steps - 1, kFoldedGroups, [&](LoopBuilder &outer, Value start) {
    outer.loop(zero, groupElements, [&](LoopBuilder &s, Value i) {
      s.store(foldStep(s, start, i, s.load(places, i), 0), places, i);
    });
  });
  forGroupRows(zero, [&](LoopBuilder &outer, Value start) {
    forColumns(outer, [&](LoopBuilder &s, Value c) {
      Value place = arith::AddIOp::create(s.b, loc, start, c);
      return recipe.buildAmaxStep(s.b, loc, s.load(amax, c), s.load(places, place));
    });
  });
}

void HistoryUpdate::chooseAmaxOfColumns() {
  Value column = memref::AllocOp::create(builder, loc, MemRefType::get({rows}, builder.getF32Type()));
  s.loop(zero, columns, [&](LoopBuilder &s, Value c) {
    s.ifThen(hasRun(s, c), [&](LoopBuilder &s) {
      s.store(s.load(current, c), column, zero);
      s.loop(one, s.index(rows), [&](LoopBuilder &s, Value row) {
        s.store(recipe.buildPast(s.b, loc, s.load(history, {row, c})), column, row);
      });
      s.store(recipe.buildAmaxOfColumn(s.b, loc, op, column), amax, c);
    });
  });
}

void HistoryUpdate::computeScales() {
  auto nextScale = [&](LoopBuilder &s, Value c) {
    ScaleInputs inputs{s.load(amax, c), s.load(formatTable, c), s.load(scale, c), FloatType()};
    return recipe.buildScale(s.b, loc, op, inputs);
  };
  bool callsFunctions = !recipe.getFunctions().empty();
  s.loop(zero, columns, [&](LoopBuilder &s, Value c) {
    if (callsFunctions) // do not call them for columns that did not run
      s.ifThen(hasRun(s, c), [&](LoopBuilder &s) { s.store(nextScale(s, c), scale, c); });
    else
      s.store(s.select(hasRun(s, c), nextScale(s, c), s.load(scale, c)), scale, c);
  });
}

void HistoryUpdate::moveRow(LoopBuilder &outer, Value row, FromColumn from) {
  outer.loop(zero, columns, [&](LoopBuilder &s, Value c) {
    Value kept = s.load(history, {row, c});
    s.store(s.select(hasRun(s, c), from(s, c), kept), history, {row, c});
  });
}

/// Moves row i+1 to row i, enters this step in the last row, and clears row 0.
void HistoryUpdate::rotate() {
  if (rows > 1) {
    int64_t groups = groupRows > 1 ? (rows - 2) / groupRows : 0;
    if (groups > 0)
      moveGroups(groups);
    s.loop(s.index(1 + groups * groupRows), last, [&](LoopBuilder &inner, Value row) {
      moveRow(inner, row, [&](LoopBuilder &s, Value c) {
        return s.load(history, {arith::AddIOp::create(s.b, loc, row, one), c});
      });
    });
    moveRow(s, last, [&](LoopBuilder &s, Value c) {
      return recipe.buildHistoryEntry(s.b, loc, s.load(current, c), s.load(amax, c));
    });
  }
  moveRow(s, zero, [&](LoopBuilder &s, Value) { return s.real(0.0f); });
}

/// Moves the element one row later to each element of the groups that start with row 1. The choice is made
/// in the bits: LLVM would make stores under masks of a select, which are slow on some processors.
void HistoryUpdate::moveGroups(int64_t groups) {
  Type i32 = builder.getI32Type();
  Value masks =
      memref::AllocOp::create(builder, loc, MemRefType::get({groupRows * columnCount}, i32)).getResult();
  s.loop(zero, groupElements, [&](LoopBuilder &s, Value i) {
    s.store(arith::ExtSIOp::create(s.b, loc, i32, hasRun(s, i)), masks, i);
  });
  forGroups(1, groups, 1, [&](LoopBuilder &outer, Value start) {
    outer.loop(zero, groupElements, [&](LoopBuilder &s, Value i) {
      Value to = arith::AddIOp::create(s.b, loc, start, i);
      Value from = arith::AddIOp::create(s.b, loc, to, columns);
      Value kept = arith::BitcastOp::create(s.b, loc, i32, s.load(flat, to));
      Value moved = arith::BitcastOp::create(s.b, loc, i32, s.load(flat, from));
      Value change = arith::XOrIOp::create(s.b, loc, kept, moved);
      Value masked = arith::AndIOp::create(s.b, loc, change, s.load(masks, i));
      Value bits = arith::XOrIOp::create(s.b, loc, kept, masked);
      s.store(arith::BitcastOp::create(s.b, loc, s.b.getF32Type(), bits), flat, to);
    });
  });
}

LogicalResult fp8::expandUpdateAmaxHistory(OpBuilder &builder, UpdateAmaxHistoryOp op) {
  if (!cast<MemRefType>(op.getHistory().getType()).hasStaticShape())
    return op.emitOpError("of dynamic shape has no lowering: give amax_history static sizes");
  HistoryUpdate(builder, op).run();
  return success();
}
