// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From an amax to a scale: the rules of the recipes, and functions that replace them.

#include "Lowering.h"
#include "ScalarBuilder.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace fp8;

RecipeAttrInterface fp8::getBaseRecipe(RecipeAttrInterface recipe) {
  auto custom = dyn_cast<CustomAttr>(recipe);
  return custom ? custom.getBase() : recipe;
}

float fp8::getScaleNumerator(RecipeAttrInterface recipe, FloatType format) {
  auto delayed = dyn_cast<DelayedScalingAttr>(getBaseRecipe(recipe));
  return std::ldexp(getFP8Max(format), delayed ? -static_cast<int>(delayed.getMargin()) : 0);
}

Value fp8::inlineFunction(ScalarBuilder &s, Operation *user, FlatSymbolRefAttr name, ValueRange arguments) {
  // The verifier has seen the function: one block, and these arguments.
  auto function = SymbolTable::lookupNearestSymbolFrom<FunctionOpInterface>(user, name);
  Block &body = function.getFunctionBody().front();
  IRMapping mapping;
  for (auto [parameter, argument] : llvm::zip_equal(body.getArguments(), arguments)) {
    Value value = argument;
    if (value.getType() != parameter.getType())
      value = memref::CastOp::create(s.b, s.loc, parameter.getType(), value);
    mapping.map(parameter, value);
  }
  for (Operation &op : body.without_terminator())
    s.b.clone(op, mapping);
  return mapping.lookup(body.getTerminator()->getOperand(0));
}

Value fp8::computeScale(ScalarBuilder &s, Operation *user, RecipeAttrInterface recipe, Value numerator,
                        Value amax, Value old) {
  if (FlatSymbolRefAttr function = recipe.getScaleFunction())
    return inlineFunction(s, user, function, {amax, numerator, old});
  auto current = dyn_cast<CurrentScalingAttr>(getBaseRecipe(recipe));
  if (current) // maximumf keeps NaN, which then asks for the old scale
    amax = arith::MaximumFOp::create(s.b, s.loc, amax, s.real(current.getEps().convertToFloat()));
  Value scale = s.saturatingQuotient(numerator, amax);
  if (current && current.getPower_2Scale())
    scale = s.floorToPowerOf2(scale);
  return s.select(s.isUsable(amax), scale, old);
}

LogicalResult fp8::lowerComputeScale(OpBuilder &builder, ComputeScaleOp op) {
  RecipeAttrInterface recipe = op.getRecipe();
  if (!isa<CurrentScalingAttr, DelayedScalingAttr>(getBaseRecipe(recipe)) ||
      cast<MemRefType>(op.getOuts().getType()).getRank() != 0)
    return op.emitOpError() << "of recipe " << recipe
                            << " has no lowering for the CPU yet; use --recipe=delayed or --recipe=current";
  ScalarBuilder s(builder, op.getLoc());
  Value numerator = s.real(getScaleNumerator(recipe, cast<FloatType>(op.getFormat())));
  Value scale = computeScale(s, op, recipe, numerator, s.load(op.getAmax(), {}), s.real(1.0f));
  s.store(scale, op.getOuts(), {});
  return success();
}
