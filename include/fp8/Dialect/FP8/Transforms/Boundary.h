// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The user's names of arguments and of places in the program. The attributes on arguments are in
// IR/Boundary.h.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_BOUNDARY_H
#define FP8_DIALECT_FP8_TRANSFORMS_BOUNDARY_H

#include "fp8/Dialect/FP8/IR/Boundary.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"
#include <string>

namespace fp8 {

/// Returns the name in an argument's location, the outermost of several, or "arg" and the
/// argument's number if there is none.
std::string getArgumentName(mlir::BlockArgument argument);

/// Returns the type of an argument or result for the caller: `type`, with unsigned integers if
/// `attrs` (may be null) has `fp8.unsigned`.
mlir::Type getCallersType(mlir::Type type, mlir::DictionaryAttr attrs);

/// Returns "name (file:line:col)", or the part of it that `location` has.
std::string describeLocation(mlir::Location location);

} // namespace fp8

#endif // FP8_DIALECT_FP8_TRANSFORMS_BOUNDARY_H
