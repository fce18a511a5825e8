// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the user calls an entry's arguments and a place in the program, and the attributes
// that say what arguments are.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_BOUNDARY_H
#define FP8_DIALECT_FP8_TRANSFORMS_BOUNDARY_H

#include "fp8/Dialect/FP8/IR/Boundary.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"
#include <string>

namespace fp8 {

/// The name that an argument's location gives it, the outermost where there are several;
/// "arg" and its position where there is none.
std::string getArgumentName(mlir::BlockArgument argument);

/// The type that the caller sees of an argument or result with `attrs`, which may be null:
/// unsigned integers where `fp8.unsigned` says so.
mlir::Type getCallersType(mlir::Type type, mlir::DictionaryAttr attrs);

/// The name that the user's program gave, and "file:line:col", as far as there are any.
std::string describeLocation(mlir::Location location);

} // namespace fp8

#endif // FP8_DIALECT_FP8_TRANSFORMS_BOUNDARY_H
