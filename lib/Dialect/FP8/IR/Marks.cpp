// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifies the dialect's discardable attributes: their names, where they stand and their types (Marks.def),
// and the values of those that users write.

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/IR/MixedPrecision.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace fp8;

namespace {

enum class MarkType { Any, Array, Bool, Dictionary, Integer, Integers, String, Symbol, Unit };
enum class MarkHolder { Op, Boundary };

struct Mark {
  StringRef name;
  MarkType type;
  MarkHolder holder;
  MarkStage last;
};

constexpr Mark kMarks[] = {
#define FP8_MARK(NAME, TEXT, TYPE, HOLDER, WRITER, READER, LAST, MEANING)                                    \
  {TEXT, MarkType::TYPE, MarkHolder::HOLDER, MarkStage::LAST},
#include "fp8/Dialect/FP8/IR/Marks.def"
};

} // namespace

static const Mark *findMark(StringRef name) {
  const Mark *found = llvm::find_if(kMarks, [&](const Mark &mark) { return mark.name == name; });
  return found == std::end(kMarks) ? nullptr : found;
}

MarkStage fp8::getLastStage(StringRef name) {
  const Mark *mark = findMark(name);
  return mark ? mark->last : MarkStage::code;
}

/// Returns the name that is most like `name`.
static StringRef findNearest(StringRef name) {
  auto distance = [&](const Mark &mark) { return mark.name.edit_distance(name); };
  return std::min_element(std::begin(kMarks), std::end(kMarks),
                          [&](const Mark &a, const Mark &b) { return distance(a) < distance(b); })
      ->name;
}

static bool hasType(Attribute value, MarkType type) {
  switch (type) {
  case MarkType::Any:
    return true;
  case MarkType::Array:
    return isa<ArrayAttr>(value);
  case MarkType::Bool:
    return isa<BoolAttr>(value);
  case MarkType::Dictionary:
    return isa<DictionaryAttr>(value);
  case MarkType::Integer:
    return isa<IntegerAttr>(value);
  case MarkType::Integers:
    return isa<DenseI64ArrayAttr>(value);
  case MarkType::String:
    return isa<StringAttr>(value);
  case MarkType::Symbol:
    return isa<FlatSymbolRefAttr>(value);
  case MarkType::Unit:
    return isa<UnitAttr>(value);
  }
  llvm_unreachable("all types are above");
}

static StringRef describeType(MarkType type) {
  switch (type) {
  case MarkType::Any:
    return "an attribute";
  case MarkType::Array:
    return "an array";
  case MarkType::Bool:
    return "true or false";
  case MarkType::Dictionary:
    return "a dictionary";
  case MarkType::Integer:
    return "an integer";
  case MarkType::Integers:
    return "array<i64: …>";
  case MarkType::String:
    return "a string";
  case MarkType::Symbol:
    return "a symbol, like @main";
  case MarkType::Unit:
    return "without a value";
  }
  llvm_unreachable("all types are above");
}

/// Checks name, holder and type.
static LogicalResult verifyMark(Operation *op, NamedAttribute attribute, MarkHolder holder) {
  StringRef name = attribute.getName();
  const Mark *mark = findMark(name);
  if (!mark)
    return op->emitError() << "attribute '" << name << "' is unknown; the nearest of the dialect's is '"
                           << findNearest(name) << "'";
  if (mark->holder != holder)
    return op->emitError() << "attribute '" << name << "' is for "
                           << (holder == MarkHolder::Op ? "arguments and results of functions"
                                                        : "operations, and not for arguments or results");
  if (!hasType(attribute.getValue(), mark->type))
    return op->emitError() << "attribute '" << name << "' must be " << describeType(mark->type);
  return success();
}

/// Checks the values of attributes that users write.
static LogicalResult verifyValue(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  auto word = dyn_cast<StringAttr>(attribute.getValue());
  if (name == kSiteAttrName && (!word || word.getValue().empty()))
    return op->emitOpError("attribute 'fp8.site' must be a non-empty string, the site's name");
  if (name == kRoleAttrName && (!word || !symbolizeRole(word.getValue())))
    return op->emitOpError("attribute 'fp8.role' must be \"fprop\", \"dgrad\", \"wgrad\" or \"other\"");
  if (name == kMixedPrecisionAttrName && (!word || !isMixedPrecision(word)))
    return op->emitOpError("attribute 'fp8.mixed_precision' must be \"off\", \"bf16\", \"f16\" or \"tf32\"");
  if (name == kTF32AttrName && !(isa<MatmulOp, GroupedMatmulOp>(op) && isa<UnitAttr>(attribute.getValue())))
    return op->emitOpError("attribute 'fp8.tf32' has no value, and is for fp8.matmul and fp8.grouped_matmul");
  if (name == kTargetAttrName && !(isa<ModuleOp>(op) && isa<TargetAttrInterface>(attribute.getValue())))
    return op->emitOpError("attribute 'fp8.target' must be a target, like #fp8.cpu, on a module");
  return success();
}

LogicalResult FP8Dialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (failed(verifyValue(op, attribute)))
    return failure();
  return verifyMark(op, attribute, MarkHolder::Op);
}

LogicalResult FP8Dialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned,
                                                   NamedAttribute attribute) {
  return verifyMark(op, attribute, MarkHolder::Boundary);
}

LogicalResult FP8Dialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned,
                                                      NamedAttribute attribute) {
  return verifyMark(op, attribute, MarkHolder::Boundary);
}
