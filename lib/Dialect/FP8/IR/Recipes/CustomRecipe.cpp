// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// #fp8.custom: a recipe per role, and functions of the module in place of a recipe's formulas.

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace fp8;

//===----------------------------------------------------------------------===//
// The attribute: it forwards to the base, unless a role has its own recipe
//===----------------------------------------------------------------------===//

/// Returns whether a role has a recipe of its own.
static bool hasRoles(CustomAttr recipe) {
  return recipe.getFprop() || recipe.getDgrad() || recipe.getWgrad();
}

/// Checks the functions of `quantize` or `dequantize`, which may be null.
static LogicalResult verifyCasts(function_ref<InFlightDiagnostic()> emitError, RecipeAttrInterface base,
                                 StringRef name, DictionaryAttr functions) {
  if (!functions)
    return success();
  for (NamedAttribute function : functions) {
    std::optional<TensorKind> kind = symbolizeTensorKind(function.getName());
    if (!kind || !isa<FlatSymbolRefAttr>(function.getValue()))
      return emitError() << name << " has the entry " << function.getName().getValue() << " = "
                         << function.getValue()
                         << "; it takes functions for input, weight and grad_output, as {input = @f}";
    if (!base.getBlockShape(*kind, {true, false}).empty())
      return emitError() << name << " casts with one scale per tensor, and " << base
                         << " has more; choose #fp8.delayed_scaling or #fp8.current_scaling as base";
  }
  return success();
}

/// Returns the function for tensors of `kind`; null if there is none. `functions` may be null.
static FlatSymbolRefAttr findFunction(DictionaryAttr functions, TensorKind kind) {
  return functions ? functions.getAs<FlatSymbolRefAttr>(stringifyTensorKind(kind)) : FlatSymbolRefAttr();
}

LogicalResult CustomAttr::verify(function_ref<InFlightDiagnostic()> emitError, RecipeAttrInterface base,
                                 RecipeAttrInterface fprop, RecipeAttrInterface dgrad,
                                 RecipeAttrInterface wgrad, FlatSymbolRefAttr scale, FlatSymbolRefAttr amax,
                                 DictionaryAttr quantize, DictionaryAttr dequantize) {
  if (isa<CustomAttr>(base))
    return emitError() << "the base of #fp8.custom cannot be another #fp8.custom";
  for (RecipeAttrInterface recipe : {fprop, dgrad, wgrad})
    if (auto own = dyn_cast_if_present<CustomAttr>(recipe); own && hasRoles(own))
      return emitError() << "the recipe of a role cannot have recipes of roles: " << own;
  if (scale && !base.getScaleType().isF32())
    return emitError() << "scale = " << scale << " gives f32 scales, which " << base
                       << " does not use; choose another base";
  if (amax && !base.isStateful())
    return emitError() << "amax = " << amax << " chooses from a history, and " << base
                       << " keeps none; choose #fp8.delayed_scaling as base";
  for (auto [name, functions] : {std::pair(StringRef("quantize"), quantize), {"dequantize", dequantize}})
    if (failed(verifyCasts(emitError, base, name, functions)))
      return failure();
  if (StringRef parameter = base.findOverruled(bool(scale), bool(amax)); !parameter.empty())
    return emitError() << parameter << " of the base has no effect beside a function for "
                       << (parameter == "amax_compute_algo" ? "amax" : "scale") << "; drop one of the two";
  return success();
}

