// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The names of arguments and of places in the user's program, shared by the command line, the
// manifest, the report and the error messages of a compiled library.

#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

std::string fp8::getArgumentName(BlockArgument argument) {
  std::string name;
  argument.getLoc()->walk([&](Location inner) {
    auto named = dyn_cast<NameLoc>(inner);
    if (!named)
      return WalkResult::advance();
    name = named.getName().str();
    return WalkResult::interrupt();
  });
  return name.empty() ? "arg" + std::to_string(argument.getArgNumber()) : name;
}

Type fp8::getCallersType(Type type, DictionaryAttr attrs) {
  auto element = dyn_cast<IntegerType>(getElementTypeOrSelf(type));
  if (!element || !attrs || !attrs.contains(kUnsignedAttrName))
    return type;
  auto asUnsigned = IntegerType::get(type.getContext(), element.getWidth(), IntegerType::Unsigned);
  if (auto shaped = dyn_cast<ShapedType>(type))
    return shaped.clone(asUnsigned);
  return asUnsigned;
}

std::string fp8::describeLocation(Location location) {
  std::string name, place;
  location->walk([&](Location inner) {
    if (auto named = dyn_cast<NameLoc>(inner); named && name.empty())
      name = named.getName().str();
    if (auto file = dyn_cast<FileLineColLoc>(inner); file && place.empty())
      place = llvm::formatv("{0}:{1}:{2}", file.getFilename().getValue(), file.getLine(), file.getColumn());
    return WalkResult::advance();
  });
  if (name.empty())
    return place;
  return place.empty() ? name : name + " (" + place + ")";
}
