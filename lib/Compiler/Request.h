// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registrations, checks and marks before the first stage of a program.

#ifndef FP8_LIB_COMPILER_REQUEST_H
#define FP8_LIB_COMPILER_REQUEST_H

#include "fp8/Compiler/Options.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace fp8 {

/// Registers what the context lacks to read and compile a program: without its extensions MLIR
/// would end the process.
void addMissingRegistrations(mlir::MLIRContext &context);

/// Checks that `module` can be compiled with `options`, and marks the arguments of --carry in every
/// function that has them and the functions of --pair. Errors are at their place in the program.
mlir::LogicalResult applyRequest(mlir::ModuleOp module, const CompilerOptions &options);

/// The part of applyRequest for several ranks: the grid, and the tensors that are divided along its axes.
mlir::LogicalResult applyRanks(mlir::ModuleOp module, const CompilerOptions &options);

/// Finds the argument of `function` that `text`, an index or a name, stands for.
std::optional<unsigned> findArgument(mlir::func::FuncOp function, llvm::StringRef text);

/// Makes the functions that the recipe names public. Nothing calls them yet, and only public ones
/// outlive ingest; fp8-apply-recipe checks them and makes them private.
void keepRecipeFunctions(mlir::ModuleOp module, RecipeAttrInterface recipe);

} // namespace fp8

#endif // FP8_LIB_COMPILER_REQUEST_H