RecipeAttrInterface CustomAttr::getRecipeFor(Role role) const {
  RecipeAttrInterface own = role == Role::fprop   ? getFprop()
                            : role == Role::dgrad ? getDgrad()
                            : role == Role::wgrad ? getWgrad()
                                                  : RecipeAttrInterface();
  if (!own)
    own = getBase();
  if (isa<CustomAttr>(own)) // with functions of its own
    return own.getRecipeFor(role);
  if (!hasFunctions() || own.getScaling() != getBase().getScaling())
    return own;
  return get(getContext(), own, {}, {}, {}, getScale(), getAmax(), getQuantize(), getDequantize());
}
RecipeAttrInterface CustomAttr::getScaling() const {
  if (!hasFunctions())
    return getBase().getScaling();
  return get(getContext(), getBase().getScaling(), {}, {}, {}, getScale(), getAmax(), getQuantize(),
             getDequantize());
}
std::string CustomAttr::getUnfitReason(TensorKind lhs, TensorKind rhs) const {
  return getBase().getUnfitReason(lhs, rhs);
}
FloatType CustomAttr::getFormat(TensorKind kind) const { return getBase().getFormat(kind); }
bool CustomAttr::isStateful() const { return getBase().isStateful(); }
int64_t CustomAttr::getHistoryLength() const { return getBase().getHistoryLength(); }
bool CustomAttr::startsFromTensor() const { return getBase().startsFromTensor(); }
float CustomAttr::getNoAmax() const { return getBase().getNoAmax(); }
SmallVector<int64_t> CustomAttr::getBlockShape(TensorKind kind, ArrayRef<bool> contracted) const {
  return getBase().getBlockShape(kind, contracted);
}
FloatType CustomAttr::getScaleType() const { return getBase().getScaleType(); }
Accumulation CustomAttr::getAccumulation(Role role) const { return getBase().getAccumulation(role); }
bool CustomAttr::getReduceAmax() const { return getBase().getReduceAmax(); }
StringRef CustomAttr::getRecipeName() const {
  // A recipe with functions is "custom" and the base; without them and without roles it is the base.
  if (!hasFunctions())
    return hasRoles(*this) ? "custom" : getBase().getRecipeName();
  return StringAttr::get(getContext(), "custom " + getBase().getRecipeName()).getValue();
}
SmallVector<NamedAttribute> CustomAttr::getParameters() const {
  SmallVector<NamedAttribute> list = getBase().getParameters();
  auto add = [&](StringRef name, Attribute value) {
    if (value)
      list.push_back(NamedAttribute(StringAttr::get(getContext(), name), value));
  };
  add("scale", getScale());
  add("amax", getAmax());
  add("quantize", getQuantize());
  add("dequantize", getDequantize());
  return list;
}

//===----------------------------------------------------------------------===//
// The formulas: those of the base, unless a function replaces one
//===----------------------------------------------------------------------===//

/// Copies the body of a function of the module to the insertion point and returns its result. The
/// verifier has checked that it has one block and these arguments.
static Value inlineFunction(OpBuilder &builder, Location loc, Operation *user, FlatSymbolRefAttr name,
                            ValueRange arguments) {
  auto function = SymbolTable::lookupNearestSymbolFrom<FunctionOpInterface>(user, name);
  Block &body = function.getFunctionBody().front();
  IRMapping mapping;
  for (auto [parameter, argument] : llvm::zip_equal(body.getArguments(), arguments)) {
    Value value = argument;
    if (value.getType() != parameter.getType())
      value = memref::CastOp::create(builder, loc, parameter.getType(), value);
    mapping.map(parameter, value);
  }
  for (Operation &op : body.without_terminator())
    builder.clone(op, mapping);
  return mapping.lookup(body.getTerminator()->getOperand(0));
}

Value CustomAttr::buildScale(OpBuilder &builder, Location loc, Operation *user,
                             const ScaleInputs &inputs) const {
  if (getScale())
    return inlineFunction(builder, loc, user, getScale(), {inputs.amax, inputs.fp8Max, inputs.old});
  return getBase().buildScale(builder, loc, user, inputs);
}

bool CustomAttr::hasOwnQuantize(TensorKind kind) const { return bool(findFunction(getQuantize(), kind)); }
Value CustomAttr::buildQuantize(OpBuilder &builder, Location loc, Operation *user, TensorKind kind,
                                Value value, Value scale) const {
  return inlineFunction(builder, loc, user, findFunction(getQuantize(), kind), {value, scale});
}
bool CustomAttr::hasOwnDequantize(TensorKind kind) const { return bool(findFunction(getDequantize(), kind)); }
Value CustomAttr::buildDequantize(OpBuilder &builder, Location loc, Operation *user, TensorKind kind,
                                  Value data, Value scaleInv) const {
  return inlineFunction(builder, loc, user, findFunction(getDequantize(), kind), {data, scaleInv});
}

bool CustomAttr::readsWholeColumn() const { return getAmax() || getBase().readsWholeColumn(); }
Value CustomAttr::buildAmaxOfColumn(OpBuilder &builder, Location loc, Operation *user, Value column) const {
  if (getAmax())
    return inlineFunction(builder, loc, user, getAmax(), column);
  return getBase().buildAmaxOfColumn(builder, loc, user, column);
}

