// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Threads the state of a recipe through one function: its arguments, its update from the amaxes that casts
// record, and the results that hand it to the next step.

#include "RecipeRewriter.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace fp8;

/// Appends the arguments scale and amax_history.
void FunctionRewriter::addStateArguments() {
  int64_t columnCount = layout.getColumns().size();
  Type f32 = builder.getF32Type();
  for (auto [name, type] :
       {std::pair<StringRef, RankedTensorType>("scale", RankedTensorType::get({columnCount}, f32)),
        {"amax_history", RankedTensorType::get({layout.getHistoryLength(), columnCount}, f32)}}) {
    DictionaryAttr attrs =
        builder.getDictionaryAttr({builder.getNamedAttr(kStateAttrName, builder.getStringAttr(name))});
    Location loc = NameLoc::get(builder.getStringAttr(name));
    // This cannot fail, because the function's type matches its arguments.
    (void)function.insertArgument(function.getNumArguments(), type, attrs, loc);
  }
  state = {function.getArguments().end()[-2], function.getArguments().end()[-1]};
  if (pair) {
    ResultRange handed = pair->passState({state.scale, state.history});
    backwardState = {handed[0], handed[1]};
  }
}

/// Builds one vector of the amaxes recorded for one column, combined over the ranks if the program has a
/// grid.
Value FunctionRewriter::reduceAmaxes(Location loc, ArrayRef<RecordedAmax> recorded,
                                     RecipeAttrInterface recipe) {
  int64_t count = recorded.size();
  auto type = RankedTensorType::get({count}, builder.getF32Type());
  Value vector;
  if (count == 1) {
    vector =
        tensor::ExpandShapeOp::create(builder, loc, type, recorded[0].value, ArrayRef<ReassociationIndices>{},
                                      SmallVector<OpFoldResult>{builder.getIndexAttr(1)});
  } else {
    vector = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
    for (auto [i, amax] : llvm::enumerate(recorded))
      vector = tensor::InsertSliceOp::create(builder, loc, amax.value, vector,
                                             SmallVector<OpFoldResult>{builder.getIndexAttr(i)},
                                             SmallVector<OpFoldResult>{builder.getIndexAttr(1)},
                                             SmallVector<OpFoldResult>{builder.getIndexAttr(1)});
  }
  auto module = function->getParentOfType<ModuleOp>();
  auto grid = module->getAttrOfType<DenseI64ArrayAttr>(kGridAttrName);
  if (!recipe.getReduceAmax() || !grid)
    return vector;
  auto axes = module->getAttrOfType<DenseI64ArrayAttr>(kReduceAxesAttrName);
  if (!axes)
    axes = builder.getDenseI64ArrayAttr(llvm::to_vector(llvm::seq<int64_t>(0, grid.size())));
  Value init = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  return AllReduceOp::create(builder, loc, TypeRange(type), vector, init,
                             ReduceKindAttr::get(builder.getContext(), ReduceKind::max), grid, axes,
                             builder.getStringAttr("amaxes"))
      .getResult(0);
}

/// Builds the update of one column.
FunctionRewriter::State FunctionRewriter::updateColumn(State from, int64_t column) {
  Location loc = function.getLoc();
  const StateColumn &described = layout.getColumns()[column];
  ArrayRef<RecordedAmax> recorded = amaxes.at(column);
  int64_t count = recorded.size();
  Value vector = reduceAmaxes(loc, recorded, described.recipe);
  SmallVector<Attribute> formats(count, TypeAttr::get(described.format));
  auto update = UpdateAmaxHistoryOp::create(
      builder, loc, TypeRange{from.scale.getType(), from.history.getType()}, vector, from.scale, from.history,
      described.recipe, builder.getDenseI64ArrayAttr(SmallVector<int64_t>(count, column)),
      builder.getArrayAttr(formats));
  return {update.getResult(0), update.getResult(1)};
}

/// Builds one update for each column of the forward part (`ofForward`) or for each other column; those of one
/// recipe follow each other, so that fp8-batch-amax-updates makes them one.
FunctionRewriter::State FunctionRewriter::updateColumns(State from, bool ofForward) {
  llvm::MapVector<RecipeAttrInterface, SmallVector<int64_t>> columnsOfRecipe;
  for (const auto &entry : amaxes)
    if (bool(forwardColumns.count(entry.first)) == ofForward)
      columnsOfRecipe[layout.getColumns()[entry.first].recipe].push_back(entry.first);
  for (const auto &entry : columnsOfRecipe)
    for (int64_t column : entry.second)
      from = updateColumn(from, column);
  return from;
}

/// Updates the columns before the return, those of forward's tensors at the end of forward, and
/// appends the new state to the results.
void FunctionRewriter::updateState() {
  carryOutAmaxes(amaxes, layout.getColumns().front().recipe.getNoAmax());
  State updated = state;
  if (pair) {
    builder.setInsertionPoint(pair->getEndForward());
    State ofForward = updateColumns(state, /*ofForward=*/true);
    pair->getState().assign({ofForward.scale, ofForward.history});
    updated = backwardState;
  }
  auto terminator = cast<func::ReturnOp>(function.getBody().front().getTerminator());
  builder.setInsertionPoint(terminator);
  updated = updateColumns(updated, /*ofForward=*/false);

  unsigned firstResult = function.getNumResults();
  SmallVector<Value> newState{updated.scale, updated.history};
  for (auto [i, value] : llvm::enumerate(newState)) {
    unsigned argument = function.getNumArguments() - 2 + i;
    DictionaryAttr attrs = builder.getDictionaryAttr(
        {builder.getNamedAttr(kStateAttrName, function.getArgAttr(argument, kStateAttrName))});
    (void)function.insertResult(firstResult + i, value.getType(), attrs);
    function.setArgAttr(argument, kCarriedAttrName, builder.getI32IntegerAttr(firstResult + i));
    terminator.getOperandsMutable().append(value);
  }
}
