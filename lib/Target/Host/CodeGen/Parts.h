// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parts of a library, for each of which code is generated on its own.

#ifndef FP8_LIB_TARGET_HOST_CODEGEN_PARTS_H
#define FP8_LIB_TARGET_HOST_CODEGEN_PARTS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/SymbolTable.h"

namespace fp8 {

/// Functions and globals of a module in the LLVM dialect that are compiled together.
struct Part {
  llvm::SmallVector<mlir::Operation *> symbols;
  /// The number of operations in `symbols`, which the time to compile the part follows.
  size_t size = 0;
  /// Whether the part has the entry points: code that runs once per call and only calls kernels.
  bool isEntry = false;
};

/// Returns whether the library exports the function `name`.
bool isExported(llvm::StringRef name);

/// Divides `module` into parts: the entry points with all globals, and groups of kernels. The
/// division depends on names and sizes alone, and an edit of one kernel leaves the groups of the
/// others as they are. The largest parts are first.
llvm::SmallVector<Part> cutIntoParts(mlir::ModuleOp module);

/// Copies `part` into a module of its own, with declarations of what it uses of other parts.
/// `symbols` are those of the whole module. Safe in several threads.
mlir::OwningOpRef<mlir::ModuleOp> clonePart(const mlir::SymbolTable &symbols, const Part &part);

} // namespace fp8

#endif // FP8_LIB_TARGET_HOST_CODEGEN_PARTS_H