Value CustomAttr::buildRecorded(OpBuilder &builder, Location loc, Value amax) const {
  return getBase().buildRecorded(builder, loc, amax);
}
Value CustomAttr::buildPast(OpBuilder &builder, Location loc, Value amax) const {
  return getBase().buildPast(builder, loc, amax);
}
bool CustomAttr::readsHistory() const { return getBase().readsHistory(); }
Value CustomAttr::buildAmaxStart(OpBuilder &builder, Location loc, Value current) const {
  return getBase().buildAmaxStart(builder, loc, current);
}
Value CustomAttr::buildAmaxStep(OpBuilder &builder, Location loc, Value soFar, Value past) const {
  return getBase().buildAmaxStep(builder, loc, soFar, past);
}
Value CustomAttr::buildAmaxEnd(OpBuilder &builder, Location loc, Value soFar, Value current) const {
  return getBase().buildAmaxEnd(builder, loc, soFar, current);
}
Value CustomAttr::buildHistoryEntry(OpBuilder &builder, Location loc, Value current, Value chosen) const {
  return getBase().buildHistoryEntry(builder, loc, current, chosen);
}

//===----------------------------------------------------------------------===//
// The functions
//===----------------------------------------------------------------------===//

SmallVector<FlatSymbolRefAttr> CustomAttr::getFunctions() const {
  SmallVector<FlatSymbolRefAttr> functions;
  for (RecipeAttrInterface recipe : {getBase(), getFprop(), getDgrad(), getWgrad()})
    if (recipe)
      functions.append(recipe.getFunctions());
  for (FlatSymbolRefAttr name : {getScale(), getAmax()})
    if (name)
      functions.push_back(name);
  for (DictionaryAttr casts : {getQuantize(), getDequantize()})
    if (casts)
      for (NamedAttribute function : casts)
        functions.push_back(cast<FlatSymbolRefAttr>(function.getValue()));
  return functions;
}

/// Returns whether `type` can be a column of the history: f32 of rank 1, a tensor before
/// bufferization, a memref after it.
static bool isColumn(Type type, int64_t rows) {
  auto shaped = dyn_cast<ShapedType>(type);
  return isa<RankedTensorType, MemRefType>(type) && shaped.getElementType().isF32() &&
         shaped.getRank() == 1 && (shaped.isDynamicDim(0) || shaped.getDimSize(0) == rows);
}

LogicalResult CustomAttr::verifyFunctions(Operation *user, SymbolTableCollection &symbols) const {
  for (RecipeAttrInterface recipe : {getBase(), getFprop(), getDgrad(), getWgrad()})
    if (recipe && failed(recipe.verifyFunctions(user, symbols)))
      return failure();
  auto check = [&](FlatSymbolRefAttr symbol, StringRef parameter, StringRef signature,
                   function_ref<bool(ArrayRef<Type>)> fits, bool givesByte = false) -> LogicalResult {
    if (!symbol)
      return success();
    auto function = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(user, symbol);
    if (!function || function.isExternal())
      return user->emitError() << "the recipe's " << parameter << " = " << symbol
                               << " names no function with a body in this module";
    ArrayRef<Type> results = function.getResultTypes();
    if (!fits(function.getArgumentTypes()) || results.size() != 1 ||
        !(givesByte ? results[0].isInteger(8) : results[0].isF32()))
      return function.emitError() << "'" << function.getName() << "' is the recipe's function for "
                                  << parameter << " and must be " << signature;
    if (!function.getFunctionBody().hasOneBlock())
      return function.emitError() << "'" << function.getName()
                                  << "' is named by the recipe and branches between blocks: use structured "
                                     "control flow (scf)";
    return success();
  };
  auto takesScalars = [](ArrayRef<Type> types) {
    return types.size() == 3 && llvm::all_of(types, [](Type type) { return type.isF32(); });
  };
  auto takesColumn = [rows = getHistoryLength()](ArrayRef<Type> types) {
    return types.size() == 1 && isColumn(types[0], rows);
  };
  if (failed(check(getScale(), "scale", "(amax: f32, fp8_max: f32, old: f32) -> f32", takesScalars)))
    return failure();
  if (failed(check(getAmax(), "amax", "(column: tensor<?xf32>) -> f32", takesColumn)))
    return failure();
  auto takesElement = [](ArrayRef<Type> types) {
    return types.size() == 2 && types[0].isF32() && types[1].isF32();
  };
  auto takesByte = [](ArrayRef<Type> types) {
    return types.size() == 2 && types[0].isInteger(8) && types[1].isF32();
  };
  for (TensorKind kind : {TensorKind::input, TensorKind::weight, TensorKind::grad_output}) {
    if (failed(check(findFunction(getQuantize(), kind), "quantize", "(value: f32, scale: f32) -> i8",
                     takesElement, /*givesByte=*/true)) ||
        failed(check(findFunction(getDequantize(), kind), "dequantize", "(data: i8, scale_inv: f32) -> f32",
                     takesByte)))
      return failure();
  }
  return success();
}
