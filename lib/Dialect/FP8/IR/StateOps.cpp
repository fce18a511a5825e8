// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fp8.update_amax_history, loss scaling, and the generated definitions.

#include "OpVerification.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace fp8;

static ShapedType shaped(Value value) { return cast<ShapedType>(value.getType()); }
static bool hasRankZero(Value value) { return shaped(value).getRank() == 0; }

//===----------------------------------------------------------------------===//
// UpdateAmaxHistoryOp
//===----------------------------------------------------------------------===//

// The operation reads its destinations: unlisted columns, and those whose amax is 0, stay unchanged.
FP8_DEFINE_DPS_METHODS(UpdateAmaxHistoryOp, true)

static LogicalResult verifyColumns(UpdateAmaxHistoryOp op, int64_t numColumns) {
  for (int64_t column : op.getColumns())
    if (column < 0 || (!ShapedType::isDynamic(numColumns) && column >= numColumns))
      return op.emitOpError() << "column " << column << " is outside the state's " << numColumns
                              << " columns";
  for (Attribute format : op.getFormats())
    if (!isa<Float8E4M3FNType, Float8E5M2Type>(cast<TypeAttr>(format).getValue()))
      return op.emitOpError() << "format " << format << " must be f8E4M3FN or f8E5M2";
  // A column may be listed twice, for amaxes to combine, but its scale depends on one format.
  llvm::SmallDenseMap<int64_t, Attribute> formats;
  for (auto [column, format] : llvm::zip_equal(op.getColumns(), op.getFormats()))
    if (Attribute first = formats.try_emplace(column, format).first->second; first != format)
      return op.emitOpError() << "column " << column << " is named with format " << first << " and with "
                              << format << "; a column has one format";
  return success();
}

LogicalResult UpdateAmaxHistoryOp::verify() {
  if (failed(fp8::detail::verifyDestinationStyle(*this)))
    return failure();
  ShapedType amaxes = shaped(getAmaxes()), scale = shaped(getScale()), history = shaped(getHistory());
  if (amaxes.getRank() != 1 || scale.getRank() != 1 || history.getRank() != 2)
    return emitOpError("needs amaxes [n], scale [N] and amax_history [H, N]");
  if (!fp8::detail::sizesMatch(scale.getDimSize(0), history.getDimSize(1)))
    return emitOpError() << "scale has " << scale.getDimSize(0) << " columns, amax_history "
                         << history.getDimSize(1);
  int64_t count = getColumns().size();
  if (!fp8::detail::sizesMatch(amaxes.getDimSize(0), count) ||
      static_cast<int64_t>(getFormats().size()) != count)
    return emitOpError() << "names " << count << " columns and " << getFormats().size() << " formats for "
                         << amaxes.getDimSize(0) << " amaxes";
  if (!getRecipe().isStateful())
    return emitOpError() << "recipe " << getRecipe() << " keeps no history";
  if (!fp8::detail::sizesMatch(history.getDimSize(0), getRecipe().getHistoryLength()))
    return emitOpError() << "amax_history has " << history.getDimSize(0) << " rows, the recipe asks for "
                         << getRecipe().getHistoryLength();
  return verifyColumns(*this, scale.getDimSize(0));
}

LogicalResult UpdateAmaxHistoryOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return getRecipe().verifyFunctions(*this, symbols);
}

//===----------------------------------------------------------------------===//
// Loss scaling
//===----------------------------------------------------------------------===//

FP8_DEFINE_DPS_METHODS(UnscaleOp, false)

LogicalResult UnscaleOp::verify() {
  if (failed(fp8::detail::verifyDestinationStyle(*this)))
    return failure();
  if (getOuts().size() != getGradients().size() + 1)
    return emitOpError() << "has " << getOuts().size() << " outs for " << getGradients().size()
                         << " gradients; one each and found_inf are needed";
  for (auto [gradient, out] : llvm::zip(getGradients(), getOuts()))
    if (gradient.getType() != out.getType())
      return emitOpError() << "gradient " << gradient.getType() << " has a destination of type "
                           << out.getType();
  if (!hasRankZero(getScale()) || !hasRankZero(getOuts().back()) ||
      !shaped(getOuts().back()).getElementType().isF32())
    return emitOpError("scale and found_inf must be f32 of rank 0");
  return success();
}

FP8_DEFINE_DPS_METHODS(UpdateLossScaleOp, true)

LogicalResult UpdateLossScaleOp::verify() {
  if (failed(fp8::detail::verifyDestinationStyle(*this)))
    return failure();
  if (!hasRankZero(getFoundInf()) || !hasRankZero(getScale()) || !hasRankZero(getTracker()) ||
      !shaped(getTracker()).getElementType().isSignlessInteger(32))
    return emitOpError("found_inf and scale must be f32, tracker i32, all of rank 0");
  if (!(getGrowth().convertToFloat() > 1.0f))
    return emitOpError("growth must be above 1");
  float backoff = getBackoff().convertToFloat();
  if (!(backoff > 0.0f && backoff < 1.0f))
    return emitOpError("backoff must be between 0 and 1");
  if (static_cast<int64_t>(getInterval()) < 1)
    return emitOpError("interval must be at least 1");
  return success();
}

//===----------------------------------------------------------------------===//
// Custom directives of the generated parsers and printers
//===----------------------------------------------------------------------===//

/// Parse and print the keyword of an enumeration between parentheses, `role(fprop)`. The generated
/// printer of the attribute would print a space before it.
template <typename EnumAttrT>
static ParseResult parseEnumWord(OpAsmParser &parser, EnumAttrT &attribute) {
  auto value = FieldParser<decltype(attribute.getValue())>::parse(parser);
  if (failed(value))
    return failure();
  attribute = EnumAttrT::get(parser.getContext(), *value);
  return success();
}

template <typename EnumAttrT>
static void printEnumWord(OpAsmPrinter &printer, Operation *, EnumAttrT attribute) {
  if (attribute)
    printer << stringifyEnum(attribute.getValue());
}

#define GET_OP_CLASSES
#include "fp8/Dialect/FP8/IR/FP8Ops.cpp.inc"
