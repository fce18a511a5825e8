// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attribute `fp8.unused_options` of a module: `[{message = "no site matches --sites=head", option =
// "sites"}]`.

#include "fp8/Dialect/FP8/Transforms/UnusedOptions.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace fp8;

void fp8::noteUnused(ModuleOp module, const UnusedOption &unused) {
  Builder builder(module.getContext());
  NamedAttrList attrs;
  attrs.set("option", builder.getStringAttr(unused.option));
  attrs.set("message", builder.getStringAttr(unused.message));
  if (unused.place)
    attrs.set("place", builder.getI64IntegerAttr(*unused.place));
  SmallVector<Attribute> list;
  if (auto known = module->getAttrOfType<ArrayAttr>(kUnusedOptionsAttrName))
    llvm::append_range(list, known);
  list.push_back(attrs.getDictionary(module.getContext()));
  module->setAttr(kUnusedOptionsAttrName, builder.getArrayAttr(list));
}

LogicalResult fp8::checkUnused(ModuleOp module, bool isAllowed, const UnusedOption &unused,
                               StringRef advice) {
  if (!isAllowed)
    return module.emitError() << unused.message << advice;
  noteUnused(module, unused);
  return success();
}

std::vector<UnusedOption> fp8::takeUnusedOptions(ModuleOp module) {
  std::vector<UnusedOption> options;
  auto list = dyn_cast_or_null<ArrayAttr>(module->removeAttr(kUnusedOptionsAttrName));
  if (!list)
    return options;
  for (auto attrs : list.getAsRange<DictionaryAttr>()) {
    UnusedOption option;
    option.option = attrs.getAs<StringAttr>("option").str();
    option.message = attrs.getAs<StringAttr>("message").str();
    if (auto place = attrs.getAs<IntegerAttr>("place"))
      option.place = place.getInt();
    options.push_back(std::move(option));
  }
  return options;
}
