// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading the program.

#ifndef FP8_TOOLS_FP8_COMPILE_INPUT_H
#define FP8_TOOLS_FP8_COMPILE_INPUT_H

#include "CommandLine.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/SourceMgr.h"

/// Parses `fileName`. Operations whose location says no place in a file (a front end's
/// names alone) get theirs in this one, so that every error starts with file:line:col.
/// Null after an error, which has been printed.
mlir::OwningOpRef<mlir::ModuleOp> readModule(llvm::StringRef fileName, llvm::SourceMgr &sources,
                                             mlir::MLIRContext &context);

/// An error where the program has attributes that the compiler itself writes and believes
/// later: it has been through the recipe stage already, or claims to have been.
mlir::LogicalResult refuseOwnAttributes(mlir::ModuleOp module);

/// Marks the arguments of --carry in every function that has them. An error where none
/// does, or none whose argument and result are of one type.
mlir::LogicalResult applyCarry(mlir::ModuleOp module, llvm::ArrayRef<CarryRequest> requests);

#endif // FP8_TOOLS_FP8_COMPILE_INPUT_H
