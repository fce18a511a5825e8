// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The names of an entry's arguments: one rule for the command line, the manifest and the
// error messages of a compiled library.

#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

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
