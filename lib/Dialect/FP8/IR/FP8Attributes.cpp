// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The recipes: what each answers to RecipeAttrInterface, and what parameters it takes.

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fp8;

#include "fp8/Dialect/FP8/IR/FP8AttrInterfaces.cpp.inc"
#include "fp8/Dialect/FP8/IR/FP8Enums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "fp8/Dialect/FP8/IR/FP8Attributes.cpp.inc"

void FP8Dialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "fp8/Dialect/FP8/IR/FP8Attributes.cpp.inc"
      >();
}

FailureOr<APFloat> fp8::parseF32(AsmParser &parser) {
  double value;
  if (parser.parseFloat(value))
    return failure();
  return APFloat(static_cast<float>(value));
}

void fp8::printF32(AsmPrinter &printer, const APFloat &value) { printer.printFloat(value); }

float fp8::getFP8Max(FloatType format) {
  return APFloat::getLargest(format.getFloatSemantics()).convertToFloat();
}

std::string fp8::getFormatName(Type type) {
  if (isa<Float8E4M3FNType>(type))
    return "E4M3";
  if (isa<Float8E5M2Type>(type))
    return "E5M2";
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

//===----------------------------------------------------------------------===//
// Answers that several recipes share
//===----------------------------------------------------------------------===//

static FloatType formatOf(MLIRContext *context, FormatPolicy policy, TensorKind kind) {
  if (policy == FormatPolicy::e5m2 || (policy == FormatPolicy::hybrid && kind == TensorKind::grad_output))
    return Float8E5M2Type::get(context);
  return Float8E4M3FNType::get(context);
}

/// The forward may run fast; gradients sum in parts, where few bits would show.
static Accumulation accumulationOf(Role role) {
  return role == Role::dgrad || role == Role::wgrad ? Accumulation::split : Accumulation::fast;
}

/// Blocks of `extent` along the last contracted dimension and of `other` along
/// the last of the rest; every other dimension has one block per index.
static SmallVector<int64_t> blocksAlong(ArrayRef<bool> contracted, int64_t extent, int64_t other) {
  SmallVector<int64_t> block(contracted.size(), 1);
  auto lastWith = [&](bool value) -> int64_t {
    for (int64_t d = contracted.size() - 1; d >= 0; --d)
      if (contracted[d] == value)
        return d;
    return -1;
  };
  if (int64_t d = lastWith(true); d >= 0)
    block[d] = extent;
  if (int64_t d = lastWith(false); d >= 0)
    block[d] = other;
  return block;
}

/// The parameters of a recipe, for reports.
class ParameterList {
public:
  explicit ParameterList(MLIRContext *context) : builder(context) {}

  ParameterList &add(StringRef name, Attribute value) {
    list.push_back(builder.getNamedAttr(name, value));
    return *this;
  }
  ParameterList &add(StringRef name, bool value) { return add(name, builder.getBoolAttr(value)); }
  ParameterList &add(StringRef name, int64_t value) { return add(name, builder.getI64IntegerAttr(value)); }
  ParameterList &add(StringRef name, const APFloat &value) {
    return add(name, builder.getF32FloatAttr(value.convertToFloat()));
  }
  template <typename Enum, typename = std::enable_if_t<std::is_enum_v<Enum>>>
  ParameterList &add(StringRef name, Enum value) {
    return add(name, builder.getStringAttr(stringifyEnum(value)));
  }
  operator SmallVector<NamedAttribute>() const { return list; }

private:
  Builder builder;
  SmallVector<NamedAttribute> list;
};

//===----------------------------------------------------------------------===//
// Delayed
//===----------------------------------------------------------------------===//

LogicalResult DelayedScalingAttr::verify(function_ref<InFlightDiagnostic()> emitError, FormatPolicy,
                                         int64_t margin, int64_t historyLen, AmaxComputeAlgo, bool, bool,
                                         bool, InitialScale init) {
  if (historyLen < 1)
    return emitError() << "amax_history_len must be at least 1, got " << historyLen;
  if (margin < -64 || margin > 64)
    return emitError() << "margin counts binades and must be between -64 and 64, got " << margin;
  // The one row is 0 again after every update.
  if (init == InitialScale::current && historyLen < 2)
    return emitError() << "init = current needs an amax_history_len of 2 or more: one row does not tell "
                          "whether there has been an amax";
  return success();
}

FloatType DelayedScalingAttr::getFormat(TensorKind kind) const {
  return formatOf(getContext(), getFormat(), kind);
}
bool DelayedScalingAttr::isStateful() const { return true; }
SmallVector<int64_t> DelayedScalingAttr::getBlockShape(TensorKind, ArrayRef<bool>) const { return {}; }
FloatType DelayedScalingAttr::getScaleType() const { return Float32Type::get(getContext()); }
Accumulation DelayedScalingAttr::getAccumulation(Role role) const { return accumulationOf(role); }
StringRef DelayedScalingAttr::getRecipeName() const { return "delayed"; }
int64_t DelayedScalingAttr::getHistoryLength() const { return getAmaxHistoryLen(); }
bool DelayedScalingAttr::startsFromTensor() const { return getInit() == InitialScale::current; }
float DelayedScalingAttr::getNoAmax() const { return getExecutedMask() ? -1.0f : 0.0f; }
RecipeAttrInterface DelayedScalingAttr::getScaling() const {
  return get(getContext(), FormatPolicy::hybrid, getMargin(), getAmaxHistoryLen(), getAmaxComputeAlgo(),
             getReduceAmax(), getIgnoreNonFinite(), getExecutedMask(), getInit());
}
SmallVector<NamedAttribute> DelayedScalingAttr::getParameters() const {
  return ParameterList(getContext())
      .add("format", getFormat())
      .add("margin", getMargin())
      .add("amax_history_len", getAmaxHistoryLen())
      .add("amax_compute_algo", getAmaxComputeAlgo())
      .add("reduce_amax", getReduceAmax())
      .add("ignore_non_finite", getIgnoreNonFinite())
      .add("executed_mask", getExecutedMask())
      .add("init", getInit());
}

//===----------------------------------------------------------------------===//
// Current
//===----------------------------------------------------------------------===//

static LogicalResult verifyEps(function_ref<InFlightDiagnostic()> emitError, const APFloat &eps) {
  if (!eps.isFinite() || eps.isNegative())
    return emitError() << "eps must be a finite number, 0 or above";
  return success();
}

LogicalResult CurrentScalingAttr::verify(function_ref<InFlightDiagnostic()> emitError, FormatPolicy,
                                         APFloat eps, bool, bool) {
  return verifyEps(emitError, eps);
}

FloatType CurrentScalingAttr::getFormat(TensorKind kind) const {
  return formatOf(getContext(), getFormat(), kind);
}
bool CurrentScalingAttr::isStateful() const { return false; }
SmallVector<int64_t> CurrentScalingAttr::getBlockShape(TensorKind, ArrayRef<bool>) const { return {}; }
FloatType CurrentScalingAttr::getScaleType() const { return Float32Type::get(getContext()); }
Accumulation CurrentScalingAttr::getAccumulation(Role role) const { return accumulationOf(role); }
StringRef CurrentScalingAttr::getRecipeName() const { return "current"; }
RecipeAttrInterface CurrentScalingAttr::getScaling() const {
  return get(getContext(), FormatPolicy::hybrid, getEps(), getPower_2Scale(), getReduceAmax());
}
SmallVector<NamedAttribute> CurrentScalingAttr::getParameters() const {
  return ParameterList(getContext())
      .add("format", getFormat())
      .add("eps", getEps())
      .add("power_2_scale", getPower_2Scale())
      .add("reduce_amax", getReduceAmax());
}

//===----------------------------------------------------------------------===//
// Row, block, MX
//===----------------------------------------------------------------------===//

LogicalResult RowScalingAttr::verify(function_ref<InFlightDiagnostic()> emitError, FormatPolicy, APFloat eps,
                                     bool) {
  return verifyEps(emitError, eps);
}

FloatType RowScalingAttr::getFormat(TensorKind kind) const {
  return formatOf(getContext(), getFormat(), kind);
}
bool RowScalingAttr::isStateful() const { return false; }
SmallVector<int64_t> RowScalingAttr::getBlockShape(TensorKind, ArrayRef<bool> contracted) const {
  return llvm::map_to_vector(contracted, [](bool isContracted) -> int64_t { return isContracted ? 0 : 1; });
}
FloatType RowScalingAttr::getScaleType() const { return Float32Type::get(getContext()); }
Accumulation RowScalingAttr::getAccumulation(Role role) const { return accumulationOf(role); }
StringRef RowScalingAttr::getRecipeName() const { return "row"; }
RecipeAttrInterface RowScalingAttr::getScaling() const {
  return get(getContext(), FormatPolicy::e4m3, getEps(), getPower_2Scale());
}
SmallVector<NamedAttribute> RowScalingAttr::getParameters() const {
  return ParameterList(getContext())
      .add("format", getFormat())
      .add("eps", getEps())
      .add("power_2_scale", getPower_2Scale());
}

LogicalResult BlockScalingAttr::verify(function_ref<InFlightDiagnostic()> emitError, FormatPolicy,
                                       int64_t block, APFloat eps, bool) {
  if (block < 1)
    return emitError() << "block must be at least 1, got " << block;
  return verifyEps(emitError, eps);
}

FloatType BlockScalingAttr::getFormat(TensorKind kind) const {
  return formatOf(getContext(), getFormat(), kind);
}
bool BlockScalingAttr::isStateful() const { return false; }
SmallVector<int64_t> BlockScalingAttr::getBlockShape(TensorKind kind, ArrayRef<bool> contracted) const {
  return blocksAlong(contracted, getBlock(), kind == TensorKind::weight ? getBlock() : 1);
}
FloatType BlockScalingAttr::getScaleType() const { return Float32Type::get(getContext()); }
Accumulation BlockScalingAttr::getAccumulation(Role) const { return Accumulation::split; }
StringRef BlockScalingAttr::getRecipeName() const { return "block"; }
RecipeAttrInterface BlockScalingAttr::getScaling() const {
  return get(getContext(), FormatPolicy::e4m3, getBlock(), getEps(), getPower_2Scale());
}
SmallVector<NamedAttribute> BlockScalingAttr::getParameters() const {
  return ParameterList(getContext())
      .add("format", getFormat())
      .add("block", getBlock())
      .add("eps", getEps())
      .add("power_2_scale", getPower_2Scale());
}

LogicalResult MXScalingAttr::verify(function_ref<InFlightDiagnostic()>, FormatPolicy) { return success(); }

FloatType MXScalingAttr::getFormat(TensorKind kind) const {
  return formatOf(getContext(), getFormat(), kind);
}
bool MXScalingAttr::isStateful() const { return false; }
SmallVector<int64_t> MXScalingAttr::getBlockShape(TensorKind, ArrayRef<bool> contracted) const {
  return blocksAlong(contracted, /*extent=*/32, /*other=*/1);
}
FloatType MXScalingAttr::getScaleType() const { return Float8E8M0FNUType::get(getContext()); }
Accumulation MXScalingAttr::getAccumulation(Role role) const { return accumulationOf(role); }
StringRef MXScalingAttr::getRecipeName() const { return "mxfp8"; }
RecipeAttrInterface MXScalingAttr::getScaling() const { return get(getContext(), FormatPolicy::e4m3); }
SmallVector<NamedAttribute> MXScalingAttr::getParameters() const {
  return ParameterList(getContext()).add("format", getFormat());
}
