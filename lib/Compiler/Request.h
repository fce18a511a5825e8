// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is asked of a program before its first stage.

#ifndef FP8_LIB_COMPILER_REQUEST_H
#define FP8_LIB_COMPILER_REQUEST_H

#include "fp8/Compiler/Options.h"

namespace fp8 {

/// Registers what the context lacks to read and compile a program: without its extensions MLIR
/// would end the process.
void addMissingRegistrations(mlir::MLIRContext &context);

/// What well-formed options ask for whose work is still to come, as an error message; empty
/// for nothing.
std::string findUnavailable(const CompilerOptions &options);

/// Checks that `module` can be compiled as asked, and marks the arguments of --carry in every
/// function that has them and the functions of --pair. An error at the place in the program.
mlir::LogicalResult applyRequest(mlir::ModuleOp module, const CompilerOptions &options);

/// The functions that the recipe names are used by nothing yet: public ones outlive ingest, and
/// fp8-apply-recipe, which checks them, makes them private.
void keepRecipeFunctions(mlir::ModuleOp module, RecipeAttrInterface recipe);

} // namespace fp8

#endif // FP8_LIB_COMPILER_REQUEST_H
